{#- DuckLake's procedures by their own names: a hook's text, or an operation. The lake is the target's own unless
    `database` names another; tables are all, unless one is named. -#}
{% macro ducklake_merge_adjacent_files(table_name=none, schema=none, min_file_size=none, max_file_size=none, max_compacted_files=none, max_bytes=none, partition=none, dry_run=none, database=none) -%}
  {{ return(ducklake__call('ducklake_merge_adjacent_files', database, {
    'table_name': table_name, 'schema': schema, 'min_file_size': min_file_size, 'max_file_size': max_file_size,
    'max_compacted_files': max_compacted_files, 'max_bytes': max_bytes, 'partition': partition, 'dry_run': dry_run})) }}
{%- endmacro %}

{% macro ducklake_rewrite_data_files(table_name=none, schema=none, delete_threshold=none, max_compacted_files=none, max_bytes=none, partition=none, dry_run=none, database=none) -%}
  {{ return(ducklake__call('ducklake_rewrite_data_files', database, {
    'table_name': table_name, 'schema': schema, 'delete_threshold': delete_threshold,
    'max_compacted_files': max_compacted_files, 'max_bytes': max_bytes, 'partition': partition, 'dry_run': dry_run})) }}
{%- endmacro %}

{% macro ducklake_flush_inlined_data(table_name=none, schema_name=none, dry_run=none, database=none) -%}
  {{ return(ducklake__call('ducklake_flush_inlined_data', database, {
    'table_name': table_name, 'schema_name': schema_name, 'dry_run': dry_run})) }}
{%- endmacro %}

{% macro ducklake_expire_snapshots(versions=none, older_than=none, dry_run=none, database=none) -%}
  {{ return(ducklake__call('ducklake_expire_snapshots', database, {
    'versions': versions, 'older_than': older_than, 'dry_run': dry_run})) }}
{%- endmacro %}

{% macro ducklake_cleanup_old_files(older_than=none, cleanup_all=none, dry_run=none, database=none) -%}
  {{ return(ducklake__call('ducklake_cleanup_old_files', database, {
    'older_than': older_than, 'cleanup_all': cleanup_all, 'dry_run': dry_run})) }}
{%- endmacro %}

{% macro ducklake_delete_orphaned_files(older_than=none, cleanup_all=none, dry_run=none, database=none) -%}
  {{ return(ducklake__call('ducklake_delete_orphaned_files', database, {
    'older_than': older_than, 'cleanup_all': cleanup_all, 'dry_run': dry_run})) }}
{%- endmacro %}

{% macro ducklake_add_data_files(table_name, path, schema=none, hive_partitioning=none, ignore_extra_columns=none, allow_missing=none, dry_run=none, database=none) -%}
  {{ return(ducklake__call('ducklake_add_data_files', database, {
    'table_name': table_name, 'path': path, 'schema': schema, 'hive_partitioning': hive_partitioning,
    'ignore_extra_columns': ignore_extra_columns, 'allow_missing': allow_missing, 'dry_run': dry_run})) }}
{%- endmacro %}

{% macro ducklake_set_option(option_name, value, table_name=none, schema=none, database=none) -%}
  {{ return(ducklake__call('ducklake_set_option', database, {
    'option_name': option_name, 'value': value, 'table_name': table_name, 'schema': schema})) }}
{%- endmacro %}

{% macro ducklake__call(procedure, database, arguments) -%}
  {{ return(ducklake__run_or_write(adapter.maintenance_call(procedure, database, arguments))) }}
{%- endmacro %}
