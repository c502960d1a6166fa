"""How a lake is: of each table its files, deletes and inlined rows, and what the metadata hold that nobody needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from dbt.adapters.ducklake.lake.backends.base import Row
from dbt.adapters.ducklake.lake.definitions import Schema
from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.lake.names import SnapshotId, TableId
from dbt.adapters.ducklake.lake.snapshot.load import load_schemas
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import deletes_table_of, is_own_name


@dataclass(frozen=True, slots=True)
class TableHealth:
    """Counts of a table's live files. `small_files` are those without deleted rows below a size, `worn_files` those of
    which at least a share of the rows is deleted."""

    id: TableId
    schema: str
    name: str
    files: int = 0
    size: int = 0
    rows: int = 0
    small_files: int = 0
    delete_files: int = 0
    deleted_rows: int = 0
    worn_files: int = 0
    inlined_rows: int = 0
    inlined_deletes: int = 0

    @property
    def deleted_share(self) -> float:
        return self.deleted_rows / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class LakeHealth:
    tables: tuple[TableHealth, ...]
    snapshots: int
    oldest: datetime | None
    newest: SnapshotId
    scheduled_files: int
    scheduled_since: datetime | None
    # Inlined tables of earlier layouts that hold no rows any more.
    leftover_tables: tuple[str, ...]
    # What makes the lake unreadable, in DuckDB or for everybody.
    unreadable: tuple[str, ...]


_COUNTS = """
SELECT t.table_id, t.schema_id, s.schema_name, t.table_name, count(f.data_file_id), coalesce(sum(f.file_size_bytes), 0),
       coalesce(sum(f.record_count), 0),
       coalesce(sum(CASE WHEN d.delete_file_id IS NULL AND f.file_size_bytes < $1 THEN 1 ELSE 0 END), 0),
       count(d.delete_file_id), coalesce(sum(d.delete_count), 0),
       coalesce(sum(CASE WHEN d.delete_count >= $2 * f.record_count THEN 1 ELSE 0 END), 0),
       (SELECT count(*) FROM {inlined_data_tables} AS i WHERE i.table_id = t.table_id)
