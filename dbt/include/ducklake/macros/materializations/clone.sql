{#- A view of the other target's relation: two tables that share files could not be cleaned up. -#}
{% materialization clone, adapter='ducklake' %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if not defer_relation -%}
    {{ log('No relation of ' ~ model.unique_id ~ ' in the state', info=True) }}
    {{ return({'relations': []}) }}
  {%- elif existing_relation is not none and defer_relation.render() | lower == this.render() | lower -%}
    {{ log('Both are the same, skipping clone for relation ' ~ this, info=True) }}
    {{ return({'relations': []}) }}
  {%- elif existing_relation is not none and not flags.FULL_REFRESH -%}
    {{ log(this ~ ' already exists', info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set target_relation = this.incorporate(type='view') -%}
  {%- call statement('main') -%}
    create or replace view {{ target_relation }} as select * from {{ defer_relation }}
  {%- endcall -%}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{% macro ducklake__can_clone_table() -%}
  {{ return(False) }}
{%- endmacro %}
