{% materialization view, adapter='ducklake' %}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks) }}

  {%- call statement('main') -%}
    {{ create_view_as(target_relation, sql) }}
  {%- endcall -%}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke=false) %}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
