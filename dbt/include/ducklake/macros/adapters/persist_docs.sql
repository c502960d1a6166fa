{#- Comments are part of the statement that makes the relation. -#}
{% macro ducklake__persist_docs(relation, model, for_relation, for_columns) -%}
{%- endmacro %}

{#- So are constraints. -#}
{% macro ducklake__persist_constraints(relation, model) -%}
{%- endmacro %}

{#- A table that stays gets what its descriptions have become, in one snapshot; none where they are the same. -#}
{% macro ducklake__follow_docs(relation) -%}
  {%- do adapter.follow_docs(relation, model) -%}
{%- endmacro %}

{% macro ducklake__alter_relation_comment(relation, comment) -%}
  comment on {{ 'view' if relation.is_view else 'table' }} {{ relation }} is '{{ escape_single_quotes(comment) }}'
{%- endmacro %}
