{#- Spark cuts no list: of the joined text the first parts are taken. -#}
{% macro ducklake__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set joined -%}
    listagg({{ measure }}, {{ delimiter_text }}) {%- if order_by_clause %} within group ({{ order_by_clause }}){% endif -%}
  {%- endset -%}
  {%- if limit_num -%}
    substring_index({{ joined }}, {{ delimiter_text }}, {{ limit_num }})
  {%- else -%}
    {{ joined }}
  {%- endif -%}
{%- endmacro %}
