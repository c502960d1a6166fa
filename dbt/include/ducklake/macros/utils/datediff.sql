{#- How many borders of the part lie between the two. -#}
{% macro ducklake__datediff(first_date, second_date, datepart) -%}
  timestampdiff({{ datepart }}, date_trunc('{{ datepart }}', {{ first_date }}), date_trunc('{{ datepart }}', {{ second_date }}))
{%- endmacro %}
