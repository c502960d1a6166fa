"""Snapshots expire: their rows go, and with them all that only they could see. Files are scheduled for removal."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dbt.adapters.ducklake.lake.maintenance.folders import table_folders
from dbt.adapters.ducklake.lake.metadata import MetadataSession, in_chunks
from dbt.adapters.ducklake.lake.names import TableId
from dbt.adapters.ducklake.lake.paths import path_below, stored_path
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import deletes_table_of
from dbt.adapters.ducklake.lake.spec.tables import RowClass

_OF_DATA_FILE: tuple[RowClass, ...] = (
    tables.DataFile, tables.FileColumnStats, tables.FileVariantStats, tables.FilePartitionValue,
)  # fmt: skip
_OF_TABLE: tuple[RowClass, ...] = (
    tables.Table, tables.TableStats, tables.TableColumnStats, tables.PartitionInfo, tables.PartitionColumn,
    tables.Column, tables.ColumnTag, tables.SortInfo, tables.SortExpression, tables.SchemaVersions,
    tables.InlinedDataTables, tables.ColumnMapping,
)  # fmt: skip
# Rows that are no longer seen by themselves, whatever they belong to.
_UNSEEN: tuple[RowClass, ...] = (tables.Schema, tables.View, tables.Tag, tables.Macro)
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


class _Survivors:
    """The snapshots that stay."""

    def __init__(self, ids: Iterable[int]) -> None:
        self._ids = sorted(ids)

    def see(self, begin: int, end: int | None) -> bool:
        if end is None:
            return True
        place = bisect_left(self._ids, begin)
        return place < len(self._ids) and self._ids[place] < end


def expire(session: MetadataSession, expired: Sequence[int], data_path: str, now: datetime) -> Expired:
    """Take the snapshots out of the metadata, and what no other one sees. The newest must not be among them."""
    gone = set(expired)
    survivors = _Survivors(row[0] for row in session.query("SELECT snapshot_id FROM {snapshot}") if row[0] not in gone)
    session.delete_all(tables.Snapshot, "snapshot_id", expired)
    session.delete_all(tables.SnapshotChanges, "snapshot_id", expired)
    schedule = _Schedule(data_path, table_folders(session, data_path), now)
    dropped = _unseen_tables(session, survivors)
    data_files = _data_files(session, survivors, dropped, schedule)
    delete_files = _delete_files(session, survivors, dropped, data_files, schedule)
    _forget_tables(session, sorted(dropped))
    for row_class in _UNSEEN:
        session.delete_where(row_class, _NO_SNAPSHOT_SEES)
    for row_class, column, needed in _NEEDS:
        session.delete_where(row_class, f"{column} NOT IN (SELECT {column} FROM {{{needed}}} AS known)")
    return Expired(len(data_files), delete_files, len(dropped))


_NO_SNAPSHOT_SEES = (
    "end_snapshot IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {snapshot} AS kept "
    "WHERE kept.snapshot_id >= begin_snapshot AND kept.snapshot_id < end_snapshot)"
)


@dataclass(frozen=True)
class _Schedule:
    """How a file is noted whose path is relative to its table; afterwards it is relative to the data path."""

    data_path: str
    folders: Mapping[int, str]
    now: datetime

    def row(self, file_id: int, table_id: int, path: str, is_relative: bool) -> tables.FilesScheduledForDeletion:
        full = stored_path(path, is_relative).under(self.folders.get(table_id, self.data_path))
        stored = path_below(self.data_path, full)
        return tables.FilesScheduledForDeletion(file_id, stored.text, stored.is_relative, self.now)


def _unseen_tables(session: MetadataSession, survivors: _Survivors) -> set[TableId]:
    """The tables of which no row is seen: of a renamed one, the row of its present name is."""
    rows = session.query("SELECT table_id, begin_snapshot, end_snapshot FROM {table}")
    seen = {table_id for table_id, begin, end in rows if survivors.see(begin, end)}
    return {table_id for table_id, _, _ in rows} - seen


def _data_files(
    session: MetadataSession, survivors: _Survivors, dropped: set[TableId], schedule: _Schedule
) -> list[int]:
    rows = session.query(
        "SELECT data_file_id, table_id, path, path_is_relative, begin_snapshot, end_snapshot FROM {data_file} "
        "WHERE end_snapshot IS NOT NULL OR table_id NOT IN "
        "(SELECT table_id FROM {table} AS live WHERE end_snapshot IS NULL)"
    )
    gone = [row for row in rows if row[1] in dropped or not survivors.see(row[4], row[5])]
    ids = [row[0] for row in gone]
    for row_class in _OF_DATA_FILE:
        session.delete_all(row_class, "data_file_id", ids)
    session.insert([schedule.row(*row[:4]) for row in gone])
    for table_id in sorted({row[1] for row in gone} - dropped):
        _forget_inlined_deletes(session, table_id, [row[0] for row in gone if row[1] == table_id])
    return ids


def _delete_files(
    session: MetadataSession,
    survivors: _Survivors,
    dropped: set[TableId],
    data_files: Sequence[int],
    schedule: _Schedule,
) -> int:
    rows = session.query(
        "SELECT delete_file_id, table_id, path, path_is_relative, begin_snapshot, end_snapshot, data_file_id "
        "FROM {delete_file}"
    )
    without = set(data_files)
    gone = [row for row in rows if row[1] in dropped or row[6] in without or not survivors.see(row[4], row[5])]
    session.delete_all(tables.DeleteFile, "delete_file_id", [row[0] for row in gone])
    session.insert([schedule.row(*row[:4]) for row in gone])
    return len(gone)


def _forget_tables(session: MetadataSession, dropped: Sequence[TableId]) -> None:
    if not dropped:
        return
    some = set(dropped)
    names = [row.table_name for row in session.read(tables.InlinedDataTables) if row.table_id in some]
    for name in [*names, *map(deletes_table_of, dropped)]:
        if session.has_table(name):
            session.run_on(name, "DROP TABLE {table}")
    for row_class in _OF_TABLE:
        session.delete_all(row_class, "table_id", dropped)


def _forget_inlined_deletes(session: MetadataSession, table_id: TableId, files: Sequence[int]) -> None:
    """Deletes of rows in files that are no more."""
    name = deletes_table_of(table_id)
    if session.has_table(name):
        for ids in in_chunks(files):
            places = ", ".join(f"${place}" for place in range(1, len(ids) + 1))
            session.run_on(name, f"DELETE FROM {{table}} WHERE file_id IN ({places})", *ids)
