from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.ducklake.statements.names import QueryNames, TableUse, names_in, quoted, replaced

PAIRS = Path(__file__).parents[2] / "fixtures" / "statements" / "names.sql"


def pairs() -> Iterator[object]:
    for block in PAIRS.read_text().split("--- ")[1:]:
        title, rest = block.split("\n", 1)
        sql, expected = rest.split("\n=> ")
        yield pytest.param(sql, expected.strip("\n"), id=title)


def view_of(use: TableUse) -> str:
    parts = ("lake", "main", *use.name.parts)[-3:] if len(use.name.parts) < 2 else ("lake", *use.name.parts)[-3:]
    travel = ("@v" if use.travel.is_version else "@t") if use.travel else ""
    return quoted(".".join(parts) + travel)


@pytest.mark.parametrize(("sql", "expected"), list(pairs()))
def test_only_the_names_of_tables_change(sql: str, expected: str) -> None:
    names = names_in(sql)
    assert replaced(sql, names, {use.start: view_of(use) for use in names.tables}) == expected


def test_a_name_that_is_no_table_of_a_lake_stays() -> None:
    sql = "select * from parquet.`/x` join orders on true"
    names = names_in(sql)
    kept = QueryNames(names.tables, names.columns)
    assert replaced(sql, kept, {}) == sql


def test_a_function_of_ducklake_has_its_arguments() -> None:
    (use,) = names_in("select * from ducklake_list_files('lake', 'orders', schema => 'main') f").tables
    assert (use.own_name, use.arguments) == ("ducklake_list_files", "'lake', 'orders', schema => 'main'")
