{% macro ducklake__dateadd(datepart, interval, from_date_or_timestamp) -%}
  timestampadd({{ datepart }}, cast({{ interval }} as int), {{ from_date_or_timestamp }})
{%- endmacro %}
