{#- The rows that came and went from one snapshot or moment to another, both included; up to now where `to` is none. -#}
{% macro ducklake_changes(relation, from, to=none) -%}
  {{ return(adapter.relation_changes(relation, from, to)) }}
{%- endmacro %}
