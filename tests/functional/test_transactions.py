"""What a transaction sees, refuses and brings into the lake; what a second one that came first does to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnStatistics,
    ColumnType,
    CommitConflict,
    CommitOutcomeUnknown,
    Default,
    DeletesToAdd,
    FileId,
    FileToAdd,
    InlinedRow,
    Lake,
    Patience,
    SnapshotId,
    SortField,
    Table,
    Transaction,
    decimal,
    type_from_text,
)
from dbt.adapters.ducklake.lake.backends.base import CommitBroken, Connection, Contended, Row
from dbt.adapters.ducklake.lake.columns import scalar
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    ColumnNotFound,
    CommitContended,
    FileNotFound,
    InvalidOption,
    NameTaken,
    SchemaNotFound,
    SnapshotNotFound,
    StaleDeleteFile,
    TableNotFound,
)
from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.lake.transaction import commit as commit_module
from tests.places import Place
from tests.written import plain, write_deletes, write_file

QUICK = Patience(attempts=5, wait_ms=1, backoff=1.0)


@pytest.fixture
def lake(place: Place) -> Iterator[Lake]:
    """A lake with a table t(a, b) of one file with rows (0, 0) to (9, 0)."""
    with place.connect(data_inlining_row_limit=0, patience=QUICK) as opened:
        first = opened.transaction()
        made = first.create_table("main", "t", plain("a", "b"))
        first.append(made, [write_file(made, [(n, 0) for n in range(10)])])
        first.commit()
        yield opened


def table(lake: Lake) -> Table:
    return lake.snapshot().table("main", "t")


def only_file(lake: Lake) -> FileId:
    return lake.snapshot().files(table(lake)).data_files[0].id


def rows(place: Place, version: int | None = None) -> list[tuple[int, int]]:
    at = "" if version is None else f" AT (VERSION => {version})"
    return place.asked(f"SELECT * FROM t{at} ORDER BY ALL")


# Seeing.


def test_a_transaction_sees_its_own_changes_and_the_lake_does_not(lake: Lake) -> None:
    t = lake.transaction()
    t.create_schema("s")
    t.create_table("s", "x", plain("a"))
    t.rename_table("main", "t", "u")
    t.add_column("main", "u", scalar("c", "varchar"))
    assert [column.name for column in t.table("main", "U").columns] == ["a", "b", "c"]
    with pytest.raises(TableNotFound, match=r"Table main.t is not in snapshot 1"):
        t.table("main", "t")
    assert lake.snapshot().find_schema("s") is None
    snapshot = t.commit()
    assert lake.snapshot().id == snapshot
    assert lake.snapshot().table("main", "u").columns[2].id == 3
    assert [table.name for table in lake.snapshot().tables("s")] == ["x"]


def test_many_changes_are_one_snapshot(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    found = t.rename_column("main", "t", ("b",), "c")
    found = t.add_column("main", "t", scalar("d", "int64", default=Default("7")))
    found = t.comment_on_column("main", "t", ("a",), "key")
    found = t.set_sort("main", "t", [SortField("a")])
    t.append(found, [write_file(found, [(100, 1, 2)])])
    t.create_view("main", "v", "SELECT 1 AS one")
    other = t.create_table("main", "other", plain("x"))
    other = t.add_column("main", "other", scalar("y", "int64"))
    t.append(other, [write_file(other, [(1, 2)])])
    t.create_table("main", "never", plain("x"))
    t.drop_table("main", "never")
    assert t.commit() == 2
    assert lake.commit_info(2).changes == (
        'created_table:"main"."other",created_view:"main"."v",inserted_into_table:1,inserted_into_table:3,altered_table:1'
    )
    assert place.asked("SELECT a, c, d FROM t WHERE a IN (3, 100) ORDER BY a") == [(3, 0, 7), (100, 1, 2)]
    assert place.asked("SELECT * FROM other") == [(1, 2)]
    assert place.asked("SELECT * FROM v") == [(1,)]
    assert rows(place, 1) == [(n, 0) for n in range(10)]


def test_no_changes_make_no_snapshot(lake: Lake) -> None:
    t = lake.transaction()
    t.set_sort("main", "t", [])
    t.comment_on_table("main", "t", None)
    t.append(t.table("main", "t"), [])
    t.append(t.table("main", "t"), [FileToAdd("empty.parquet", 0, 1)])
    t.create_table("main", "x", plain("a"))
    t.drop_table("main", "x")
    assert t.commit() == t.base.id == lake.snapshot().id


def test_a_snapshot_never_changes(lake: Lake) -> None:
    before = lake.snapshot()
    files = before.files(before.table("main", "t"))
    t = lake.transaction()
    t.delete(t.table("main", "t"), [], [only_file(lake)])
    t.drop_column("main", "t", ("b",))
    t.commit()
    assert before.files(before.table("main", "t")) is files
    again = lake.snapshot(version=before.id)
    assert [column.name for column in again.table("main", "t").columns] == ["a", "b"]
    assert len(again.files(again.table("main", "t")).data_files) == 1
    assert not lake.snapshot().files(table(lake)).data_files


def test_an_expired_snapshot_is_said_to_be_gone(lake: Lake, place: Place) -> None:
    first = lake.snapshot()
    t = lake.transaction()
    t.create_schema("s")
    t.commit()
    place.judged("CALL ducklake_expire_snapshots('lake', versions => [0, 1])")
    with pytest.raises(SnapshotNotFound, match="Snapshots kept: 2 to 2"):
        first.table("main", "t")


def test_what_was_read_is_kept(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = lake.snapshot()
    found = snapshot.table("main", "t")
    snapshot.files(found)

    def never(*_: object) -> None:
        raise AssertionError("asked the database again")

    monkeypatch.setattr(MetadataSession, "query", never)
    assert snapshot.table("MAIN", "T") is found
    snapshot.files(found)


def test_few_queries_whatever_the_lake_holds(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with lake._metadata.reading() as session:
        connection = type(session._connection)
    original, counted = connection.rows, [0]

    def count(self: Connection, sql: str, values: Sequence[object] = ()) -> list[Row]:
        counted[0] += 1
        return original(self, sql, values)

    def queries() -> int:
        counted[0] = 0
        snapshot = lake.snapshot()
        snapshot.files(snapshot.table("main", "t"))
        return counted[0]

    monkeypatch.setattr(connection, "rows", count)
    few = queries()
    t = lake.transaction()
    for number in range(60):
        made = t.create_table("main", f"more{number}", plain("a", "b", "c"))
        t.append(made, [FileToAdd(f"{made.location}{n}.parquet", 1, 1) for n in range(5)])
    t.append(table(lake), [FileToAdd(f"{n}.parquet", 1, 1) for n in range(100)])
    t.commit()
    assert queries() == few <= 24


# Refusals: what would harm the lake is refused before anything is written.


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda t: t.create_schema("MAIN"), NameTaken, "Schema MAIN is already in the lake"),
        (lambda t: t.create_schema(""), ChangeRefused, "may not be empty"),
        (lambda t: t.drop_schema("main"), ChangeRefused, "it holds t"),
        (lambda t: t.drop_schema("nope"), SchemaNotFound, "There are: main"),
        (lambda t: t.create_table("main", "T", plain("a")), NameTaken, "T is already in schema main"),
        (lambda t: t.create_table("main", "n\0", plain("a")), ChangeRefused, "NUL"),
        (lambda t: t.create_table("main", "x", []), ChangeRefused, "at least one column"),
        (lambda t: t.create_table("main", "x", plain("a", "A")), ChangeRefused, "is there twice"),
        (lambda t: t.create_table("main", "x", [Column("s", ColumnType("struct"))]), ChangeRefused, "0 children"),
        (lambda t: t.create_table("main", "x", [Column("s", ColumnType("list"))]), ChangeRefused, "element"),
        (
            lambda t: t.create_table("main", "x", [scalar("a", "int32", default=Default("x"))]),
            ChangeRefused,
            "'x' is not a value of type int32",
        ),
        (lambda t: t.create_table("main", "x", plain("a"), partition_by=[("b", "year")]), ColumnNotFound, "b"),
        (lambda t: t.create_table("main", "x", plain("a"), partition_by=[("a", "week")]), ChangeRefused, "'week'"),
        (lambda t: t.create_table("main", "x", plain("a"), partition_by=[("a", "bucket(0)")]), ChangeRefused, "bucket"),
        (lambda t: t.table("main", "nope"), TableNotFound, "Schema main has: t"),
        (lambda t: t.rename_table("main", "t", "v"), NameTaken, "v is already"),
        (lambda t: t.create_view("main", "t", "SELECT 1"), NameTaken, "t is already"),
        (lambda t: t.replace_view("main", "t", "SELECT 1"), NameTaken, "Table t"),
        (lambda t: t.replace_table("main", "v", plain("a")), NameTaken, "View v"),
        (lambda t: t.view("main", "t"), TableNotFound, "View main.t"),
        (lambda t: t.add_column("main", "t", scalar("A", "int32")), NameTaken, "Column A"),
        (lambda t: t.add_column("main", "t", scalar("c", "int32", nullable=False)), ChangeRefused, "NOT NULL"),
        (
            lambda t: t.add_column("main", "t", scalar("c", "int32", default=Default("now()", "expression"))),
            ChangeRefused,
            "an expression",
        ),
        (lambda t: t.add_column("main", "t", scalar("c", "int32"), ("a",)), ChangeRefused, "not a struct"),
        (lambda t: t.drop_column("main", "t", ("nope",)), ColumnNotFound, "It has: a, b"),
        (
            lambda t: (t.drop_column("main", "t", ("a",)), t.drop_column("main", "t", ("b",))),
            ChangeRefused,
            "only column",
        ),
        (
            lambda t: (t.set_partitioning("main", "t", [("a", "identity")]), t.drop_column("main", "t", ("a",))),
            ChangeRefused,
            "a partition key",
        ),
        (
            lambda t: (t.set_sort("main", "t", [SortField("a + 1")]), t.drop_column("main", "t", ("a",))),
            ChangeRefused,
            "a sort key",
        ),
        (
            lambda t: (t.set_sort("main", "t", [SortField("a + 1")]), t.rename_column("main", "t", ("a",), "c")),
            ChangeRefused,
            "an expression among the sort keys",
        ),
        (lambda t: t.rename_column("main", "t", ("a",), "B"), NameTaken, "Column B"),
        (lambda t: t.change_type("main", "t", ("a",), scalar("a", "int32")), ChangeRefused, "only widens"),
        (lambda t: t.change_type("main", "t", ("a",), scalar("a", "varchar")), ChangeRefused, "from int64 to varchar"),
        (lambda t: t.change_type("main", "t", ("a",), Column("a", decimal(18, 2))), ChangeRefused, "decimal"),
        (lambda t: t.set_nullable("main", "t", ("a",), False, has_nulls=True), ChangeRefused, "has NULL values"),
        (lambda t: t.append(t.table("main", "t"), [file(columns={9: 0})]), ChangeRefused, "column id 9"),
        (lambda t: t.append(t.table("main", "t"), [file(partition_values=("x",))]), ChangeRefused, "the table 0 keys"),
        (
            lambda t: t.append(t.set_partitioning("main", "t", [("a", "bucket(4)")]), [file()]),
            ChangeRefused,
            "no partition values",
        ),
        (
            lambda t: t.delete(t.table("main", "t"), [DeletesToAdd(FileId(0), "x", 1, 1)], [FileId(0)]),
            ChangeRefused,
            "named twice",
        ),
        (
            lambda t: t.insert_inlined(t.create_table("main", "x", plain("row_id")), [(1,)]),
            ChangeRefused,
            "cannot be inlined",
        ),
    ],
)
def test_what_would_harm_the_lake_is_refused(
    lake: Lake, change: Callable[[Transaction], object], error: type[Exception], said: str
) -> None:
    first = lake.transaction()
    first.create_view("main", "v", "SELECT 1 AS a")
    first.commit()
    with pytest.raises(error) as caught:
        change(lake.transaction())
    assert said in str(caught.value)
    assert lake.snapshot().id == 2


def file(columns: dict[int, int] | None = None, partition_values: tuple[str, ...] | None = None) -> FileToAdd:
    statistics = {column: ColumnStatistics(1, nulls) for column, nulls in (columns or {}).items()}
    return FileToAdd("x.parquet", 1, 1, None, statistics, partition_values)  # type: ignore[arg-type]


def test_the_only_field_of_a_struct_is_kept(lake: Lake) -> None:
    t = lake.transaction()
    t.create_table("main", "x", [Column("s", ColumnType("struct"), (scalar("f", "int32"),))])
    with pytest.raises(ChangeRefused, match="only field"):
        t.drop_column("main", "x", ("s", "f"))


# Rows.


def test_deletes_replace_each_other_and_time_travel_stays(lake: Lake, place: Place) -> None:
    """Cumulative delete files without snapshots in them: the older one is kept for its snapshots."""
    first = write_deletes(table(lake), only_file(lake), [(1, 2), (2, 2)])
    commit(lake, lambda t: t.delete(table(lake), [first]))
    older = lake.snapshot().files(table(lake)).data_files[0].delete_file
    assert older is not None
    second = write_deletes(table(lake), only_file(lake), [(1, 2), (2, 2), (5, 3)], replaces=older.id)
    commit(lake, lambda t: t.delete(table(lake), [second]))
    everything = [(n, 0) for n in range(10)]
    assert rows(place, 1) == everything
    assert rows(place, 2) == [row for row in everything if row[0] not in (1, 2)]
    assert rows(place) == [row for row in everything if row[0] not in (1, 2, 5)]


def test_deletes_with_their_snapshots_replace_the_older_file(lake: Lake, place: Place) -> None:
    """As DuckDB does it: one delete file serves all snapshots, and the change feed stays exact."""
    first = write_deletes(table(lake), only_file(lake), [(1, 2)])
    commit(lake, lambda t: t.delete(table(lake), [first]))
    older = lake.snapshot().files(table(lake)).data_files[0].delete_file
    assert older is not None
    second = write_deletes(table(lake), only_file(lake), [(1, 2), (5, 3)], replaces=older.id, embed_snapshots=True)
    commit(lake, lambda t: t.delete(table(lake), [second]))
    assert [len(rows(place, version)) for version in (1, 2, 3)] == [10, 9, 8]
    feed = "SELECT snapshot_id, rowid FROM ducklake_table_deletions('lake', 'main', 't', 1, 3) ORDER BY ALL"
    assert place.asked(feed) == [(2, 1), (3, 5)]
    scheduled = place.tables()["ducklake_files_scheduled_for_deletion"]
    assert [row["path"] for row in scheduled] == [f"main/t/{Path(first.path).name}"]


def test_a_stale_delete_file_is_written_anew(lake: Lake, place: Place) -> None:
    first = write_deletes(table(lake), only_file(lake), [(1, 2)])
    commit(lake, lambda t: t.delete(table(lake), [first]))
    t = lake.transaction()
    older = t.base.files(table(lake)).data_files[0].delete_file
    assert older is not None

    def written(snapshot: SnapshotId) -> DeletesToAdd:
        pairs = [(1, 2), (5, int(snapshot))]
        return write_deletes(found, older_file, pairs, replaces=older.id, embed_snapshots=True)

    # The function may not ask the lake anything, which is locked while it runs.
    found, older_file = table(lake), only_file(lake)
    t.delete(found, [written(SnapshotId(3))])
    commit(lake, lambda other: other.create_schema("meanwhile"))
    with pytest.raises(StaleDeleteFile, match=r"written for snapshot 3, .* it must say 4"):
        t.commit()
    assert t.commit(rewrite=lambda snapshot, _: written(snapshot)) == 4
    assert [len(rows(place, version)) for version in (2, 3, 4)] == [9, 9, 8]


def test_a_file_that_is_gone_cannot_be_deleted_from(lake: Lake) -> None:
    with pytest.raises(FileNotFound, match=r"Data file 99 of main\.t"):
        commit(lake, lambda t: t.delete(table(lake), [], [FileId(99)]))
    stray = write_deletes(table(lake), FileId(99), [(1, 2)])
    with pytest.raises(FileNotFound):
        commit(lake, lambda t: t.delete(table(lake), [stray]))
    wrong = replace(write_deletes(table(lake), only_file(lake), [(1, 2)]), replaces=FileId(7))
    with pytest.raises(FileNotFound):
        commit(lake, lambda t: t.delete(table(lake), [wrong]))
    assert lake.snapshot().id == 1


def test_inlined_rows_that_are_gone_cannot_be_ended(lake: Lake) -> None:
    commit(lake, lambda t: t.insert_inlined(table(lake), [(50, 1)]))
    row = lake.snapshot().files(table(lake)).inlined_rows[0]
    commit(lake, lambda t: t.end_inlined(table(lake), [row]))
    with pytest.raises(ChangeRefused, match="not there any more"):
        commit(lake, lambda t: t.end_inlined(table(lake), [row]))


def commit(lake: Lake, change: Callable[[Transaction], object]) -> int:
    t = lake.transaction()
    change(t)
    return t.commit()


# Another transaction that came first.


def end_first_inlined(t: Transaction) -> None:
    t.end_inlined(t.table("main", "t"), t.base.files(t.table("main", "t")).inlined_rows[:1])


def end_file(t: Transaction) -> None:
    t.delete(t.table("main", "t"), [], [t.base.files(t.table("main", "t")).data_files[0].id])


def end_last_file(t: Transaction) -> None:
    t.delete(t.table("main", "t"), [], [t.base.files(t.table("main", "t")).data_files[-1].id])


ACTIONS: dict[str, Callable[[Transaction], object]] = {
    "insert": lambda t: t.append(t.table("main", "t"), [write_file(t.table("main", "t"), [(77, 7)])]),
    "inline": lambda t: t.insert_inlined(t.table("main", "t"), [(88, 8)]),
    "delete": end_file,
    "delete_other_file": end_last_file,
    "inlined_delete": end_first_inlined,
    "alter": lambda t: t.set_default("main", "t", ("b",), Default("9")),
    "comment": lambda t: t.comment_on_table("main", "t", "x"),
    "drop": lambda t: t.drop_table("main", "t"),
    "rename": lambda t: t.rename_table("main", "t", "u"),
    "create_u": lambda t: t.create_table("main", "u", plain("x")),
    "create_view_u": lambda t: t.create_view("main", "U", "SELECT 1 AS x"),
    "create_in_s": lambda t: t.create_table("s", "x", plain("x")),
    "drop_s": lambda t: t.drop_schema("s"),
    "create_schema": lambda t: t.create_schema("new"),
    "other_table": lambda t: t.append(t.table("main", "o"), [write_file(t.table("main", "o"), [(1,)])]),
}
# (ours, theirs that came first) that cannot both be.
CONFLICTS = {
    *((ours, theirs) for ours in ("insert", "inline") for theirs in ("delete", "delete_other_file", "inlined_delete")),
    *((ours, theirs) for ours in ("insert", "inline") for theirs in ("alter", "comment", "drop")),
    *(
        (ours, theirs)
        for ours in ("delete", "delete_other_file")
        for theirs in ("insert", "inline", "alter", "comment")
    ),
    *((ours, "drop") for ours in ("delete", "delete_other_file", "inlined_delete", "alter", "comment", "drop")),
    *(("inlined_delete", theirs) for theirs in ("insert", "inline", "alter", "comment", "inlined_delete")),
    *((ours, theirs) for ours in ("alter", "comment") for theirs in ("alter", "comment")),
    ("delete", "delete"),
    ("delete_other_file", "delete_other_file"),
    *(
        (ours, theirs)
        for ours in ("rename", "create_u", "create_view_u")
        for theirs in ("rename", "create_u", "create_view_u")
    ),
    # Stricter than DuckDB's matrix: a rename writes the columns again, and must not bring a table back.
    *(("rename", theirs) for theirs in ("alter", "comment", "drop")),
    ("create_in_s", "drop_s"),
    ("drop_s", "create_in_s"),
    ("drop_s", "drop_s"),
    ("create_in_s", "create_in_s"),
    ("create_schema", "create_schema"),
}
PAIRS = [
    (ours, theirs) for ours in ACTIONS for theirs in ACTIONS if "other_table" not in (ours, theirs) or ours == theirs
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[f"{ours}-after-{theirs}" for ours, theirs in PAIRS])
def test_a_second_transaction_ends_as_the_matrix_says(place: Place, ours: str, theirs: str) -> None:
    with place.connect(data_inlining_row_limit=0, patience=QUICK) as lake:
        prepare(lake)
        t, first = lake.transaction(), lake.transaction()
        ACTIONS[ours](t)
        ACTIONS[theirs](first)
        first.say(author="the other one")
        taken = first.commit()
        if (ours, theirs) in CONFLICTS:
            with pytest.raises(CommitConflict) as caught:
                t.commit()
            said = str(caught.value)
            assert f"snapshot {taken} (by the other one)" in said
            assert f"began at {t.base.id}" in said
            assert "run the model again" in said
            assert lake.snapshot().id == taken
        else:
            assert t.commit() == taken + 1
    assert place.asked("SELECT max(snapshot_id) FROM lake.snapshots()")[0][0] >= taken


def prepare(lake: Lake) -> None:
    t = lake.transaction()
    made = t.create_table("main", "t", plain("a", "b"))
    t.create_table("main", "o", plain("a"))
    t.create_schema("s")
    t.append(made, [write_file(made, [(n, 0) for n in range(5)]), write_file(made, [(n, 1) for n in range(5)])])
    t.insert_inlined(made, [(500, 5)])
    t.commit()


def test_the_loser_keeps_its_files_and_may_try_again(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    ready = write_file(table(lake), [(77, 7)])
    t.append(table(lake), [ready])
    commit(lake, lambda other: other.comment_on_table("main", "t", "x"))
    with pytest.raises(CommitConflict, match=r"main.t: snapshot 2 altered it"):
        t.commit()
    assert Path(ready.path).exists()
    commit(lake, lambda again: again.append(table(lake), [ready]))
    assert (77, 7) in rows(place)


def test_rebased_appends_take_fresh_row_ids(lake: Lake, place: Place) -> None:
    transactions = [lake.transaction() for _ in range(3)]
    for number, t in enumerate(transactions):
        t.append(table(lake), [write_file(table(lake), [(100 + number, n) for n in range(4)])])
    assert [t.commit() for t in transactions] == [2, 3, 4]
    ids = [row[0] for row in place.asked("SELECT rowid FROM t")]
    assert sorted(ids) == list(range(22))
    statistics = lake.snapshot().statistics(table(lake))
    assert statistics is not None
    assert (statistics.record_count, statistics.next_row_id) == (22, 22)
    assert place.asked("SELECT min(a), max(a), count(*) FROM t") == [(0, 102, 22)]


# What the words of a snapshot do not tell.


def test_inlined_deletes_of_a_file_that_was_merged_away_are_a_conflict(lake: Lake, place: Place) -> None:
    commit(lake, lambda t: t.append(table(lake), [write_file(table(lake), [(50, 5)])]))
    t = lake.transaction()
    t.delete_inlined(table(lake), {only_file(lake): [0, 1]})
    place.judged("CALL ducklake_merge_adjacent_files('lake')")
    with pytest.raises(CommitConflict, match=r"main\.t: snapshot 3 changed data file"):
        t.commit()
    assert len(rows(place)) == 11


def test_inlined_deletes_beside_new_deletes_are_a_conflict(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    t.delete_inlined(table(lake), {only_file(lake): [0, 1]})
    deletes = write_deletes(table(lake), only_file(lake), [(n, 2) for n in range(9)])
    commit(lake, lambda other: other.delete(table(lake), [deletes]))
    with pytest.raises(CommitConflict):
        t.commit()
    assert place.asked("SELECT count(*) FROM t") == [(1,)]


def test_deletes_beside_new_inlined_deletes_are_a_conflict(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    t.delete(table(lake), [write_deletes(table(lake), only_file(lake), [(0, 2), (1, 2)])])
    commit(lake, lambda other: other.delete_inlined(table(lake), {only_file(lake): [1]}))
    with pytest.raises(CommitConflict):
        t.commit()
    assert place.asked("SELECT count(*) FROM t") == [(9,)]


def test_a_conflict_in_an_expired_snapshot_is_one(lake: Lake, place: Place) -> None:
    t = lake.transaction()
    t.append(table(lake), [write_file(table(lake), [(50, 5)])])
    commit(lake, lambda other: other.drop_table("main", "t"))
    commit(lake, lambda other: other.create_schema("s"))
    place.judged("CALL ducklake_expire_snapshots('lake', versions => [2])")
    with pytest.raises(CommitConflict, match="some have expired"):
        t.commit()


def test_a_data_file_has_one_delete_file(lake: Lake) -> None:
    t = lake.transaction()
    deletes = write_deletes(table(lake), only_file(lake), [(0, 2)])
    t.delete(table(lake), [deletes])
    with pytest.raises(ChangeRefused, match="named twice"):
        t.delete(table(lake), [deletes])
    with pytest.raises(ChangeRefused, match="named twice"):
        t.delete_inlined(table(lake), {only_file(lake): [4]})


def test_a_file_is_registered_once(lake: Lake) -> None:
    t = lake.transaction()
    written = write_file(table(lake), [(50, 5)])
    t.append(table(lake), [written])
    with pytest.raises(ChangeRefused, match="rows would be doubled"):
        t.append(table(lake), [written])


def test_rows_are_written_under_the_definition_of_their_table(lake: Lake) -> None:
    t = lake.transaction()
    before = t.table("main", "t")
    t.insert_inlined(before, [(1, 2)])
    alterations: tuple[Callable[[], object], ...] = (
        lambda: t.drop_column("main", "t", ("b",)),
        lambda: t.add_column("main", "t", scalar("c", "int64")),
        lambda: t.set_partitioning("main", "t", [("a", "identity")]),
    )
    for alteration in alterations:
        with pytest.raises(ChangeRefused, match="rows were added"):
            alteration()
    t = lake.transaction()
    t.add_column("main", "t", scalar("c", "int64"))
    with pytest.raises(ChangeRefused, match="not the definition"):
        t.insert_inlined(before, [(1, 2)])
    t.drop_table("main", "t")
    with pytest.raises(ChangeRefused, match="not the definition"):
        t.append(before, [file()])


def test_files_are_kept_for_each_definition(lake: Lake) -> None:
    commit(lake, lambda t: t.insert_inlined(table(lake), [(50, 5)]))
    snapshot, t = lake.snapshot(), lake.transaction()
    assert snapshot.files(table(lake)).inlined_rows[0].values == (50, 5)
    altered = t.add_column("main", "t", scalar("c", "int64", default=Default("7")))
    assert snapshot.files(altered).inlined_rows[0].values == (50, 5, 7)


def test_a_copied_column_brings_no_initial_default(lake: Lake, place: Place) -> None:
    commit(lake, lambda t: t.add_column("main", "t", scalar("c", "int64", default=Default("7"))))
    commit(lake, lambda t: t.set_default("main", "t", ("c",), Default()))
    copied = replace(table(lake).column("c"), name="d")
    commit(lake, lambda t: t.add_column("main", "t", copied))
    assert place.asked("SELECT DISTINCT c, d FROM t") == [(7, None)]


def test_a_sort_column_may_be_renamed_to_a_word_of_sql(lake: Lake, place: Place) -> None:
    commit(lake, lambda t: t.set_sort("main", "t", [SortField("a")]))
    commit(lake, lambda t: t.rename_column("main", "t", ("a",), "order"))
    place.judged("INSERT INTO t VALUES (50, 5), (49, 5)")
    assert place.asked("SELECT count(*) FROM t") == [(12,)]


def test_inlined_rows_are_checked_as_the_database_would_not(lake: Lake) -> None:
    t = lake.transaction()
    made = t.create_table("main", "x", [scalar("a", "int32", nullable=False)])
    with pytest.raises(ChangeRefused, match="column a is NOT NULL"):
        t.insert_inlined(made, [(None,)])
    with pytest.raises(ChangeRefused, match="not a value of a"):
        t.insert_inlined(made, [(10**12,)])


def test_a_commit_within_a_block_of_reading_is_refused_at_once(lake: Lake) -> None:
    t = lake.transaction()
    t.create_schema("s")
    with lake.reading(), pytest.raises(ChangeRefused, match="still reading"):
        t.commit()
    assert t.commit() == 2


def test_statistics_that_say_nothing_count_as_none(lake: Lake, place: Place) -> None:
    place.execute("UPDATE ducklake_table_stats SET file_size_bytes = NULL")
    commit(lake, lambda t: t.append(table(lake), [write_file(table(lake), [(50, 5)])]))
    assert len(place.tables()["ducklake_table_stats"]) == 1


# A database that says no.


def test_contention_is_retried_and_then_said(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    t = lake.transaction()
    t.create_schema("s")
    failures = [3]

    def contended(self: commit_module.Commit, session: MetadataSession) -> object:
        if failures[0]:
            failures[0] -= 1
            raise Contended("taken")
        return original(self, session)

    original = commit_module.Commit._attempt
    monkeypatch.setattr(commit_module.Commit, "_attempt", contended)
    assert t.commit() == 2
    assert t.attempts == 4
    failures[0] = 99
    t = lake.transaction()
    t.create_schema("s2")
    with pytest.raises(CommitContended, match=r"in 5 attempts.*last: taken"):
        t.commit()
    assert lake.snapshot().id == 2


def test_a_connection_that_breaks_during_commit_is_said_so(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    backend = lake._metadata.backend
    real = backend.writing

    @contextmanager
    def broken() -> Iterator[object]:
        with real() as connection:
            yield connection
        raise CommitBroken("gone")

    monkeypatch.setattr(backend, "writing", broken)
    t = lake.transaction()
    t.create_schema("s")
    with pytest.raises(CommitOutcomeUnknown, match=r"broke during COMMIT of snapshot 2.*No files were deleted"):
        t.commit()
    assert lake.snapshot().id == 2


# What a commit says, and options.


def test_a_commit_says_who_and_why(lake: Lake) -> None:
    t = lake.transaction()
    t.create_schema("s")
    t.say("me", "why", '{"node": "model.x"}')
    info = lake.commit_info(t.commit())
    assert (info.author, info.message, info.extra_info) == ("me", "why", '{"node": "model.x"}')
    assert info.changes == 'created_schema:"s"'


def test_a_message_can_be_required(lake: Lake) -> None:
    lake.set_option("require_commit_message", True)
    t = lake.transaction()
    t.create_schema("s")
    with pytest.raises(ChangeRefused, match="requires a commit message"):
        t.commit()
    t.say(message="now")
    assert t.commit() == 2


def test_options_are_found_by_scope(lake: Lake, place: Place) -> None:
    lake.set_option("target_file_size", "10MB")
    lake.set_option("target_file_size", "20MB", schema="main")
    lake.set_option("target_file_size", "30MiB", schema="main", table="t")
    lake.set_option("target_file_size", "11MB")
    found, options = table(lake), lake.options()
    assert options.value("target_file_size") == "11000000"
    assert options.value("target_file_size", found.schema.id) == "20000000"
    assert options.value("target_file_size", found.schema.id, found.id) == str(30 * 2**20)
    assert options.value("parquet_compression") is None
    assert options.inlining_limit(found.schema.id, found.id) == 0
    assert lake.snapshot().id == 1
    stored = place.asked("SELECT option_name, value, scope FROM ducklake_options('lake') WHERE value LIKE '%000000'")
    assert sorted(stored) == [("target_file_size", "11000000", "GLOBAL"), ("target_file_size", "20000000", "SCHEMA")]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("colour", "blue", "not an option"),
        ("data_path", "/x", "not an option"),
        ("parquet_compression", "rar", "one of: uncompressed"),
        ("target_file_size", "big", "takes bytes"),
        ("auto_compact", "perhaps", "one of: true"),
        ("rewrite_delete_threshold", 2, "between 0 and 1"),
        ("data_inlining_row_limit", -1, "whole number"),
    ],
)
def test_an_option_that_is_none_is_refused(lake: Lake, key: str, value: object, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        lake.set_option(key, value)


def test_inlined_rows_carry_where_they_are_kept(lake: Lake) -> None:
    commit(lake, lambda t: t.insert_inlined(table(lake), [(50, 1)]))
    row = lake.snapshot().files(table(lake)).inlined_rows[0]
    assert row == InlinedRow(10, SnapshotId(2), None, row.kept_in, (50, 1))


WIDENED = [("boolean", "true", "int32"), ("boolean", "f", "uint8"), ("varchar", "[1, 2]", "json"),
           ("int8", "7", "decimal(9,2)"), ("date", "2020-01-01", "timestamp"),
           ("float32", "0.1", "float64")]  # fmt: skip


@pytest.mark.parametrize(("old", "text", "new"), WIDENED)
def test_a_default_is_one_of_the_new_type(place: Place, old: str, text: str, new: str) -> None:
    """DuckDB cannot load a lake with a default that is no value of its column's type."""
    with place.connect(data_inlining_row_limit=0, patience=QUICK) as lake:
        made = lake.transaction()
        table = made.create_table("main", "t", plain("a"))
        made.append(table, [write_file(table, [(1,)])])
        made.commit()
        made = lake.transaction()
        made.add_column("main", "t", scalar("b", old, default=Default(text)))
        made.commit()
        made = lake.transaction()
        made.change_type("main", "t", ("b",), Column("b", type_from_text(new)))
        made.commit()
    place.judged("INSERT INTO t(a) VALUES (2)")
    ((one, other),) = place.asked("SELECT min(b::VARCHAR), max(b::VARCHAR) FROM t")
    assert one == other
    assert one is not None


def test_a_default_that_is_no_value_of_the_new_type_is_refused(lake: Lake) -> None:
    transaction = lake.transaction()
    transaction.add_column("main", "t", scalar("c", "varchar", default=Default("no json")))
    with pytest.raises(ChangeRefused, match="its default 'no json' is no JSON"):
        transaction.change_type("main", "t", ("c",), scalar("c", "json"))


def test_of_snapshots_of_one_time_the_first_is_seen(lake: Lake, place: Place) -> None:
    for value in (1, 2, 3):
        transaction = lake.transaction()
        transaction.append(table(lake), [write_file(table(lake), [(value, value)])])
        transaction.commit()
    place.execute("UPDATE ducklake_snapshot SET snapshot_time = '2031-01-01 00:00:00+00' WHERE snapshot_id > 2")
    seen = lake.snapshot(time=datetime(2031, 1, 2, tzinfo=UTC))
    counted = place.asked("SELECT count(*) FROM t AT (TIMESTAMP => TIMESTAMPTZ '2031-01-02 00:00:00+00')")
    assert [(sum(file.record_count for file in seen.files(seen.table("main", "t")).data_files),)] == counted
