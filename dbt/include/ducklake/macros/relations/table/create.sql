{#- One statement, one snapshot: whatever stood under the name is replaced when the new rows are there. -#}
{% macro ducklake__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language == 'python' %}
{{ compiled_code }}
  {%- elif temporary -%}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(compiled_code) }}
    {%- endif -%}
    {{ config.get('sql_header') or '' }}
    create or replace temporary view {{ relation }} as
    {{ compiled_code }}
  {%- else -%}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(compiled_code) }}
      {%- set compiled_code = get_select_subquery(compiled_code) -%}
    {%- endif -%}
    {{ config.get('sql_header') or '' }}
    create or replace table {{ relation }} {{ adapter.table_clauses(model) }} as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}
