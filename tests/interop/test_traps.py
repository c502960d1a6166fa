"""The traps of the format, by their numbers in the format's description: what we write must not spring them.

Others are pinned elsewhere: 1 to 3 in test_attached.py, 8 and 22 in test_transactions.py, 10, 14 and 16 also in
test_pruning.py, 13, 15, 19 and 26 to 29 by differential writing, 33 to 35 and 37 to 39 by differential reading. 17 and
20 to 23, 25 are for those who write files and compact them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import duckdb
import pytest

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnId,
    ColumnStatistics,
    ColumnType,
    Default,
    Lake,
    Table,
    Transaction,
    decimal,
)
from dbt.adapters.ducklake.lake.backends.duckdb_values import duckdb_type
from dbt.adapters.ducklake.lake.backends.sqlite import text_from_timestamp
from dbt.adapters.ducklake.lake.columns import scalar
from dbt.adapters.ducklake.lake.errors import ChangeRefused, InvalidMetadata
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.transaction.statistics import Totals, widen
from dbt.adapters.ducklake.lake.types import can_widen, type_from_text
from tests.conftest import PlaceOf
from tests.places import Place
from tests.written import plain, write_file


@pytest.fixture
def lake(place: Place) -> Iterator[Lake]:
    with place.connect(data_inlining_row_limit=0) as opened:
        t = opened.transaction()
        made = t.create_table("main", "t", plain("a", "b"))
        t.append(made, [write_file(made, [(n, n) for n in range(10)])])
        t.commit()
        yield opened


def table(lake: Lake) -> Table:
    return lake.snapshot().table("main", "t")


def merged(before: tables.TableColumnStats | None, *parts: ColumnStatistics, column: Column | None = None) -> object:
    column = column or scalar("c", "int64", id=ColumnId(1))
    stats = tables.TableStats(7, 10, 10, 100) if before else None
    totals = Totals(stats, {ColumnId(1): before} if before else {})
    after = widen(totals, 7, [column], 1, 1, 1, [{ColumnId(1): part} for part in parts])
    return after.columns.get(ColumnId(1))


KNOWN = tables.TableColumnStats(7, 1, False, None, "3", "5", None)


def test_4_every_change_of_layout_has_its_row(lake: Lake, place: Place) -> None:
    changes: tuple[Callable[[Transaction], object], ...] = (
        lambda t: t.add_column("main", "t", scalar("c", "int32")),
        lambda t: t.rename_table("main", "t", "u"),
        lambda t: t.set_partitioning("main", "u", [("a", "identity")]),
    )
    for change in changes:
        t = lake.transaction()
        change(t)
        t.commit()
    versions = {(int(r["schema_version"]), int(r["table_id"])) for r in place.tables()["ducklake_schema_versions"]}
    assert versions == {(1, 1), (2, 1), (3, 1), (4, 1)}
    place.judged("CALL ducklake_merge_adjacent_files('lake')")


def test_5_names_are_quoted_in_what_was_done(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    t.create_schema('a "b", c')
    t.create_table('a "b", c', "d,e", plain("x"))
    t.commit()
    assert place.asked("SELECT count(*) FROM lake.snapshots()") == [(3,)]
    place.judged('CREATE TABLE "a ""b"", c"."f" (a INT)')


def test_6_times_in_sqlite_have_duckdbs_form(place_of: PlaceOf) -> None:
    place = place_of("sqlite")
    with place.connect() as lake:
        moment = lake.snapshot().time
        stored = place.tables()["ducklake_snapshot"][0]["snapshot_time"]
        assert stored == text_from_timestamp(moment)
        assert stored.endswith("+00")
        assert "T" not in stored
    text = place.asked("SELECT CAST(snapshot_time AS VARCHAR) FROM lake.snapshots()")[0][0]
    assert text == stored


def test_9_unknown_bounds_leave_the_column_without_a_row() -> None:
    unknown = ColumnStatistics(value_count=4, null_count=0)
    assert merged(None, unknown) is None
    assert merged(KNOWN, unknown) is None
    assert merged(KNOWN, ColumnStatistics(4, 0, minimum=1)) is None


def test_9_a_column_without_statistics_loses_its_row(lake: Lake, place: Place) -> None:
    file = write_file(table(lake), [(100, 100)])
    del file.columns[ColumnId(2)]  # type: ignore[attr-defined]
    t = lake.transaction()
    t.append(table(lake), [file])
    t.commit()
    assert [int(row["column_id"]) for row in place.tables()["ducklake_table_column_stats"]] == [1]
    assert place.asked("SELECT max(a), max(b) FROM t WHERE b > 50") == [(100, 100)]
    place.judged("INSERT INTO t VALUES (7, -5)")
    assert place.asked("SELECT min(b), max(b), count(*) FROM t") == [(-5, 100, 12)]
    assert place.asked("SELECT count(*) FROM t WHERE b = 100") == [(1,)]


def test_10_bounds_widen_by_value() -> None:
    assert merged(KNOWN, ColumnStatistics(1, 0, 10, 10)) == KNOWN._replace(max_value="10", max_is_exact=True)
    assert merged(KNOWN, ColumnStatistics(1, 0, -1, 4)) == KNOWN._replace(min_value="-1", min_is_exact=True)


def test_10_nulls_do_not_touch_bounds() -> None:
    assert merged(KNOWN, ColumnStatistics(0, 5)) == KNOWN._replace(contains_null=True)


def test_11_nulls_are_never_denied() -> None:
    nulls = KNOWN._replace(contains_null=True)
    assert merged(nulls, ColumnStatistics(1, 0, 4, 4)) == nulls
    assert merged(KNOWN._replace(contains_null=None), ColumnStatistics(1, 0, 4, 4)) == KNOWN._replace(
        contains_null=None
    )


def test_12_the_first_insert_makes_the_statistics(place: Place) -> None:
    with place.connect(data_inlining_row_limit=0) as lake:
        t = lake.transaction()
        made = t.create_table("main", "t", plain("a"))
        t.commit()
        assert lake.snapshot().statistics(lake.snapshot().table("main", "t")) is None
        t = lake.transaction()
        made = t.table("main", "t")
        t.append(made, [write_file(made, [(1,), (2,)])])
        t.commit()
    place.judged("INSERT INTO t VALUES (3)", data_inlining_row_limit=0)
    assert [row[0] for row in place.asked("SELECT rowid FROM t ORDER BY 1")] == [0, 1, 2]


def test_16_nan_does_not_narrow_bounds() -> None:
    column = scalar("c", "float64", id=ColumnId(1))
    before = tables.TableColumnStats(7, 1, False, False, "1.0", "2.0", None)
    with_nan = ColumnStatistics(2, 0, 5.0, 5.0, contains_nan=True)
    expected = before._replace(contains_nan=True, max_value="5.0", max_is_exact=True)
    assert merged(before, with_nan, column=column) == expected
    only_nan = ColumnStatistics(1, 0, contains_nan=True)
    assert merged(before, only_nan, column=column) == before._replace(contains_nan=True, min_value=None, max_value=None)


@pytest.mark.parametrize("values", [[math.nan], [math.nan, 1.0], [1.0, 1e300], [-math.inf, math.nan]])
def test_16_rows_with_nan_are_found(place: Place, values: list[float]) -> None:
    with place.connect(data_inlining_row_limit=0) as lake:
        t = lake.transaction()
        made = t.create_table("main", "t", [scalar("f", "float64")])
        file = write_file(made, [(value,) for value in values])
        plain_ones = [value for value in values if not math.isnan(value)]
        statistics = ColumnStatistics(
            len(values),
            0,
            min(plain_ones, default=None),
            max(plain_ones, default=None),
            contains_nan=len(plain_ones) < len(values),
        )
        file.columns[ColumnId(1)] = statistics  # type: ignore[index]
        t.append(made, [file])
        t.commit()
    place.judged("INSERT INTO t VALUES (3)", data_inlining_row_limit=0)
    assert place.asked("SELECT count(*) FROM t WHERE isnan(f)") == [(sum(map(math.isnan, values)),)]
    greater = sum(math.isnan(value) or value > 2 for value in values) + 1
    assert place.asked("SELECT count(*) FROM t WHERE f > 2") == [(greater,)]


def test_18_bounds_of_an_older_type_that_do_not_read_are_dropped() -> None:
    column = Column("c", decimal(4, 1), id=ColumnId(1))
    assert merged(KNOWN._replace(max_value="99999"), ColumnStatistics(1, 0, 1, 1), column=column) is None


def test_18_texts_with_a_nul_are_no_bounds(place: Place) -> None:
    with place.connect(data_inlining_row_limit=0) as lake:
        t = lake.transaction()
        made = t.create_table("main", "t", [scalar("s", "varchar")])
        t.append(made, [write_file(made, [("a\0b",), ("c",)])])
        t.commit()
    assert not place.tables()["ducklake_table_column_stats"]
    assert place.asked("SELECT count(*) FROM t WHERE s > 'a'") == [(2,)]


def test_24_a_file_of_a_bucketed_table_says_its_bucket(lake: Lake) -> None:
    t = lake.transaction()
    found = t.set_partitioning("main", "t", [("a", "bucket(4)")])
    with pytest.raises(ChangeRefused, match="no partition values"):
        t.append(found, [write_file(found, [(1, 1)])])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("UPDATE ducklake_column SET column_type = 'int33' WHERE column_id = 1", "int33"),
        ("UPDATE ducklake_column SET column_type = 'decimal(99,2)' WHERE column_id = 1", "decimal"),
        ("UPDATE ducklake_snapshot_changes SET changes_made = 'painted:1' WHERE snapshot_id = 2", "painted"),
    ],
)
def test_30_metadata_that_nobody_can_read_is_named(lake: Lake, place: Place, spoil: str, said: str) -> None:
    before = lake.transaction()
    t = lake.transaction()
    t.comment_on_table("main", "t", "x")
    t.commit()
    place.execute(spoil)
    with pytest.raises(InvalidMetadata, match=said):  # noqa: PT012
        lake.snapshot().table("main", "t")
        before.comment_on_table("main", "t", "y")
        before.commit()


def test_30_a_view_has_aliases_even_if_none(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    t.create_view("main", "v", "SELECT 1 AS a")
    t.commit()
    assert [row["column_aliases"] for row in place.tables()["ducklake_view"]] == [""]
    assert place.asked("FROM v") == [(1,)]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_31_an_inlining_limit_may_be_set_beside_a_view(kind: str, place_of: PlaceOf) -> None:
    place = place_of(kind)
    with place.connect(data_inlining_row_limit=0) as lake:
        t = lake.transaction()
        t.create_view("main", "v", "SELECT 1 AS a")
        t.commit()
        lake.set_option("data_inlining_row_limit", 5)
    place.judged("CREATE TABLE t AS SELECT 1 AS a")
    assert place.asked("FROM v") == [(1,)]


def test_36_a_lake_may_inline_nothing(place: Place) -> None:
    with place.connect() as lake:
        lake.set_option("data_inlining_row_limit", 0)
        t = lake.transaction()
        t.create_table("main", "t", plain("a"))
        t.commit()
    assert not place.tables()["ducklake_inlined_data_tables"]


def test_a_column_added_with_a_default_holds_it_in_older_rows(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    t.add_column("main", "t", Column("d", decimal(9, 2), default=Default("1.5")))
    t.commit()
    assert place.asked("SELECT DISTINCT CAST(d AS VARCHAR) FROM t") == [("1.50",)]


WIDENED = (
    "boolean", "int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64", "uint128", "float32",
    "float64", "decimal(9,2)", "decimal(12,2)", "decimal(12,4)", "decimal(38,10)", "date", "timestamp", "timestamp_s",
    "timestamp_ms", "timestamp_ns", "timestamptz", "time", "interval", "varchar", "blob", "uuid", "json",
)  # fmt: skip


def test_types_widen_as_the_extension_lets_them(place_of: PlaceOf) -> None:
    place = place_of("sqlite")
    wrong = []
    with place.attached() as judge:
        for old in WIDENED:
            judge.run(f"CREATE OR REPLACE TABLE t (c {sql_type(old)})")
            for new in WIDENED:
                if old == new:
                    continue
                judge.run("BEGIN")
                try:
                    judge.run(f"ALTER TABLE t ALTER COLUMN c SET TYPE {sql_type(new)}")
                    allowed = True
                except duckdb.Error:
                    allowed = False
                judge.run("ROLLBACK")
                if can_widen(type_from_text(old), type_from_text(new)) is not allowed:
                    wrong.append((old, new, allowed))
    assert not wrong


def sql_type(name: str) -> str:
    return duckdb_type(Column("c", type_from_text(name)))


def test_a_container_never_changes_its_kind() -> None:
    assert not can_widen(ColumnType("struct"), ColumnType("json"))
