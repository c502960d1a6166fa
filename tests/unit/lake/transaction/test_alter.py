from __future__ import annotations

import duckdb

from dbt.adapters.ducklake.lake.transaction.alter import RESERVED


def test_words_that_duckdb_takes_for_no_name_are_quoted() -> None:
    """`at` is one from DuckDB 2.0 on."""
    rows = duckdb.execute(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
    )
    assert {word for (word,) in rows.fetchall()} - RESERVED == set()
    assert "at" in RESERVED
