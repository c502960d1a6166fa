{#- Types in a lake's or another database's words are Spark's here. -#}
{% macro ducklake__cast(field, type) -%}
  cast({{ field }} as {{ adapter.spark_type_of(type) }})
{%- endmacro %}
