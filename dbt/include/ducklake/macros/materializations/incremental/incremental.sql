{% materialization incremental, adapter='ducklake', supported_languages=['sql', 'python'] %}
  {{ exceptions.raise_compiler_error(
    "Model " ~ this ~ " is incremental, and this version of dbt-ducklake only rebuilds: incremental models come with "
    ~ "UPDATE, DELETE and MERGE. Use `materialized: table` until then.") }}
{% endmaterialization %}
