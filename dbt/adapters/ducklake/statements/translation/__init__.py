"""Spark's SQL as DuckDB's, and the other way round: the same rows, or a refusal that says why."""
