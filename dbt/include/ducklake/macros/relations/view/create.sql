{% macro ducklake__create_view_as(relation, sql) -%}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif -%}
  {{ config.get('sql_header') or '' }}
  create or replace view {{ relation }} {{ adapter.view_clauses(model) }} as
  {{ sql }}
{%- endmacro %}
