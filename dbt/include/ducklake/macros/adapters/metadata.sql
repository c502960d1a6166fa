{% macro ducklake__generate_database_name(custom_database_name=none, node=none) -%}
  {{ return(custom_database_name | trim if custom_database_name else target.database) }}
{%- endmacro %}

{% macro ducklake__list_relations_without_caching(schema_relation) -%}
  {{ return(adapter.list_relations_without_caching(schema_relation)) }}
{%- endmacro %}
