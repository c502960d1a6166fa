{#- As dbt's own, but that names which differ only in case are the same, as they are in a lake. -#}
{% macro ducklake__get_assert_columns_equivalent(sql) -%}
  {%- if not model['columns'] -%}
    {{ exceptions.raise_contract_error([], []) }}
  {%- endif -%}
  {%- set declared = get_column_schema_from_query(get_empty_schema_sql(model['columns'])) -%}
  {%- set given = adapter.named_alike(get_column_schema_from_query(sql, config.get('sql_header', none)), declared) -%}
  {%- set wanted, found = format_columns(declared), format_columns(given) -%}
  {%- if wanted | sort(attribute='formatted') != found | sort(attribute='formatted') -%}
    {%- do exceptions.raise_contract_error(wanted, found) -%}
  {%- endif -%}
{%- endmacro %}
