{% macro ducklake__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {{ exceptions.raise_compiler_error(
      "`grants` of " ~ relation ~ " cannot be given: a DuckLake lake has no users. Whoever reaches its metadata "
      ~ "database and its files may read it; grant there.") }}
  {%- endif -%}
{%- endmacro %}
