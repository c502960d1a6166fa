{#- Brings a table's rows back to what they were, as a new snapshot: a hook's text, or an operation that does it. -#}
{% macro ducklake_rollback(relation, version=none, timestamp=none) -%}
  {{ return(ducklake__run_or_write(adapter.rollback_statement(relation, version, timestamp))) }}
{%- endmacro %}
