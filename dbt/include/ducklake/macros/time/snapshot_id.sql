{#- The newest snapshot of the target's lake, or of another that is attached. -#}
{% macro ducklake_snapshot_id(database=none) -%}
  {{ return(adapter.snapshot_id(database)) }}
{%- endmacro %}
