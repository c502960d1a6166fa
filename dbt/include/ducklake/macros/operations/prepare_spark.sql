{#- Once on a machine: Spark starts sooner from then on. -#}
{% macro ducklake_prepare_spark() -%}
  {%- do log('Classes for Spark: ' ~ adapter.prepare_spark(), info=True) -%}
{%- endmacro %}
