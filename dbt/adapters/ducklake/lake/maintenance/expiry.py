"""Snapshots expire: their rows go, and with them all that only they could see. Files are scheduled for removal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dbt.adapters.ducklake.lake.maintenance.folders import table_folders
from dbt.adapters.ducklake.lake.maintenance.health import leftover_tables
from dbt.adapters.ducklake.lake.metadata import MetadataSession, in_chunks, places
from dbt.adapters.ducklake.lake.names import TableId
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import deletes_table_of, is_own_name
from dbt.adapters.ducklake.lake.spec.tables import OF_DATA_FILE, RowClass
from dbt.adapters.ducklake.lake.transaction.rows import scheduled_row

_OF_TABLE: tuple[RowClass, ...] = (
    tables.Table, tables.TableStats, tables.TableColumnStats, tables.PartitionInfo, tables.PartitionColumn,
    tables.Column, tables.ColumnTag, tables.SortInfo, tables.SortExpression, tables.SchemaVersions,
    tables.InlinedDataTables, tables.ColumnMapping,
)  # fmt: skip
# Rows that are no longer seen by themselves, whatever they belong to.
_UNSEEN: tuple[RowClass, ...] = (tables.Schema, tables.View, tables.ViewColumnTag, tables.Tag, tables.Macro)
_NEEDS: tuple[tuple[RowClass, str, str], ...] = (
    (tables.MacroImpl, "macro_id", "macro"),
    (tables.MacroParameters, "macro_id", "macro"),
    (tables.NameMapping, "mapping_id", "column_mapping"),
)


@dataclass(frozen=True, slots=True)
class Expired:
    """What an expiry came to, beside the snapshots themselves."""

    data_files: int = 0
    delete_files: int = 0
    tables: int = 0


def expire(session: MetadataSession, expired: Sequence[int], data_path: str, now: datetime) -> Expired:
    """Take the snapshots out of the metadata, and what no other one sees. The newest must not be among them."""
    session.delete_all(tables.Snapshot, "snapshot_id", expired)
    session.delete_all(tables.SnapshotChanges, "snapshot_id", expired)
    schedule = _Schedule(data_path, table_folders(session, data_path), now)
    dropped = _unseen_tables(session)
    data_files = _data_files(session, dropped, schedule)
    delete_files = _delete_files(session, dropped, data_files, schedule)
    _forget_tables(session, sorted(dropped))
    for name in leftover_tables(session):
        session.drop_table(name)
        session.delete(tables.InlinedDataTables, {"table_name": name})
    for row_class in _UNSEEN:
        session.delete_where(row_class, _NO_SNAPSHOT_SEES.format(of=""))
    for row_class, column, needed in _NEEDS:
        session.delete_where(row_class, f"{column} NOT IN (SELECT {column} FROM {{{needed}}} AS known)")
    return Expired(len(data_files), delete_files, len(dropped))


# Asked within each statement: on PostgreSQL others, who do not know our lock, may commit between two of them.
_NO_SNAPSHOT_SEES = (
    "{of}end_snapshot IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {{snapshot}} AS kept "
    "WHERE kept.snapshot_id >= {of}begin_snapshot AND kept.snapshot_id < {of}end_snapshot)"
)


@dataclass(frozen=True)
class _Schedule:
    """How a file is noted whose path is relative to its table; afterwards it is relative to the data path."""

    data_path: str
    folders: Mapping[int, str]
    now: datetime

    def row(self, file_id: int, table_id: int, path: str, is_relative: bool) -> tables.FilesScheduledForDeletion:
        return scheduled_row(file_id, path, is_relative, self.folders[table_id], self.data_path, self.now)


def _unseen_tables(session: MetadataSession) -> set[TableId]:
    """The tables of which no row is seen: of a renamed one, the row of its present name is."""
    unseen, seen = _NO_SNAPSHOT_SEES.format(of="t."), _NO_SNAPSHOT_SEES.format(of="other.")
    rows = session.query(
        f"SELECT DISTINCT t.table_id FROM {{table}} AS t WHERE {unseen} AND NOT EXISTS "
        f"(SELECT 1 FROM {{table}} AS other WHERE other.table_id = t.table_id AND NOT ({seen}))"
    )
    return {TableId(row[0]) for row in rows}


def _data_files(session: MetadataSession, dropped: set[TableId], schedule: _Schedule) -> list[int]:
    columns = "SELECT f.data_file_id, f.table_id, f.path, f.path_is_relative FROM {data_file} AS f WHERE "
    gone = {row[0]: row for row in session.query(columns + _NO_SNAPSHOT_SEES.format(of="f."))}
    for some in in_chunks(sorted(dropped)):
        rows = session.query(f"{columns} f.table_id IN ({places(1, len(some))})", *some)
        gone |= {row[0]: row for row in rows}
    ids: list[int] = sorted(gone)
    for row_class in OF_DATA_FILE:
        session.delete_all(row_class, "data_file_id", ids)
    session.insert([schedule.row(*gone[file_id]) for file_id in ids])
    for table_id in sorted({row[1] for row in gone.values()} - dropped):
        _forget_inlined_deletes(session, table_id, [row[0] for row in gone.values() if row[1] == table_id])
    return ids


def _delete_files(
    session: MetadataSession, dropped: set[TableId], data_files: Sequence[int], schedule: _Schedule
) -> int:
    columns = "SELECT f.delete_file_id, f.table_id, f.path, f.path_is_relative FROM {delete_file} AS f WHERE "
    gone = {row[0]: row for row in session.query(columns + _NO_SNAPSHOT_SEES.format(of="f."))}
    for column, values in (("table_id", sorted(dropped)), ("data_file_id", data_files)):
        for ids in in_chunks(values):
            rows = session.query(f"{columns} f.{column} IN ({places(1, len(ids))})", *ids)
            gone |= {row[0]: row for row in rows}
    session.delete_all(tables.DeleteFile, "delete_file_id", sorted(gone))
    session.insert([schedule.row(*gone[file_id]) for file_id in sorted(gone)])
    return len(gone)


def _forget_tables(session: MetadataSession, dropped: Sequence[TableId]) -> None:
    if not dropped:
        return
    some = set(dropped)
    rows = session.read(tables.InlinedDataTables)
    names = [row.table_name for row in rows if row.table_id in some and is_own_name(row)]
    for name in [*names, *map(deletes_table_of, dropped)]:
        session.drop_table(name)
    for row_class in _OF_TABLE:
        if "table_id" not in session.layout.columns(row_class):
            continue
        session.delete_all(row_class, "table_id", dropped)


def _forget_inlined_deletes(session: MetadataSession, table_id: TableId, files: Sequence[int]) -> None:
    """Deletes of rows in files that are no more."""
    name = deletes_table_of(table_id)
    if session.has_table(name):
        for ids in in_chunks(files):
            session.run_on(name, f"DELETE FROM {{table}} WHERE file_id IN ({places(1, len(ids))})", *ids)
