{% macro ducklake__get_incremental_default_sql(arg_dict) -%}
  {{ ducklake__incremental_statement('merge' if arg_dict['unique_key'] else 'append', arg_dict) }}
{%- endmacro %}

{% macro ducklake__get_incremental_append_sql(arg_dict) -%}
  {{ ducklake__incremental_statement('append', arg_dict) }}
{%- endmacro %}

{% macro ducklake__get_incremental_merge_sql(arg_dict) -%}
  {{ ducklake__incremental_statement('merge', arg_dict) }}
{%- endmacro %}

{% macro ducklake__get_incremental_delete_insert_sql(arg_dict) -%}
  {{ ducklake__incremental_statement('delete+insert', arg_dict) }}
{%- endmacro %}

{% macro ducklake__get_incremental_insert_overwrite_sql(arg_dict) -%}
  {{ ducklake__incremental_statement('insert_overwrite', arg_dict) }}
{%- endmacro %}

{% macro ducklake__get_incremental_microbatch_sql(arg_dict) -%}
  {{ ducklake__incremental_statement('microbatch', arg_dict) }}
{%- endmacro %}

{% macro ducklake__incremental_statement(strategy, arg_dict) -%}
  {%- set target, batch = arg_dict['target_relation'], arg_dict['temp_relation'] -%}
  {%- set mode = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {{ adapter.incremental_statement(strategy, model, target, batch, adapter.shared_columns(batch, target, mode)) }}
{%- endmacro %}

{#- dbt-spark has another macro of this name; strategies of users call dbt's. -#}
{% macro get_insert_into_sql(target_relation, temp_relation, dest_columns) -%}
  {%- set names = get_quoted_csv(dest_columns | map(attribute='name')) -%}
  insert into {{ target_relation }} ({{ names }})
  select {{ names }} from {{ temp_relation }}
{%- endmacro %}
