{#- dbt-spark takes the quotes from nested values, which no text can be cast to. -#}
{% macro ducklake__safe_cast(field, type) -%}
  {%- if cast_from_string_unsupported_for(type) and field is string -%}
    try_cast({{ field.strip('"').strip("'") }} as {{ type }})
  {%- else -%}
    try_cast({{ field }} as {{ type }})
  {%- endif -%}
{%- endmacro %}
