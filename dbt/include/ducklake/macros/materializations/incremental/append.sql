{% macro ducklake__append(target, compiled_code) -%}
  {{ config.get('sql_header') or '' }}
  insert into {{ target }} by name
  {{ compiled_code }}
{%- endmacro %}
