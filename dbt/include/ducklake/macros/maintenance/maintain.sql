{#- The whole lake in bounded steps, each a commit of its own, as an operation or in `on-run-end`. Models say by their
    `compaction` what theirs need. -#}
{% macro ducklake_maintain(database=none, older_than=none, orphans=false) -%}
  {%- if execute -%}
    {%- set models = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type in ('model', 'snapshot', 'seed') -%}
      {%- do models.append(node) -%}
    {%- endfor -%}
    {%- set steps = adapter.maintenance_steps(database, models, older_than, orphans) -%}
    {%- for step in steps -%}
      {%- set done = run_query(step.statement) -%}
      {%- do log(loop.index ~ ' of ' ~ (steps | length) ~ ' ' ~ step.label ~ ': ' ~ ducklake__done(done), info=True) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{% macro ducklake__done(rows) -%}
  {%- if rows is none or rows.rows | length == 0 -%}
    {{ return('nothing to do') }}
  {%- elif 'done' in rows.column_names -%}
    {%- set said = [] -%}
    {%- for row in rows.rows -%}
      {%- do said.append(row['done'] ~ ' of ' ~ row['processed'] ~ ', ' ~ row['files_created'] ~ ' files made') -%}
    {%- endfor -%}
    {{ return(said | join('; ')) }}
  {%- endif -%}
  {{ return(rows.rows | length ~ '') }}
{%- endmacro %}
