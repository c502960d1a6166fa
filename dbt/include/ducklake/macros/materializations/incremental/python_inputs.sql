{#- dbt filters what a microbatch in SQL refers to by the batch's time, and leaves that of Python models as it is. -#}
{% macro ducklake__filter_python_inputs() -%}
  {%- if config.get('incremental_strategy') == 'microbatch' -%}
    {%- set relations = [] -%}
    {%- for one in model.refs -%}
      {%- do relations.append(ref(one.package, one.name, v=one.version) if one.package else ref(one.name, v=one.version)) -%}
    {%- endfor -%}
    {%- for one in model.sources -%}
      {%- do relations.append(source(*one)) -%}
    {%- endfor -%}
    {%- do adapter.filter_python_inputs(relations) -%}
  {%- endif -%}
{%- endmacro %}
