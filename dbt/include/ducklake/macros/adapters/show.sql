{% macro ducklake__get_limit_sql(sql, limit) -%}
  {%- if model is defined and model.language == 'python' -%}
    {{ exceptions.raise_compiler_error(
      "A Python model cannot be shown: it is no query. Run it, and show its table: "
      ~ "dbt show --inline \"select * from {{ ref('" ~ model.name ~ "') }}\"") }}
  {%- endif -%}
  {{ default__get_limit_sql(sql, limit) }}
{%- endmacro %}
