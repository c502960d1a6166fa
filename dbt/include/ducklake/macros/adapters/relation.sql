{% macro ducklake__drop_relation(relation) -%}
  {% do adapter.drop_relation(relation) %}
{%- endmacro %}

{% macro ducklake__rename_relation(from_relation, to_relation) -%}
  {% do adapter.rename_relation(from_relation, to_relation) %}
{%- endmacro %}

{% macro ducklake__truncate_relation(relation) -%}
  {% do adapter.truncate_relation(relation) %}
{%- endmacro %}

{% macro ducklake__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}
