{#- dbt runs the text of a hook; by `dbt run-operation`, which has no `this`, nobody would. -#}
{% macro ducklake__run_or_write(statement) -%}
  {%- if this is defined -%}
    {{ return(statement) }}
  {%- endif -%}
  {%- set done = run_query(statement) -%}
  {%- do log(statement, info=True) -%}
  {%- for row in done.rows if done -%}
    {%- do log('  ' ~ row.values() | join(' | '), info=True) -%}
  {%- endfor -%}
{%- endmacro %}
