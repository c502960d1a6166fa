{#- Brings a lake to the newest version of DuckLake that the installed DuckDB makes, or to `ducklake_version` of the
    profile. A dry run says what it would do. -#}
{% macro ducklake_migrate(dry_run=false, database=none) -%}
  {%- if execute -%}
    {%- set steps = adapter.migrate_lake(dry_run, database) -%}
    {%- for line in steps -%}
      {%- do print(('Would migrate from ' if dry_run else 'Migrated from ') ~ line) -%}
    {%- endfor -%}
    {%- if not steps -%}
      {%- do print('There is nothing to migrate.') -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}
