{% macro ducklake__type_float() -%}
  double
{%- endmacro %}
