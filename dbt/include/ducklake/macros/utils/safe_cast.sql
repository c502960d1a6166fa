{#- No text can be cast to a nested type: the value is written as SQL. -#}
{% macro ducklake__safe_cast(field, type) -%}
  try_cast({{ adapter.fixture_value(field, type) }} as {{ adapter.spark_type_of(type) }})
{%- endmacro %}
