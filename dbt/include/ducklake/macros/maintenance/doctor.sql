{#- How a lake is, as a table or as JSON. With `orphans` its files are listed too, which may take long. -#}
{% macro ducklake_doctor(database=none, json=false, orphans=false) -%}
  {%- if execute -%}
    {%- set report = adapter.lake_report(database, orphans) -%}
    {%- if json -%}
      {%- do print(tojson(report)) -%}
    {%- else -%}
      {%- for line in adapter.report_lines(report) -%}
        {%- do print(line) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}
