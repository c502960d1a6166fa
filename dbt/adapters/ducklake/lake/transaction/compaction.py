"""The metadata of compactions in a commit: files that give way to others with the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from dbt.adapters.ducklake.lake.definitions import Table
from dbt.adapters.ducklake.lake.metadata import MetadataSession, in_chunks, places
from dbt.adapters.ducklake.lake.names import FileId, SnapshotId
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import deletes_table_of
from dbt.adapters.ducklake.lake.spec.tables import OF_DATA_FILE
from dbt.adapters.ducklake.lake.transaction.changes import (
    Compaction,
    DeletesToAdd,
    FileToAdd,
    FlushInlined,
    MergeFiles,
    RewriteFiles,
    VersionsFile,
)
from dbt.adapters.ducklake.lake.transaction.rows import Batch, data_file_rows, delete_row, scheduled_row


def sources_of(compactions: Sequence[Compaction]) -> dict[FileId, FileId | None]:
    """The data files that must be live still, each with the delete file that it must have."""
    found: dict[FileId, FileId | None] = {}
    for change in compactions:
        match change:
            case MergeFiles(_, sources):
                found.update(dict.fromkeys(sources))
            case RewriteFiles(_, beside):
                found.update(beside)
            case FlushInlined(_, _, _, deletes):
                found.update({delete.data_file_id: delete.replaces for delete in deletes})
    return found


class Compacting:
    """Adds what a table's compactions come to."""

    def __init__(self, session: MetadataSession, batch: Batch, table: Table, data_path: str, base: SnapshotId) -> None:
        self._session, self._batch, self._table = session, batch, table
        self._data_path, self._base, self._now = data_path, base, datetime.now(UTC)
        self._ids: Iterator[int] = iter(batch.numbering.compacted[table.id])

    def add(self, change: Compaction) -> int:
        """Add one compaction; the bytes by which the table grows, as the extension counts them."""
        match change:
            case MergeFiles(_, sources, files):
                for file in files:
                    self._add_versions(file)
                self._remove_sources(sources)
                return 0
            case RewriteFiles(_, beside, new):
                for written in new:
                    self._add_rewritten(written)
                self._end_sources(beside)
                return 0
            case FlushInlined(_, kept_in, files, deletes):
                for file in files:
                    self._add_versions(file)
                self._add_deletes(deletes)
                self._forget_inlined(kept_in, [delete.data_file_id for delete in deletes])
                return sum(file.file.size for file in files)

    def _add_versions(self, file: VersionsFile) -> None:
        file_id = next(self._ids)
        data_file_rows(
            self._batch, file.table, file_id, file.file, {}, begin_snapshot=file.first,
            row_id_start=file.row_id_start, partition_id=file.partition_id, partial_max=file.last,
        )  # fmt: skip
        if file.deletes is not None:
            deletes = replace(file.deletes, data_file_id=FileId(file_id))
            self._batch.add(delete_row(self._batch, self._table.id, self._table.location, next(self._ids), deletes))

    def _add_rewritten(self, file: FileToAdd) -> None:
        spec = self._table.partitioning
        data_file_rows(
            self._batch, self._table, next(self._ids), file, {}, begin_snapshot=self._batch.numbering.snapshot,
            row_id_start=None, partition_id=spec.id if spec and file.partition_values is not None else None,
        )  # fmt: skip

    def _remove_sources(self, sources: Sequence[FileId]) -> None:
        asked = f"merge files of {self._table}"
        self._session.refuse_shared_files(asked, "Rewrite them, which leaves the old ones.")
        for ids in in_chunks(sources):
            rows = self._session.read(tables.DataFile, f"WHERE data_file_id IN ({places(1, len(ids))})", *ids)
            for row in rows:
                self._schedule(row.data_file_id, row.path, row.path_is_relative)
        for row_class in (*OF_DATA_FILE, tables.DeleteFile):
            self._session.delete_all(row_class, "data_file_id", sources)

    def _schedule(self, file_id: int, path: str, is_relative: bool) -> None:
        location = self._table.location
        self._batch.add(scheduled_row(file_id, path, is_relative, location, self._data_path, self._now))

    def _end_sources(self, beside: Mapping[FileId, FileId | None]) -> None:
        for ids in in_chunks(beside):
            self._batch.end(tables.DataFile, table_id=self._table.id, data_file_id=ids)
        for deletes in in_chunks(delete for delete in beside.values() if delete is not None):
            self._batch.end(tables.DeleteFile, table_id=self._table.id, delete_file_id=deletes)

    def _add_deletes(self, deletes: Sequence[DeletesToAdd]) -> None:
        for delete in deletes:
            if delete.replaces is not None:
                old = self._session.read(tables.DeleteFile, "WHERE delete_file_id = $1", delete.replaces)[0]
                self._session.delete(tables.DeleteFile, {"delete_file_id": old.delete_file_id})
                self._schedule(old.delete_file_id, old.path, old.path_is_relative)
            self._batch.add(delete_row(self._batch, self._table.id, self._table.location, next(self._ids), delete))

    def _forget_inlined(self, kept_in: Sequence[str], files: Sequence[FileId]) -> None:
        """The rows are in files now. A table that is empty stays until the lake expires snapshots: sessions of DuckDB
        that know it would fail without it."""
        for name in kept_in:
            self._session.run_on(name, "DELETE FROM {table} WHERE {begin} <= $1", self._base)
        for ids in in_chunks(files):
            # Those of files that have ended stay: earlier snapshots read them.
            sql = f"DELETE FROM {{table}} WHERE begin_snapshot <= $1 AND file_id IN ({places(2, len(ids))})"
            self._session.run_on(deletes_table_of(self._table.id), sql, self._base, *ids)
