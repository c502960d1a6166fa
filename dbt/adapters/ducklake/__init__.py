"""The dbt adapter for DuckLake."""
