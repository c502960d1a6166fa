{% macro ducklake__create_view_as(relation, sql) -%}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif -%}
  create or replace view {{ relation }} {{ adapter.view_clauses(model) }} as
  {{ sql }}
{%- endmacro %}
