{% macro ducklake__create_schema(relation) -%}
  {% do adapter.create_schema(relation) %}
{%- endmacro %}

{% macro ducklake__drop_schema(relation) -%}
  {% do adapter.drop_schema(relation) %}
{%- endmacro %}

{% macro ducklake__list_schemas(database) -%}
  {{ return(adapter.list_schemas(database)) }}
{%- endmacro %}

{% macro ducklake__check_schema_exists(information_schema, schema) -%}
  {{ return(adapter.check_schema_exists(information_schema.database, schema)) }}
{%- endmacro %}
