from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import TableUse, names_in, quoted, replaced
from dbt.adapters.ducklake.statements.reader import Name
from dbt.adapters.ducklake.statements.scopes import Located

PAIRS = Path(__file__).parents[2] / "fixtures" / "statements" / "names.sql"
# The columns of the tables in the fixture; others have `id` and `v`.
COLUMNS = {"wide": {"id", "v", "t", "main", "orders"}, "narrow": {"n"}}


def pairs() -> Iterator[object]:
    for block in PAIRS.read_text().split("--- ")[1:]:
        title, rest = block.split("\n", 1)
        sql, expected = rest.split("\n=> ")
        yield pytest.param(sql, expected.strip("\n"), id=title)


def whole(name: Name) -> tuple[str, ...]:
    """With the lake and the schema in front that the name leaves out."""
    return (*("lake", "main")[: max(3 - len(name.parts), 0)], *name.parts)


def view_of(use: TableUse) -> str:
    travel = ("@v" if use.travel.is_version else "@t") if use.travel else ""
    return quoted(".".join(whole(use.name)) + travel)


def located(use: TableUse) -> Located:
    columns = frozenset(COLUMNS.get(use.own_name, {"id", "v"}))
    return Located(tuple(map(fold, whole(use.name))), lambda: columns)


def spelled(sql: str) -> str:
    names = names_in(sql)
    views = {use.start: view_of(use) for use in names.tables}
    return replaced(sql, names, views, {use.start: located(use) for use in names.tables})


@pytest.mark.parametrize(("sql", "expected"), list(pairs()))
def test_only_the_names_of_tables_change(sql: str, expected: str) -> None:
    assert spelled(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        # Whether p has a column `main` with a field `orders` is not known.
        "select 1 from main.orders where exists (select 1 from (select * from x pivot (max(v) for id in (1))) p "
        "where p.id = main.orders.id)",
        "select 1 from main.orders where id !> 3 and exists (select 1 from other.orders where main.orders.id = 1)",
        "select main.orders.id from main.orders join other.orders on a !> 3",
    ],
)
def test_a_name_with_two_readings_is_refused(sql: str) -> None:
    with pytest.raises(NotAllowed, match=r"Cannot resolve main\.orders\.id.*Give the table an alias"):
        spelled(sql)


def test_a_name_that_is_no_table_of_a_lake_stays() -> None:
    sql = "select * from parquet.`/x` join orders on true"
    assert replaced(sql, names_in(sql), {}, {}) == sql


def test_a_function_of_ducklake_has_its_arguments() -> None:
    (use,) = names_in("select * from ducklake_list_files('lake', 'orders', schema => 'main') f").tables
    assert (use.own_name, use.arguments) == ("ducklake_list_files", "'lake', 'orders', schema => 'main'")
