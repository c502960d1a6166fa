{#- Spark's own takes the delimiter as it is, and gives an empty text where there is no such part. -#}
{% macro ducklake__split_part(string_text, delimiter_text, part_number) -%}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}
