{#- A relation as it was, to stand in FROM: by `version`, which is a snapshot, or by `timestamp`. -#}
{% macro ducklake_at(relation, version=none, timestamp=none) -%}
  {{ return(adapter.relation_at(relation, version, timestamp)) }}
{%- endmacro %}
