"""The change feed of a table: which rows of which files came and went between two snapshots, both included.

A row that came and a row that went with the same row id in the same snapshot are the two sides of an update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.ducklake.lake.definitions import Table
from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.lake.names import FileId, SnapshotId, TableId
from dbt.adapters.ducklake.lake.snapshot.files import (
    DataFile,
    DeleteFile,
    NameMapping,
    delete_file_of,
    files_where,
    load_mappings,
)
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow, inlined_rows_ended, inlined_rows_inserted
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import deletes_table_of


@dataclass(frozen=True, slots=True)
class InsertedRows:
    """All rows of a file, inserted in snapshot `file.begin`; where `by_row`, each row's embedded snapshot id says
    when, and rows outside the asked range do not count."""

    file: DataFile
    by_row: bool


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Positions that `added` holds and `before` does not, deleted in `snapshot`.

    Where `added` has the column `_ducklake_internal_snapshot_id`, that column says when each position was deleted,
    `before` plays no part, and positions outside the asked range do not count.
    """

    file: DataFile
    snapshot: SnapshotId
    added: DeleteFile
    before: DeleteFile | None


@dataclass(frozen=True, slots=True)
class EndedFile:
    """A file all of whose rows, except those deleted earlier, went in `snapshot`."""

    file: DataFile
    snapshot: SnapshotId
    before: DeleteFile | None
    inlined_before: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableChanges:
    first: SnapshotId
    last: SnapshotId
    inserted: tuple[InsertedRows, ...]
    deleted: tuple[DeletedRows, ...]
    ended: tuple[EndedFile, ...]
    # (position, snapshot) pairs
    inlined_deletes: Mapping[FileId, tuple[tuple[int, SnapshotId], ...]]
    inlined_inserted: tuple[InlinedRow, ...]
    inlined_ended: tuple[InlinedRow, ...]
    files: Mapping[FileId, DataFile]
    mappings: Mapping[FileId, NameMapping]


def load_changes(session: MetadataSession, table: Table, first: SnapshotId, last: SnapshotId) -> TableChanges:
    """The feed with the columns of `table`, which is read at `last` as DuckDB does."""
    # Every file whose life touches the range: what came in it may be gone since.
    lived = "begin_snapshot <= $1 AND (end_snapshot IS NULL OR end_snapshot >= $2)"
    files = {file.id: file for file in files_where(session, None, table, lived, last, first)}
    deletes = _delete_files(session, table, last)
    inlined = _inlined_deletes(session, table.id, last)
    return TableChanges(
        first=first,
        last=last,
        inserted=tuple(_inserted(files, first, last)),
        deleted=tuple(_deleted(files, deletes, first, last)),
        ended=tuple(_ended(files, deletes, inlined, first, last)),
        inlined_deletes={
            file_id: during
            for file_id, pairs in inlined.items()
            if (during := tuple(pair for pair in pairs if pair[1] >= first))
        },
        inlined_inserted=inlined_rows_inserted(session, table, first, last),
        inlined_ended=inlined_rows_ended(session, table, first, last),
        files=files,
        mappings=load_mappings(session, table.id, list(files.values())),
    )


def _inserted(files: Mapping[FileId, DataFile], first: SnapshotId, last: SnapshotId) -> list[InsertedRows]:
    found = []
    for file in files.values():
        if file.partial_max is not None:
            if file.partial_max >= first:
                found.append(InsertedRows(file, by_row=True))
        elif first <= file.begin <= last:
            found.append(InsertedRows(file, by_row=False))
    return found


def _deleted(
    files: Mapping[FileId, DataFile],
    deletes: Mapping[FileId, list[tuple[DeleteFile, SnapshotId | None]]],
    first: SnapshotId,
    last: SnapshotId,
) -> list[DeletedRows]:
    found = []
    for file_id, chain in deletes.items():
        if file_id not in files:
            continue
        for place, (delete, _) in enumerate(chain):
            # What a flush writes has snapshots in it though it may not say up to which.
            may_hold_later = delete.partial_max is None and files[file_id].partial_max is not None
            newest = delete.begin if delete.partial_max is None else delete.partial_max
            if newest >= first or may_hold_later:
                before = chain[place - 1][0] if place else None
                found.append(DeletedRows(files[file_id], delete.begin, delete, before))
    return found


def _ended(
    files: Mapping[FileId, DataFile],
    deletes: Mapping[FileId, list[tuple[DeleteFile, SnapshotId | None]]],
    inlined: Mapping[FileId, tuple[tuple[int, SnapshotId], ...]],
    first: SnapshotId,
    last: SnapshotId,
) -> list[EndedFile]:
    found = []
    for file in files.values():
        if file.end is None or not first <= file.end <= last:
            continue
        # The delete file of a file that ends is left as it is.
        live = [
            delete
            for delete, end in deletes.get(file.id, [])
            if delete.begin < file.end and (end or file.end) >= file.end
        ]
        gone = tuple(position for position, snapshot in inlined.get(file.id, ()) if snapshot < file.end)
        found.append(EndedFile(file, file.end, live[-1] if live else None, gone))
    return found


def _delete_files(
    session: MetadataSession, table: Table, last: SnapshotId
) -> dict[FileId, list[tuple[DeleteFile, SnapshotId | None]]]:
    """The delete files of each data file in the order of their snapshots, each with the snapshot that ended it."""
    rows = session.read(
        tables.DeleteFile,
        "WHERE table_id = $1 AND begin_snapshot <= $2 ORDER BY data_file_id, begin_snapshot",
        table.id,
        last,
    )
    found: dict[FileId, list[tuple[DeleteFile, SnapshotId | None]]] = {}
    for row in rows:
        end = None if row.end_snapshot is None else SnapshotId(row.end_snapshot)
        found.setdefault(FileId(row.data_file_id), []).append((delete_file_of(row, table), end))
    return found


def _inlined_deletes(
    session: MetadataSession, table_id: TableId, last: SnapshotId
) -> dict[FileId, tuple[tuple[int, SnapshotId], ...]]:
    name = deletes_table_of(table_id)
    if not session.has_table(name):
        return {}
    sql = "SELECT file_id, row_id, begin_snapshot FROM {table} WHERE begin_snapshot <= $1 ORDER BY file_id, row_id"
    found: dict[FileId, tuple[tuple[int, SnapshotId], ...]] = {}
    for file_id, position, snapshot in session.run_on(name, sql, last):
        found[file_id] = (*found.get(file_id, ()), (position, snapshot))
    return found
