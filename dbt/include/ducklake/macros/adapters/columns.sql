{% macro ducklake__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- if add_columns -%}
    {%- do ducklake__create_columns(relation, add_columns) -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement() -%}
      alter table {{ relation }} drop columns ({{ remove_columns | map(attribute='quoted') | join(', ') }})
    {%- endcall -%}
  {%- endif -%}
{%- endmacro %}

{% macro ducklake__create_columns(relation, columns) -%}
  {%- if columns -%}
    {%- call statement() -%}
      alter table {{ relation }} add columns (
        {%- for column in columns %}{{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}{% endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
{%- endmacro %}

{#- A lake widens a type in its metadata; what is no widening it refuses, with both types. -#}
{% macro ducklake__alter_column_type(relation, column_name, new_column_type) -%}
  {%- call statement() -%}
    alter table {{ relation }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro %}

{% macro ducklake__check_for_schema_changes(source_relation, target_relation) -%}
  {{ return(adapter.compared_columns(source_relation, target_relation)) }}
{%- endmacro %}

{% macro ducklake__sync_column_schemas(on_schema_change, target_relation, schema_changes_dict) -%}
  {%- do adapter.change_schema(on_schema_change, target_relation, schema_changes_dict) -%}
{%- endmacro %}
