{% materialization seed, adapter='ducklake' %}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
  {%- do store_result('main', response=adapter.load_seed(target_relation, agate_table, model)) -%}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke=false) %}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
