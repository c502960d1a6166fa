{% materialization snapshot, adapter='ducklake' %}
  {{ exceptions.raise_compiler_error(
    "Snapshot " ~ this ~ " cannot be taken by this version of dbt-ducklake: snapshots come with MERGE. The lake itself "
    ~ "keeps its history: select ... from table version as of 42.") }}
{% endmaterialization %}
