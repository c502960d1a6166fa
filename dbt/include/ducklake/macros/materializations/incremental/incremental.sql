{% materialization incremental, adapter='ducklake', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set language = model['language'] -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, config.get('incremental_strategy') or 'default') -%}
  {%- if language == 'python' -%}
    {%- do ducklake__filter_python_inputs() -%}
  {%- else -%}
    {%- set compiled_code = adapter.checked_batch(model, compiled_code) -%}
  {%- endif -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=false) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- if existing_relation is none or not existing_relation.is_table or should_full_refresh() -%}
    {%- call statement('main', language=language) -%}
      {{ create_table_as(False, target_relation, compiled_code, language) }}
    {%- endcall -%}
  {%- else -%}
    {%- set batch = ducklake__batch(target_relation, compiled_code, language) -%}
    {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
    {#- What changes of the columns is part of the statement below: if that fails, the table stays as it was. -#}
    {%- do adapter.stage_schema_changes() -%}
    {%- do process_schema_changes(on_schema_change, batch, existing_relation) -%}
    {%- call statement('main') -%}
      {{ strategy_macro({
        'target_relation': target_relation,
        'temp_relation': batch,
        'unique_key': config.get('unique_key'),
        'dest_columns': adapter.get_columns_in_relation(existing_relation),
        'incremental_predicates': config.get('incremental_predicates') or config.get('predicates')
      }) }}
    {%- endcall -%}
    {%- do adapter.settle_schema(target_relation) -%}
    {%- do ducklake__follow_docs(target_relation) -%}
  {%- endif -%}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{#- The rows that come, as a temporary view: the statement that takes them evaluates it once. -#}
{% macro ducklake__batch(target_relation, compiled_code, language) -%}
  {%- set batch = ducklake__view_for_node(target_relation, '__dbt_tmp') -%}
  {%- if language == 'python' -%}
    {%- do adapter.python_rows(batch, model, compiled_code) -%}
  {%- else -%}
    {%- call statement('batch') -%}
      {{ create_table_as(True, batch, compiled_code) }}
    {%- endcall -%}
  {%- endif -%}
  {{ return(batch) }}
{%- endmacro %}

{% macro ducklake__view_for_node(relation, suffix) -%}
  {{ return(relation.incorporate(path={'identifier': relation.identifier ~ suffix}, type='view').include(database=false, schema=false)) }}
{%- endmacro %}
