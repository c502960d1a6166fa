{#- What a table needs by its model's `compaction`: a post-hook's text, or an operation that does it. -#}
{% macro ducklake_compact(relation) -%}
  {#- dbt gives the hooks of a project's models to its on-run-end hooks too, which have no relation. -#}
  {%- if relation is none -%}
    {{ return('') }}
  {%- endif -%}
  {%- set config_of = model if model is defined else {} -%}
  {{ return(ducklake__run_or_write(adapter.compact_statement(relation, config_of))) }}
{%- endmacro %}