FROM {table} AS t
JOIN {schema} AS s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
LEFT JOIN {data_file} AS f ON f.table_id = t.table_id AND f.end_snapshot IS NULL
LEFT JOIN {delete_file} AS d ON d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL
WHERE t.end_snapshot IS NULL
"""
_GROUPED = " GROUP BY t.table_id, t.schema_id, s.schema_name, t.table_name"
_OF_TABLE = "AND {} AND lower(t.table_name) = lower($4)"


def tables_health(
    session: MetadataSession, small: int, share: float, schema: Schema | str | None = None, name: str | None = None
) -> tuple[TableHealth, ...]:
    """One query over all tables, or for one of them, and one more for each inlined table that there is. A schema is
    given by its name where it lies in no other."""
    names: dict[int, str] | None = None
    if isinstance(schema, Schema):
        rows = session.query(_COUNTS + _OF_TABLE.format("t.schema_id = $3") + _GROUPED, small, share, schema.id, name)
        names = {int(schema.id): schema.name}
    elif schema is not None:
        of_name = _OF_TABLE.format("lower(s.schema_name) = lower($3)")
        rows = session.query(_COUNTS + of_name + _GROUPED, small, share, schema, name)
    else:
        rows = session.query(_COUNTS + _GROUPED, small, share)
        if session.layout.nests_schemas:
            newest = SnapshotId(session.newest_snapshot().snapshot_id)
            names = {int(one.id): one.name for one in load_schemas(session, newest)}
    # What lies in a schema that is no more is itself no more.
    live = [row for row in rows if names is None or row[1] in names]
    found = [_with_inlined(session, row, names[row[1]] if names else row[2]) for row in live]
    return tuple(sorted(found, key=lambda one: (one.schema, one.name)))


def _with_inlined(session: MetadataSession, row: Row, schema: str) -> TableHealth:
    table_id, _, _, name, *counts, inlined_tables = row
    # PostgreSQL's sums are decimals.
    found = TableHealth(TableId(table_id), schema, name, *map(int, counts))
    if not inlined_tables:
        return found
    kept = session.read(tables.InlinedDataTables, "WHERE table_id = $1", table_id)
    live = sum(_count_live(session, one.table_name) for one in kept)
    deletes = deletes_table_of(found.id)
    inlined_deletes = _live_deletes(session, table_id) if session.has_table(deletes) else 0
    return replace(found, inlined_rows=live, inlined_deletes=inlined_deletes)


def _live_deletes(session: MetadataSession, table_id: TableId) -> int:
    """Inlined deletes of files that are live; the others go when their files expire."""
    files = session.query("SELECT data_file_id FROM {data_file} WHERE table_id = $1 AND end_snapshot IS NULL", table_id)
    live = {row[0] for row in files}
    found = session.run_on(deletes_table_of(table_id), "SELECT file_id, count(*) FROM {table} GROUP BY file_id")
    return sum(int(count) for file_id, count in found if file_id in live)


def _count_live(session: MetadataSession, table: str) -> int:
    return int(session.run_on(table, "SELECT count(*) FROM {table} WHERE {end} IS NULL")[0][0])


def lake_health(session: MetadataSession, small: int, share: float) -> LakeHealth:
    count, newest = session.query("SELECT count(*), max(snapshot_id) FROM {snapshot}")[0]
    first = session.read(tables.Snapshot, "ORDER BY snapshot_id LIMIT 1")
    scheduled = session.read(tables.FilesScheduledForDeletion, "ORDER BY schedule_start")
    return LakeHealth(
        tables=tables_health(session, small, share),
        snapshots=int(count),
        oldest=first[0].snapshot_time if first else None,
        newest=SnapshotId(newest),
        scheduled_files=len(scheduled),
        scheduled_since=scheduled[0].schedule_start if scheduled else None,
        leftover_tables=tuple(leftover_tables(session)),
        unreadable=tuple(_unreadable(session)),
    )


def leftover_tables(session: MetadataSession) -> Iterable[str]:
    """Inlined tables of earlier layouts that have no rows any more."""
    newest: dict[int, int] = {}
    rows = session.read(tables.InlinedDataTables)
    for row in rows:
        newest[row.table_id] = max(row.schema_version, newest.get(row.table_id, row.schema_version))
    for row in rows:
        superseded = row.schema_version < newest[row.table_id] and is_own_name(row)
        if superseded and not session.run_on(row.table_name, "SELECT 1 FROM {table} LIMIT 1"):
            yield row.table_name


def _unreadable(session: MetadataSession) -> Iterable[str]:
    """Rows that keep DuckDB, or everybody, from reading the lake: trap 30 of the format, as far as rows alone tell."""
    live = "end_snapshot IS NULL"
    columns = session.query(
        "SELECT table_id, column_id, column_name, nulls_allowed, parent_column, column_type FROM {column} "
        f"WHERE {live}"
    )
    names: dict[tuple[int, object], dict[str, int]] = defaultdict(dict)
    parents = {(table, parent) for table, _, _, _, parent, _ in columns if parent is not None}
    for table, column, name, nullable, parent, kind in columns:
        if nullable is None:
            yield f"column {name} of table {table} says nothing of NULLs (nulls_allowed)"
        if kind in ("struct", "list", "map") and (table, column) not in parents:
            yield f"column {name} of table {table} is a {kind} without fields"
        if (other := names[table, parent].setdefault(str(name).lower(), column)) != column:
            yield f"table {table} has two columns {name} ({other} and {column})"
    known = {table for table, *_ in columns}
    for table, name in session.query(f"SELECT table_id, table_name FROM {{table}} WHERE {live}"):
        if table not in known:
            yield f"table {name} ({table}) has no columns"
    for (name,) in session.query(f"SELECT view_name FROM {{view}} WHERE {live} AND column_aliases IS NULL"):
        yield f"view {name} has no column_aliases, not even an empty text"
    twice = session.query(
        f"SELECT data_file_id, count(*) FROM {{delete_file}} WHERE {live} GROUP BY data_file_id HAVING count(*) > 1"
    )
    for file_id, _ in twice:
        yield f"data file {file_id} has two live delete files"
    doubled = session.query(
        f"SELECT table_id, path, count(*) FROM {{data_file}} WHERE {live} GROUP BY table_id, path HAVING count(*) > 1"
    )
    for table, path, count in doubled:
        yield f"file {path} is registered {count} times in table {table}: its rows are read as often"
