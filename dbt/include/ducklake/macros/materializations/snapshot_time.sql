{#- One time for a run of a snapshot: a version ends at the moment at which the next one begins. -#}
{% macro ducklake__snapshot_get_time() -%}
  {{ adapter.time_of_node() }}
{%- endmacro %}
