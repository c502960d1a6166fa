{#- dbt's own compares names with case: a column whose case changed would be a new one in every run. -#}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) -%}
  {%- if not target_exists -%}
    {{ return((false, [])) }}
  {%- endif -%}
  {%- if check_cols_config != 'all' and (check_cols_config is string or not check_cols_config) -%}
    {%- do exceptions.raise_compiler_error("Invalid value for 'check_cols': " ~ check_cols_config) -%}
  {%- endif -%}
  {%- set names = '*' if check_cols_config == 'all' else check_cols_config | join(', ') -%}
  {%- set checked = get_columns_in_query('select ' ~ names ~ ' from (\n' ~ node['compiled_code'] ~ '\n) subq') -%}
  {%- set target = api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias) -%}
  {{ return(adapter.columns_to_check(target, checked)) }}
{%- endmacro %}
