from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.metadata import _with_aliases


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("SELECT a FROM {data_file} WHERE a = $1", "SELECT a FROM {data_file} AS data_file_rows WHERE a = $1"),
        ("SELECT a FROM {table} AS t JOIN {schema} AS s", "SELECT a FROM {table} AS t JOIN {schema} AS s"),
        ("x IN (SELECT max(a) FROM {snapshot})", "x IN (SELECT max(a) FROM {snapshot} AS snapshot_rows)"),
        ("FROM {view} ASC", "FROM {view} AS view_rows ASC"),
    ],
)
def test_each_table_has_an_alias(given: str, expected: str) -> None:
    """PostgreSQL before 16 reads no subquery in FROM without one, and what stands for a table may be one."""
    assert _with_aliases(given) == expected
