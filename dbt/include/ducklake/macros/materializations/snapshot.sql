{% materialization snapshot, adapter='ducklake' %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation is not none and not existing_relation.is_table -%}
    {%- do exceptions.relation_wrong_type(existing_relation, 'table') -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=false) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set strategy = strategy_dispatch(config.get('strategy'))(
    model, 'snapshotted_data', 'source_data', model['config'], existing_relation is not none) -%}
  {%- if existing_relation is none -%}
    {%- set sql = create_table_as(False, target_relation, build_snapshot_table(strategy, compiled_code)) -%}
  {%- else -%}
    {%- set sql = ducklake__snapshot_statement(strategy, target_relation, compiled_code) -%}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ sql }}
  {%- endcall -%}
  {%- if existing_relation is not none -%}
    {%- do ducklake__follow_docs(target_relation) -%}
  {%- endif -%}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{#- What dbt's staging query says of the source, which it reads several times and which is computed once. -#}
{% macro ducklake__snapshot_statement(strategy, target_relation, compiled_code) -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- do adapter.assert_valid_snapshot_target_given_strategy(target_relation, names, strategy) -%}
  {%- set source = ducklake__view_for_node(target_relation, '__dbt_source') -%}
  {%- set staging = ducklake__view_for_node(target_relation, '__dbt_tmp') -%}
  {%- if config.get('sql_header') -%}
    {%- call statement('header') -%}{{ config.get('sql_header') }}{%- endcall -%}
  {%- endif -%}
  {%- do adapter.keep_rows(source, compiled_code) -%}
  {%- do adapter.stage_snapshot_columns(source, target_relation) -%}
  {%- call statement('staging') -%}
    create or replace temporary view {{ staging }} as
    {{ snapshot_staging_table(strategy, 'select * from ' ~ source, target_relation) }}
  {%- endcall -%}
  {%- set columns = adapter.snapshot_columns(staging, strategy.unique_key) -%}
  {%- do adapter.stage_snapshot_columns(staging, target_relation, columns | map(attribute='name') | list) -%}
  {{ return(snapshot_merge_sql(target_relation, staging, columns | map(attribute='quoted') | list)) }}
{%- endmacro %}

{% macro ducklake__snapshot_merge_sql(target, source, insert_cols) -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set open = 'DBT_INTERNAL_DEST.' ~ names.dbt_valid_to -%}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_DEST.{{ names.dbt_scd_id }} = DBT_INTERNAL_SOURCE.{{ names.dbt_scd_id }}
  when matched
    and ({{ open }} is null
      {%- if config.get('dbt_valid_to_current') %} or {{ open }} = {{ config.get('dbt_valid_to_current') }}{% endif %})
    and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')
    then update set {{ names.dbt_valid_to }} = DBT_INTERNAL_SOURCE.{{ names.dbt_valid_to }}
  when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'
    then insert ({{ insert_cols | join(', ') }})
    values ({% for column in insert_cols %}DBT_INTERNAL_SOURCE.{{ column }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro %}
