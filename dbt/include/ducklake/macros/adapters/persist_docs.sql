{#- Comments are part of the statement that makes the relation. -#}
{% macro ducklake__persist_docs(relation, model, for_relation, for_columns) -%}
{%- endmacro %}

{#- So are constraints. -#}
{% macro ducklake__persist_constraints(relation, model) -%}
{%- endmacro %}
