"""Differential reading: lakes that the extension makes are read by us as it reads them, at every snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import Lake, Snapshot, Table
from dbt.adapters.ducklake.lake.backends.duckdb_values import duckdb_type
from dbt.adapters.ducklake.lake.names import quoted
from tests.conftest import PlaceOf
from tests.interop.generated import Generator
from tests.interop.reader import deletions, insertions, rows_at
from tests.judge import Judge
from tests.places import Place
from tests.seeds import on_each_kind

STEPS = 22


@pytest.mark.parametrize(("kind", "seed"), on_each_kind(8, 16, 70))
def test_every_snapshot_reads_as_the_extension_reads_it(kind: str, seed: int, place_of: PlaceOf) -> None:
    place = place_of(kind)
    place.options = {"data_inlining_row_limit": (0, 3, 10, 100)[seed % 4]}
    with place.attached() as judge:
        generator = Generator(seed, judge, kind)
        try:
            generator.run(STEPS)
        except duckdb.FatalException:
            Judge.forget()
            raise
    theirs = Theirs(place)
    with place.connect() as lake:
        assert [info.id for info in lake.snapshots()] == theirs.versions
        ours = Ours(place, lake)
        found = [line for version in theirs.versions for line in compare(ours, theirs, version)]
        found += [line for first, last in ranges(theirs.versions) for line in compare_feed(ours, theirs, first, last)]
    assert not found, f"seed {seed} on {kind}:\n" + "\n".join(found) + "\nafter:\n" + ";\n".join(generator.ran)


def test_the_feed_after_a_flush_tells_when_each_row_went(place: Place) -> None:
    """A flush writes delete files that do not say up to which snapshot they reach."""
    place.options = {"data_inlining_row_limit": 100}
    place.judged(
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "DELETE FROM t WHERE a = 1",
        "DELETE FROM t WHERE a = 2",
        "CALL ducklake_flush_inlined_data('lake')",
    )
    expected = {first: _expected_deletions(place, first) for first in (2, 3, 4, 5)}
    with place.connect() as lake:
        snapshot = lake.snapshot()
        table = snapshot.table("main", "t")
        for first, rows in expected.items():
            changes = snapshot.changes(table, snapshot.id.__class__(first))
            assert deletions(Judge.of_this_process(), table, changes) == rows
    assert [len(rows) for rows in expected.values()] == [2, 2, 1, 0]


def _expected_deletions(place: Place, first: int) -> list[tuple[object, ...]]:
    with place.attached() as judge:
        feed = _feed(judge, "main.t", first, 5)
        assert isinstance(feed, list)
        return list(feed[1])


class Theirs:
    """What the extension reads, gathered before we open the lake: a DuckDB file cannot be open twice."""

    def __init__(self, place: Place) -> None:
        self.versions = [row[0] for row in place.asked("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")]
        self.tables: dict[int, dict[str, Any]] = {}
        self.feeds: dict[tuple[int, int, str], Any] = {}
        for version in self.versions:
            with place.attached(snapshot_version=version) as judge:
                self.tables[version] = {name: _read(judge, name) for name in _table_names(judge)}
        with place.attached() as judge:
            for first, last in ranges(self.versions):
                for name in self.tables[last]:
                    self.feeds[first, last, name] = _feed(judge, name, first, last)

    def row_ids(self, version: int, name: str) -> Counter[int] | None:
        read = self.tables[version][name]
        return None if read is None else read[3]


class Ours:
    def __init__(self, place: Place, lake: Lake) -> None:
        self.lake, self.judge = lake, Judge.of_this_process()

    def tables(self, version: int) -> dict[str, tuple[Snapshot, Table]]:
        snapshot = self.lake.snapshot(version=version)
        found = {}
        for schema in snapshot.schemas():
            loaded = {table.name: table for table in snapshot.definitions(schema.name)}
            for named in snapshot.tables(schema.name):
                table = snapshot.table(schema.name, named.name)
                assert table == loaded[named.name]
                found[f"{schema.name}.{named.name}"] = snapshot, table
        return found


def ranges(versions: list[int]) -> list[tuple[int, int]]:
    """Ranges for the change feed: the newest snapshot alone, the whole, and a part in the middle."""
    return sorted(
        {(versions[-1], versions[-1]), (versions[0], versions[-1]), (versions[len(versions) // 2], versions[-1])}
    )


def compare(ours: Ours, theirs: Theirs, version: int) -> list[str]:
    own, others = ours.tables(version), theirs.tables[version]
    if own.keys() != others.keys():
        return [f"snapshot {version}: ours has {sorted(own)}, theirs {sorted(others)}"]
    found = []
    for name, (snapshot, table) in own.items():
        read = rows_at(ours.judge, snapshot, table)
        if others[name] is None:
            continue
        columns, comment, rows, _ = others[name]
        mine = [(column.name, duckdb_type(column).replace('"', ""), column.comment) for column in table.columns]
        if mine != [(n, t.replace('"', ""), c) for n, t, c in columns]:
            found.append(f"snapshot {version}: columns of {name}: ours {mine}, theirs {columns}")
        if table.comment != comment:
            found.append(f"snapshot {version}: comment of {name}: ours {table.comment}, theirs {comment}")
        if read != rows:
            found.append(f"snapshot {version}: {name}: {_differing(read, rows)}")
    return found


def compare_feed(ours: Ours, theirs: Theirs, first: int, last: int) -> list[str]:
    """Our feed must lead from the rows before it to those after it, as the extension's time travel gives them.

    The extension's own feed mixes up which row of a delete file with several snapshots went when, and of files that
    ended with such a delete file it tells too few or too many rows, depending on the range. Where its feed leads from
    the rows before to those after, ours must be the same.
    """
    found = []
    for name, (snapshot, table) in ours.tables(last).items():
        expected, after = theirs.feeds[first, last, name], theirs.row_ids(last, name)
        before = _row_ids_before(ours, theirs, table, first)
        changes = snapshot.changes(table, snapshot.id.__class__(first))
        came, went = insertions(ours.judge, table, changes), deletions(ours.judge, table, changes)
        if before is not None and after is not None and not _leads(before, came, went, after):
            found.append(f"changes of {name} from {first} to {last} do not lead from the rows before to those after")
        if expected is None:
            continue
        if came != expected[0]:
            found.append(f"insertions of {name} from {first} to {last}: {_differing(came, expected[0])}")
        is_sound = before is not None and after is not None and _leads(before, came, expected[1], after)
        if is_sound and _without_snapshots(went) != _without_snapshots(expected[1]):
            found.append(f"deletions of {name} from {first} to {last}: {_differing(went, expected[1])}")
    return found


def _row_ids_before(ours: Ours, theirs: Theirs, table: Table, first: int) -> Counter[int] | None:
    """The row ids just before a feed, under whatever name the table had; None where that snapshot has expired."""
    if first == 0:
        return Counter()
    if first - 1 not in theirs.versions:
        return None
    earlier = [name for name, (_, found) in ours.tables(first - 1).items() if found.id == table.id]
    return theirs.row_ids(first - 1, earlier[0]) if earlier else Counter()


def _leads(before: Counter[int], came: Any, went: Any, after: Counter[int]) -> bool:
    total = before + Counter(row[1] for row in came)
    total.subtract(row[1] for row in went)
    return +total == after and min(total.values(), default=0) >= 0


def _without_snapshots(rows: Any) -> list[Any]:
    return sorted((row[1:] for row in rows), key=repr)


def _differing(mine: Sequence[object], their: Sequence[object]) -> str:
    only_ours = [row for row in mine if row not in their]
    only_theirs = [row for row in their if row not in mine]
    return f"{len(mine)} rows, theirs {len(their)}; only ours {only_ours[:2]}, only theirs {only_theirs[:2]}"


def _table_names(judge: Judge) -> list[str]:
    rows = judge.rows("SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake'")
    return [f"{schema}.{name}" for schema, name in rows]


def _read(judge: Judge, name: str) -> object:
    try:
        return _table(judge, name)
    except duckdb.InvalidInputException:
        # After a change of type DuckDB reads the bounds of today as those of the old type, at every earlier snapshot,
        # and where they do not fit it reads nothing. We still read the rows; there is nothing to compare them with.
        return None


def _table(judge: Judge, name: str) -> object:
    schema, table = name.split(".")
    where = f"database_name = 'lake' AND schema_name = '{schema}' AND table_name = '{table}'"
    columns = judge.rows(
        f"SELECT column_name, data_type, comment FROM duckdb_columns() WHERE {where} ORDER BY column_index"
    )
    comment = judge.rows(f"SELECT comment FROM duckdb_tables() WHERE {where}")[0][0]
    rows = judge.rows(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM lake.{quoted(schema)}.{quoted(table)}")
    row_ids = Counter(row[0] for row in judge.rows(f"SELECT rowid FROM lake.{quoted(schema)}.{quoted(table)}"))
    return columns, comment, sorted(rows, key=repr), row_ids


def _feed(judge: Judge, name: str, first: int, last: int) -> object:
    """The extension's change feed, None where it cannot give one."""
    schema, table = name.split(".")
    found = []
    for function in ("ducklake_table_insertions", "ducklake_table_deletions"):
        sql = f"SELECT snapshot_id, rowid, CAST(COLUMNS(*) AS VARCHAR) FROM {function}"
        try:
            found.append(sorted(judge.rows(f"{sql}('lake', '{schema}', '{table}', {first}, {last})"), key=repr))
        except (duckdb.InvalidInputException, duckdb.ConversionException):
            return None
    return found
