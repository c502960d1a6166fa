{% materialization incremental, adapter='ducklake', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set rebuild = existing_relation is none or not existing_relation.is_table or should_full_refresh() -%}
  {%- do adapter.check_incremental(model, rebuild) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- call statement('main', language=model['language']) -%}
    {%- if rebuild -%}
      {{ create_table_as(False, target_relation, compiled_code, model['language']) }}
    {%- else -%}
      {{ ducklake__append(target_relation, compiled_code) }}
    {%- endif -%}
  {%- endcall -%}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke=false) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
