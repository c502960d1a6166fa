"""A session of the extension that was attached before our commit sees what we committed.

Such a session keeps schemas and statistics in caches, which only the right counters make it refresh. A DuckDB file
cannot be attached elsewhere while we write, so there is nothing to cache there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import Lake, Table, Transaction
from dbt.adapters.ducklake.lake.columns import scalar
from tests.conftest import PlaceOf
from tests.interop.copied import deletes_added, files_added
from tests.interop.test_writing import NUMBERS
from tests.judge import Judge
from tests.places import Place

QUESTIONS = [
    "SELECT count(*), min(a), max(a), count(b) FROM t",
    "SELECT a, b FROM t ORDER BY a, b",
    "SELECT count(*) FROM t WHERE a > 150",
    "SELECT count(*) FROM t WHERE a IS NULL",
    "SELECT a FROM t ORDER BY a DESC LIMIT 3",
]


@pytest.fixture(params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest, place_of: PlaceOf) -> tuple[Place, Place]:
    kind = str(request.param)
    return place_of(kind), place_of(kind)


@pytest.fixture
def attached(places: tuple[Place, Place]) -> Iterator[Judge]:
    ours, _ = places
    for place in places:
        place.options = {"data_inlining_row_limit": 0}
        place.judged(*NUMBERS)
    with Judge() as session:
        ours.attach(session)
        for question in QUESTIONS:
            session.rows(question)
        yield session


def committed(lake: Lake, theirs: Place, *statements: str, delete: bool = False) -> None:
    theirs.judged(*statements)
    transaction = lake.transaction()
    table = transaction.table("main", "t")
    transaction.append(table, files_added(theirs, table))
    if delete:
        transaction.delete(table, deletes_added(theirs, table))
    transaction.commit()


def test_appends_are_seen(places: tuple[Place, Place], attached: Judge) -> None:
    ours, theirs = places
    with ours.connect() as lake:
        for low in (-5, 200, 1000):
            committed(lake, theirs, f"INSERT INTO t SELECT i, NULL FROM range({low}, {low + 10}) r(i)")
            assert_same(attached, theirs)
        committed(lake, theirs, "INSERT INTO t VALUES (NULL, 'x')")
        assert_same(attached, theirs)


def test_deletes_are_seen(places: tuple[Place, Place], attached: Judge) -> None:
    ours, theirs = places
    with ours.connect() as lake:
        committed(lake, theirs, "DELETE FROM t WHERE a < 10", delete=True)
        assert_same(attached, theirs)


def test_inlined_rows_are_seen(places: tuple[Place, Place], attached: Judge) -> None:
    ours, theirs = places
    with ours.connect() as lake:
        transaction = lake.transaction()
        transaction.insert_inlined(transaction.table("main", "t"), [(500, "x"), (None, None)])
        transaction.commit()
    theirs.judged("INSERT INTO t VALUES (500, 'x'), (NULL, NULL)")
    assert_same(attached, theirs)


def test_changes_of_the_schema_are_seen(places: tuple[Place, Place], attached: Judge) -> None:
    ours, _ = places

    def commit(change: Any) -> None:
        with ours.connect() as lake:
            transaction = lake.transaction()
            change(transaction)
            transaction.commit()

    def add_column(transaction: Transaction) -> Table:
        return transaction.add_column("main", "t", scalar("c", "int32"))

    commit(add_column)
    assert attached.rows("SELECT count(*), count(c) FROM t") == [(100, 0)]
    commit(lambda transaction: transaction.rename_table("main", "t", "u"))
    assert attached.rows("SELECT count(*) FROM u") == [(100,)]
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        attached.rows("SELECT * FROM t")
    commit(lambda transaction: transaction.create_view("main", "v", "SELECT 1 AS x"))
    assert attached.rows("SELECT * FROM v") == [(1,)]
    commit(lambda transaction: transaction.drop_table("main", "u"))
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        attached.rows("SELECT * FROM u")


def test_a_name_mapping_is_seen(places: tuple[Place, Place], attached: Judge) -> None:
    ours, theirs = places
    given = theirs.folder / "given.parquet"
    with ours.connect() as lake:
        committed(
            lake,
            theirs,
            f"COPY (SELECT 7 AS a, 'm' AS b) TO '{given}'",
            f"CALL ducklake_add_data_files('lake', 't', '{given}')",
        )
    (ours.folder / "given.parquet").write_bytes(given.read_bytes())
    assert_same(attached, theirs)


def assert_same(attached: Judge, theirs: Place) -> None:
    for question in QUESTIONS:
        assert attached.rows(question) == theirs.asked(question), question
