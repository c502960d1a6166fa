{#- How a lake is, as a table or as JSON. With `orphans` its files are listed too, and with `rows` all its tables are
    read: both may take long. -#}
{% macro ducklake_doctor(database=none, json=false, orphans=false, rows=false) -%}
  {%- if execute -%}
    {%- set nodes = [] if rows else none -%}
    {%- for node in graph.nodes.values() if rows and node.resource_type in ('model', 'snapshot') -%}
      {%- do nodes.append(node) -%}
    {%- endfor -%}
    {%- set report = adapter.lake_report(database, orphans, nodes) -%}
    {%- if json -%}
      {%- do print(tojson(report)) -%}
    {%- else -%}
      {%- for line in adapter.report_lines(report) -%}
        {%- do print(line) -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}
