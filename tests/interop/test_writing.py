"""Differential writing: each operation done by the extension in one lake and by us in its twin leaves the same
metadata.

Then the extension reads both lakes at every snapshot and finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import Column, ColumnType, Default, Lake, SortField, Table, Transaction, decimal
from dbt.adapters.ducklake.lake.columns import scalar
from tests.conftest import PlaceOf
from tests.interop.compared import differences, everything_read
from tests.interop.copied import deletes_added, ended_files, files_added
from tests.places import Place

Ours = Callable[[Transaction, Place], Any]


@dataclass
class Case:
    """`theirs` and `ours` do the same after `setup`, which the extension runs on both lakes."""

    theirs: str | Sequence[str]
    ours: Ours
    setup: Sequence[str] = ()
    options: dict[str, Any] = field(default_factory=lambda: {"data_inlining_row_limit": 0})
    # Tables of the metadata in which ours rightly differs.
    but_for: tuple[str, ...] = ()


def table(t: Transaction, name: str = "t") -> Table:
    return t.table("main", name)


def struct(name: str, *fields: Column) -> Column:
    return Column(name, ColumnType("struct"), fields)


def list_of(name: str, type_name: str) -> Column:
    return Column(name, ColumnType("list"), (scalar("element", type_name),))


def map_of(name: str, key: str, value: str) -> Column:
    return Column(name, ColumnType("map"), (scalar("key", key), scalar("value", value)))


def append(t: Transaction, theirs: Place) -> None:
    t.append(table(t), files_added(theirs, table(t)))


def update(t: Transaction, theirs: Place) -> None:
    """An UPDATE: rows that come and rows that go."""
    append(t, theirs)
    delete(t, theirs)


def delete(t: Transaction, theirs: Place) -> None:
    t.delete(table(t), deletes_added(theirs, table(t)), ended_files(theirs, table(t)))


def create_as(t: Transaction, theirs: Place) -> None:
    made = t.create_table("main", "t", [scalar("a", "int32"), scalar("b", "varchar")])
    t.append(made, files_added(theirs, made))


def replace_as(t: Transaction, theirs: Place) -> None:
    made = t.replace_table("main", "t", [scalar("k", "int32")])
    t.append(made, files_added(theirs, made))


INLINED = {"data_inlining_row_limit": 100}
NUMBERS = ["CREATE TABLE t (a INT, b VARCHAR)", "INSERT INTO t SELECT i, 'x' || i FROM range(100) r(i)"]
NESTED = ["CREATE TABLE t (i INT, s STRUCT(a INT, b VARCHAR[]), m MAP(VARCHAR, INT))"]
# Dates, floats, NULLs, nested values: what statistics can get wrong.
KINDS_OF_VALUES = [
    "CREATE TABLE t (i BIGINT, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, f DOUBLE, g FLOAT, e DECIMAL(9, 2), s VARCHAR, "
    "x BLOB, u UUID, o BOOLEAN, l INT[], c STRUCT(p INT, q VARCHAR), m MAP(VARCHAR, INT), ti TIME, h HUGEINT)"
]
A_ROW = (
    "SELECT {0}, DATE '2020-01-01' + {0}::INT, TIMESTAMP '2020-01-01' + INTERVAL ({0}) HOUR, "
    "TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL ({0}) HOUR, {0} / 3.0, {0} / 7.0, {0} * 1.25, 'é' || {0}, "
    "encode('b' || {0}), md5('u' || {0})::UUID, {0} % 2 = 0, [{0}, NULL], {{'p': {0}, 'q': 'z' || {0}}}, "
    "MAP {{'k' || {0}: {0}}}, "
    "TIME '00:00:00' + INTERVAL ({0}) MINUTE, {0} * 1000000007::HUGEINT"
)
INSERT_VALUES = f"INSERT INTO t {A_ROW.format('i')} FROM range(50) r(i)"

A_ROW_NAMED = (
    f"SELECT * FROM ({A_ROW.format('i')} FROM range(50) r(i)) AS v(i, d, ts, tz, f, g, e, s, x, u, o, l, c, m, ti, h)"
)

COPY_GIVEN = (
    "COPY (SELECT i::INT AS i, {{'a': i::INT, 'b': [i::INT]}} AS s, MAP {{'k': i::INT}} AS m FROM range(20) r(i)) "
    "TO '{folder}/given.parquet'"
)

CASES: dict[str, Case] = {
    "create_schema": Case("CREATE SCHEMA s", lambda t, _: t.create_schema("s")),
    "create_schema_with_odd_name": Case('CREATE SCHEMA "a ""b, c"', lambda t, _: t.create_schema('a "b, c')),
    "drop_schema": Case("DROP SCHEMA s", lambda t, _: t.drop_schema("s"), ["CREATE SCHEMA s"]),
    "drop_schema_cascade": Case(
        "DROP SCHEMA s CASCADE",
        lambda t, _: t.drop_schema("s", cascade=True),
        ["CREATE SCHEMA s", "CREATE TABLE s.t AS SELECT 1 AS a", "CREATE VIEW s.v AS SELECT 2 AS b"],
    ),
    "create_table": Case(
        "CREATE TABLE t (a INT, b VARCHAR NOT NULL, c DECIMAL(9, 2) DEFAULT 1.5, d DATE DEFAULT '2020-01-02', "
        "e TIMESTAMP DEFAULT now(), n STRUCT(x INT, y VARCHAR[]), m MAP(VARCHAR, DOUBLE))",
        lambda t, _: t.create_table(
            "main",
            "t",
            [
                scalar("a", "int32"),
                scalar("b", "varchar", nullable=False),
                Column("c", decimal(9, 2), default=Default("1.5")),
                scalar("d", "date", default=Default("2020-01-02")),
                scalar("e", "timestamp", default=Default("now()", "expression")),
                struct("n", scalar("x", "int32"), list_of("y", "varchar")),
                map_of("m", "varchar", "float64"),
            ],
        ),
    ),
    "create_table_with_inlining": Case(
        "CREATE TABLE t (a INT, l INT[])",
        lambda t, _: t.create_table("main", "t", [scalar("a", "int32"), list_of("l", "int32")]),
        options=INLINED,
    ),
    "create_table_with_odd_name": Case(
        'CREATE TABLE "t é.""x" (a INT)', lambda t, _: t.create_table("main", 't é."x', [scalar("a", "int32")])
    ),
    "create_table_as": Case("CREATE TABLE t AS SELECT i::INT AS a, 'x' AS b FROM range(20) r(i)", create_as),
    "replace_table": Case("CREATE OR REPLACE TABLE t AS SELECT 7 AS k", replace_as, NUMBERS),
    "drop_table": Case(
        "DROP TABLE t",
        lambda t, _: t.drop_table("main", "t"),
        [
            *NUMBERS,
            "COMMENT ON TABLE t IS 'x'",
            "COMMENT ON COLUMN t.a IS 'y'",
            "ALTER TABLE t SET PARTITIONED BY (a)",
            "ALTER TABLE t SET SORTED BY (b)",
            "DELETE FROM t WHERE a < 3",
        ],
    ),
    "rename_table": Case("ALTER TABLE t RENAME TO u", lambda t, _: t.rename_table("main", "t", "u"), NUMBERS),
    "rename_table_with_inlining": Case(
        "ALTER TABLE t RENAME TO u", lambda t, _: t.rename_table("main", "t", "u"), NUMBERS, INLINED
    ),
    "add_column": Case(
        "ALTER TABLE t ADD COLUMN c INT DEFAULT 5",
        lambda t, _: t.add_column("main", "t", scalar("c", "int32", default=Default("5"))),
        NUMBERS,
    ),
    "add_column_with_inlining": Case(
        "ALTER TABLE t ADD COLUMN c INT", lambda t, _: t.add_column("main", "t", scalar("c", "int32")), NUMBERS, INLINED
    ),
    "add_nested_column": Case(
        "ALTER TABLE t ADD COLUMN c STRUCT(x INT, y INT[])",
        lambda t, _: t.add_column("main", "t", struct("c", scalar("x", "int32"), list_of("y", "int32"))),
        NUMBERS,
    ),
    "add_column_after_drop_takes_a_new_id": Case(
        "ALTER TABLE t ADD COLUMN b VARCHAR",
        lambda t, _: t.add_column("main", "t", scalar("b", "varchar")),
        [*NUMBERS, "ALTER TABLE t DROP COLUMN b"],
    ),
    "add_field": Case(
        "ALTER TABLE t ADD COLUMN s.c INT", lambda t, _: t.add_column("main", "t", scalar("c", "int32"), ("s",)), NESTED
    ),
    "add_nested_field": Case(
        "ALTER TABLE t ADD COLUMN s.c STRUCT(x INT)",
        lambda t, _: t.add_column("main", "t", struct("c", scalar("x", "int32")), ("s",)),
        NESTED,
    ),
    "drop_column": Case("ALTER TABLE t DROP COLUMN b", lambda t, _: t.drop_column("main", "t", ("b",)), NUMBERS),
    "drop_column_with_inlining": Case(
        "ALTER TABLE t DROP COLUMN b", lambda t, _: t.drop_column("main", "t", ("b",)), NUMBERS, INLINED
    ),
    "drop_nested_column": Case(
        "ALTER TABLE t DROP COLUMN s",
        lambda t, _: t.drop_column("main", "t", ("s",)),
        [*NESTED, "COMMENT ON COLUMN t.s IS 'x'"],
    ),
    "drop_field": Case("ALTER TABLE t DROP COLUMN s.b", lambda t, _: t.drop_column("main", "t", ("s", "b")), NESTED),
    "rename_column": Case(
        "ALTER TABLE t RENAME COLUMN b TO c", lambda t, _: t.rename_column("main", "t", ("b",), "c"), NUMBERS
    ),
    "rename_sort_column": Case(
        "ALTER TABLE t RENAME COLUMN b TO c",
        lambda t, _: t.rename_column("main", "t", ("b",), "c"),
        [*NUMBERS, "ALTER TABLE t SET SORTED BY (b DESC, a)"],
    ),
    "rename_field": Case(
        "ALTER TABLE t RENAME COLUMN s.b TO c", lambda t, _: t.rename_column("main", "t", ("s", "b"), "c"), NESTED
    ),
    "rename_scalar_field": Case(
        "ALTER TABLE t RENAME COLUMN s.a TO c", lambda t, _: t.rename_column("main", "t", ("s", "a"), "c"), NESTED
    ),
    "change_type": Case(
        "ALTER TABLE t ALTER COLUMN a SET TYPE BIGINT",
        lambda t, _: t.change_type("main", "t", ("a",), scalar("a", "int64")),
        NUMBERS,
    ),
    "change_field_type": Case(
        "ALTER TABLE t ALTER COLUMN s SET TYPE STRUCT(a BIGINT, b VARCHAR[])",
        lambda t, _: t.change_type("main", "t", ("s", "a"), scalar("a", "int64")),
        NESTED,
    ),
    "set_not_null": Case(
        "ALTER TABLE t ALTER COLUMN a SET NOT NULL", lambda t, _: t.set_nullable("main", "t", ("a",), False), NUMBERS
    ),
    "drop_not_null": Case(
        "ALTER TABLE t ALTER COLUMN a DROP NOT NULL",
        lambda t, _: t.set_nullable("main", "t", ("a",), True),
        ["CREATE TABLE t (a INT NOT NULL)"],
    ),
    "set_default": Case(
        "ALTER TABLE t ALTER COLUMN a SET DEFAULT 7",
        lambda t, _: t.set_default("main", "t", ("a",), Default("7")),
        NUMBERS,
    ),
    "drop_default": Case(
        "ALTER TABLE t ALTER COLUMN a DROP DEFAULT",
        lambda t, _: t.set_default("main", "t", ("a",), Default()),
        ["CREATE TABLE t (a INT DEFAULT 3)"],
    ),
    "set_partitioning": Case(
        "ALTER TABLE t SET PARTITIONED BY (a, bucket(8, b))",
        lambda t, _: t.set_partitioning("main", "t", [("a", "identity"), ("b", "bucket(8)")]),
        NUMBERS,
    ),
    "change_partitioning": Case(
        "ALTER TABLE t SET PARTITIONED BY (year(d), d)",
        lambda t, _: t.set_partitioning("main", "t", [("d", "year"), ("d", "identity")]),
        ["CREATE TABLE t (d DATE)", "ALTER TABLE t SET PARTITIONED BY (month(d))"],
    ),
    "same_partitioning_again": Case(
        "ALTER TABLE t SET PARTITIONED BY (a)",
        lambda t, _: t.set_partitioning("main", "t", [("a", "identity")]),
        [*NUMBERS, "ALTER TABLE t SET PARTITIONED BY (a)"],
    ),
    "reset_partitioning": Case(
        "ALTER TABLE t RESET PARTITIONED BY",
        lambda t, _: t.set_partitioning("main", "t", []),
        [*NUMBERS, "ALTER TABLE t SET PARTITIONED BY (a)"],
    ),
    "set_sort": Case(
        "ALTER TABLE t SET SORTED BY (a DESC NULLS FIRST, b)",
        lambda t, _: t.set_sort("main", "t", [SortField("a", descending=True, nulls_first=True), SortField("b")]),
        NUMBERS,
    ),
    "change_sort": Case(
        "ALTER TABLE t SET SORTED BY (b)",
        lambda t, _: t.set_sort("main", "t", [SortField("b")]),
        [*NUMBERS, "ALTER TABLE t SET SORTED BY (a)"],
    ),
    "reset_sort": Case(
        "ALTER TABLE t RESET SORTED BY",
        lambda t, _: t.set_sort("main", "t", []),
        [*NUMBERS, "ALTER TABLE t SET SORTED BY (a)"],
    ),
    "comment_on_table": Case(
        "COMMENT ON TABLE t IS 'it''s'", lambda t, _: t.comment_on_table("main", "t", "it's"), NUMBERS
    ),
    "change_comment_on_table": Case(
        "COMMENT ON TABLE t IS 'new'",
        lambda t, _: t.comment_on_table("main", "t", "new"),
        [*NUMBERS, "COMMENT ON TABLE t IS 'old'"],
    ),
    "remove_comment_on_table": Case(
        "COMMENT ON TABLE t IS NULL",
        lambda t, _: t.comment_on_table("main", "t", None),
        [*NUMBERS, "COMMENT ON TABLE t IS 'old'"],
    ),
    "comment_on_column": Case(
        "COMMENT ON COLUMN t.b IS 'new'",
        lambda t, _: t.comment_on_column("main", "t", ("b",), "new"),
        [*NUMBERS, "COMMENT ON COLUMN t.b IS 'old'"],
    ),
    "create_view": Case(
        "CREATE VIEW v AS SELECT 1 AS a", lambda t, _: t.create_view("main", "v", "SELECT 1 AS a"), NUMBERS
    ),
    "create_view_with_aliases": Case(
        'CREATE VIEW v (x, "y ""z") AS SELECT 1 AS a, 2 AS b',
        lambda t, _: t.create_view("main", "v", "SELECT 1 AS a, 2 AS b", aliases=["x", 'y "z']),
    ),
    "replace_view": Case(
        "CREATE OR REPLACE VIEW v AS SELECT 2 AS b",
        lambda t, _: t.replace_view("main", "v", "SELECT 2 AS b"),
        ["CREATE VIEW v AS SELECT 1 AS a", "COMMENT ON VIEW v IS 'x'"],
    ),
    "drop_view": Case(
        "DROP VIEW v",
        lambda t, _: t.drop_view("main", "v"),
        ["CREATE VIEW v AS SELECT 1 AS a", "COMMENT ON VIEW v IS 'x'"],
    ),
    "rename_view": Case(
        "ALTER VIEW v RENAME TO w", lambda t, _: t.rename_view("main", "v", "w"), ["CREATE VIEW v AS SELECT 1 AS a"]
    ),
    "comment_on_view": Case(
        "COMMENT ON VIEW v IS 'x'",
        lambda t, _: t.comment_on_view("main", "v", "x"),
        ["CREATE VIEW v AS SELECT 1 AS a"],
    ),
    "first_append": Case(INSERT_VALUES, append, KINDS_OF_VALUES),
    "append": Case(INSERT_VALUES, append, [*KINDS_OF_VALUES, f"INSERT INTO t {A_ROW.format('-3')}"]),
    "append_of_nulls": Case("INSERT INTO t (i) SELECT * FROM range(3)", append, [*KINDS_OF_VALUES, INSERT_VALUES]),
    "append_after_nulls": Case(INSERT_VALUES, append, [*KINDS_OF_VALUES, "INSERT INTO t (i) VALUES (NULL)"]),
    "append_of_nan": Case(
        "INSERT INTO t VALUES ('NaN'), (1)", append, ["CREATE TABLE t (f DOUBLE)", "INSERT INTO t VALUES (5)"]
    ),
    "append_with_later_column": Case(
        "INSERT INTO t VALUES (5, 'x', 6)", append, [*NUMBERS, "ALTER TABLE t ADD COLUMN c INT"]
    ),
    "append_after_change_of_type": Case(
        "INSERT INTO t VALUES (500, 'x')", append, [*NUMBERS, "ALTER TABLE t ALTER COLUMN a SET TYPE BIGINT"]
    ),
    "append_to_partitions": Case(
        "INSERT INTO t SELECT i, 'x' || i FROM range(40) r(i)",
        append,
        [NUMBERS[0], "ALTER TABLE t SET PARTITIONED BY (bucket(3, b))"],
    ),
    "append_to_calendar_partitions": Case(
        "INSERT INTO t SELECT TIMESTAMP '2024-02-28 22:30:00' + INTERVAL (i) HOUR, i % 3 = 0, 'a/b c=' || i % 2 "
        "FROM range(40) r(i)",
        append,
        [
            "CREATE TABLE t (ts TIMESTAMP, o BOOLEAN, s VARCHAR)",
            "ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts), day(ts), o, s)",
        ],
    ),
    "append_of_null_keys": Case(
        "INSERT INTO t VALUES (NULL, NULL), (1, ''), (NULL, '')",
        append,
        [NUMBERS[0], "ALTER TABLE t SET PARTITIONED BY (bucket(3, a), b)"],
        # Of several files at once, one with NULLs only makes DuckDB forget the bounds of the others. Ours are right.
        but_for=("ducklake_table_column_stats",),
    ),
    "register_mapped_file": Case(
        "CALL ducklake_add_data_files('lake', 't', '{folder}/given.parquet')",
        append,
        ["CREATE TABLE t (i INT, s STRUCT(a INT, b INT[]), m MAP(VARCHAR, INT))", COPY_GIVEN],
    ),
    "register_second_file_of_the_same_mapping": Case(
        "CALL ducklake_add_data_files('lake', 't', '{folder}/given.parquet')",
        append,
        [
            "CREATE TABLE t (i INT, s STRUCT(a INT, b INT[]), m MAP(VARCHAR, INT))",
            COPY_GIVEN,
            "CALL ducklake_add_data_files('lake', 't', '{folder}/given.parquet')",
        ],
    ),
    "delete_some": Case("DELETE FROM t WHERE a < 5", delete, NUMBERS),
    "delete_more": Case("DELETE FROM t WHERE a BETWEEN 10 AND 30", delete, [*NUMBERS, "DELETE FROM t WHERE a < 5"]),
    "delete_whole_file": Case("DELETE FROM t", delete, NUMBERS),
    "delete_rest_of_file": Case("DELETE FROM t", delete, [*NUMBERS, "DELETE FROM t WHERE a < 5"]),
    "truncate": Case("TRUNCATE t", delete, [*NUMBERS, NUMBERS[1]]),
    "update": Case("UPDATE t SET b = 'new' WHERE a < 5", update, NUMBERS),
    "merge": Case(
        "MERGE INTO t USING (SELECT i::INT AS a FROM range(95, 105) r(i)) s ON t.a = s.a "
        "WHEN MATCHED THEN UPDATE SET b = 'up' WHEN NOT MATCHED THEN INSERT VALUES (s.a, 'in')",
        update,
        NUMBERS,
    ),
    "inline_rows": Case(
        "INSERT INTO t VALUES (1, 'é'), (2, NULL), (NULL, '')",
        lambda t, _: t.insert_inlined(table(t), [(1, "é"), (2, None), (None, "")]),
        [NUMBERS[0]],
        INLINED,
    ),
    "inline_rows_of_nan": Case(
        "INSERT INTO t VALUES ('NaN'), (1), ('-inf')",
        lambda t, _: t.insert_inlined(table(t), [(float("nan"),), (1.0,), (float("-inf"),)]),
        ["CREATE TABLE t (f DOUBLE)", "INSERT INTO t VALUES (5)"],
        INLINED,
    ),
    "inline_rows_of_all_kinds": Case(
        "INSERT INTO t SELECT * EXCLUDE (x, o, h, m) FROM (" + A_ROW_NAMED + ") ORDER BY i",
        lambda t, theirs: t.insert_inlined(table(t), inlined_by(theirs)),
        # Of blobs, booleans and 128-bit integers DuckDB spells the bounds of inlined rows otherwise than those of
        # files, and in SQLite and PostgreSQL it quotes strings within lists only where it must.
        ["CREATE TABLE t AS SELECT * EXCLUDE (x, o, h, m) FROM (" + A_ROW_NAMED + ") LIMIT 0"],
        INLINED,
    ),
    "inline_rows_beside_files": Case(
        "INSERT INTO t VALUES (-1, 'a')",
        lambda t, _: t.insert_inlined(table(t), [(-1, "a")]),
        NUMBERS,
        {"data_inlining_row_limit": 10},
    ),
    "inline_rows_without_their_table": Case(
        "INSERT INTO t VALUES (-1, 'a')",
        lambda t, _: t.insert_inlined(table(t), [(-1, "a")]),
        [NUMBERS[0], "CALL lake.set_option('data_inlining_row_limit', 10)"],
        {"data_inlining_row_limit": 0},
    ),
    "inline_rows_of_new_table": Case(
        "CREATE TABLE t AS SELECT 1 AS a",
        lambda t, _: t.insert_inlined(t.create_table("main", "t", [scalar("a", "int32")]), [(1,)]),
        options=INLINED,
    ),
    "inline_after_add_column": Case(
        "INSERT INTO t VALUES (7, 'x', 8)",
        lambda t, _: t.insert_inlined(table(t), [(7, "x", 8)]),
        [NUMBERS[0], "INSERT INTO t VALUES (1, 'y')", "ALTER TABLE t ADD COLUMN c INT"],
        INLINED,
    ),
    "end_inlined_rows": Case(
        "DELETE FROM t WHERE a = 2",
        lambda t, _: t.end_inlined(table(t), [r for r in t.base.files(table(t)).inlined_rows if r.values[0] == 2]),
        [NUMBERS[0], "INSERT INTO t VALUES (1, 'y'), (2, 'z')"],
        INLINED,
    ),
    "update_inlined_row": Case(
        "UPDATE t SET b = 'new' WHERE a = 2",
        lambda t, _: update_inlined(t),
        [NUMBERS[0], "INSERT INTO t VALUES (1, 'y'), (2, 'z')"],
        INLINED,
    ),
    "inlined_delete": Case(
        "DELETE FROM t WHERE a IN (3, 5)",
        lambda t, _: t.delete_inlined(table(t), {t.base.files(table(t)).data_files[0].id: [3, 5]}),
        NUMBERS,
        {"data_inlining_row_limit": 10},
    ),
    "second_inlined_delete": Case(
        "DELETE FROM t WHERE a = 4",
        lambda t, _: t.delete_inlined(table(t), {t.base.files(table(t)).data_files[0].id: [4]}),
        [*NUMBERS, "DELETE FROM t WHERE a IN (3, 5)"],
        {"data_inlining_row_limit": 10},
    ),
    "commit_message": Case(
        ["BEGIN", "CREATE SCHEMA s", "CALL lake.set_commit_message('me', 'why', extra_info => '{\"a\": 1}')", "COMMIT"],
        lambda t, _: create_schema_and_say(t),
    ),
    "nothing": Case("DELETE FROM t WHERE a > 1000", lambda t, _: t.delete(table(t), []), NUMBERS),
}


def inlined_by(theirs: Place) -> list[Sequence[Any]]:
    """The inlined rows of the other lake, read by us."""
    with theirs.connect() as lake:
        snapshot = lake.snapshot()
        return [row.values for row in snapshot.files(snapshot.table("main", "t")).inlined_rows]


def create_schema_and_say(t: Transaction) -> None:
    t.create_schema("s")
    t.say("me", "why", '{"a": 1}')


def update_inlined(t: Transaction) -> None:
    row = next(row for row in t.base.files(table(t)).inlined_rows if row.values[0] == 2)
    t.end_inlined(table(t), [row])
    t.insert_inlined(table(t), [(2, "new")], row_ids=[row.row_id])


@pytest.mark.parametrize("name", CASES)
def test_same_metadata_as_the_extension(name: str, kind: str, place_of: PlaceOf) -> None:
    case, theirs, ours = CASES[name], place_of(kind), place_of(kind)
    theirs.options, ours.options = dict(case.options), dict(case.options)
    statements = [case.theirs] if isinstance(case.theirs, str) else case.theirs
    theirs.judged(*in_folder(case.setup, theirs))
    theirs.judged(*in_folder(statements, theirs))
    ours.judged(*in_folder(case.setup, ours))
    with ours.connect() as lake:
        commit(lake, case.ours, theirs)
    found = differences(ours.tables(), theirs.tables())
    assert not [line for line in found if not any(table in line for table in case.but_for)]
    assert everything_read(ours) == everything_read(theirs)


def in_folder(statements: Sequence[str], place: Place) -> list[str]:
    return [
        statement.replace("{folder}", str(place.folder)).replace("{{", "{").replace("}}", "}")
        for statement in statements
    ]


def commit(lake: Lake, ours: Ours, theirs: Place) -> None:
    transaction = lake.transaction()
    ours(transaction, theirs)
    transaction.commit()


def test_a_new_lake_has_the_rows_that_the_extension_makes(kind: str, place_of: PlaceOf) -> None:
    theirs, ours = place_of(kind), place_of(kind)
    theirs.judged()
    ours.connect().close()
    assert not differences(ours.tables(), theirs.tables())
    made = {row["key"]: row["value"] for row in ours.tables()["ducklake_metadata"]}
    assert made == {"version": "1.0", "created_by": "dbt-ducklake", "data_path": ours.data_path, "encrypted": "false"}
