"""What a transaction records of rows: files and rows that come, rows that go, files that give way to others with the
same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dbt.adapters.ducklake.lake.columns import walk
from dbt.adapters.ducklake.lake.definitions import (
    Partitioning,
    Table,
)
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    FileNotFound,
    ReadOnlyLake,
)
from dbt.adapters.ducklake.lake.metadata import Metadata
from dbt.adapters.ducklake.lake.names import FileId
from dbt.adapters.ducklake.lake.partitioning import bucket_count
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow
from dbt.adapters.ducklake.lake.snapshot.snapshot import Snapshot
from dbt.adapters.ducklake.lake.transaction.changes import (
    AddDeletes,
    AppendFiles,
    Change,
    Compaction,
    DeletesToAdd,
    EndFiles,
    EndInlined,
    FileToAdd,
    FlushInlined,
    InlineDeletes,
    InsertInlined,
    MergeFiles,
    RewriteFiles,
    VersionsFile,
)
from dbt.adapters.ducklake.lake.transaction.draft import Draft
from dbt.adapters.ducklake.lake.transaction.inlining import bound_values, can_inline
from dbt.adapters.ducklake.lake.values import Value

_ADDS_ROWS = (AppendFiles, InsertInlined)
_CHANGES_ROWS = (AppendFiles, AddDeletes, EndFiles, InsertInlined, EndInlined, InlineDeletes)


class RowChanges(Draft):
    def __init__(self, metadata: Metadata, base: Snapshot, refusal: str | None) -> None:
        super().__init__(base)
        self._metadata = metadata
        # Why nothing may be written; said at the first change, before any work is done for it.
        self._refusal = refusal
        self._changes: list[Change] = []

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes)

    def check_writable(self) -> None:
        """ReadOnlyLake, before any work is done for a change."""
        if self._refusal is not None:
            raise ReadOnlyLake(self._metadata.backend.name, self._refusal)

    # Rows.

    def append(self, table: Table, files: Sequence[FileToAdd]) -> None:
        """Register files whose rows are new. Files without rows are not registered."""
        self._refuse_other_definition(f"append to {table}", table)
        kept = tuple(file for file in files if file.record_count)
        paths = [file.path for c in self._changes if isinstance(c, AppendFiles) for file in c.files]
        for file in kept:
            _check_file(table, file)
            if file.path in paths:
                raise ChangeRefused(f"append to {table}", f"{file.path} is named twice", "Its rows would be doubled.")
            paths.append(file.path)
        if kept:
            self._record(AppendFiles(table, kept))

    def delete(self, table: Table, deletes: Sequence[DeletesToAdd], ended: Sequence[FileId] = ()) -> None:
        """Delete rows of data files: some, by a delete file each, or all of a file, by ending it."""
        self._refuse_other_definition(f"delete from {table}", table)
        touched = [*self._deleted_from(table), *(delete.data_file_id for delete in deletes), *ended]
        if len(set(touched)) != len(touched):
            raise ChangeRefused(f"delete from {table}", "a data file is named twice", "Give one delete file for each.")
        if deletes:
            self._record(AddDeletes(table, tuple(deletes)))
        if ended:
            self._record(EndFiles(table, tuple(ended)))

    def insert_inlined(
        self, table: Table, rows: Iterable[Sequence[Value]], row_ids: Sequence[int | None] | None = None
    ) -> None:
        """Keep rows in the metadata database. `row_ids` are those of the rows that they are new versions of."""
        self._refuse_other_definition(f"inline rows of {table}", table)
        self._refuse_shared(f"inline rows of {table}", "Write them to a file.")
        kept = tuple(map(tuple, rows))
        storage = self._metadata.backend.storage
        if not can_inline(storage, self._metadata.layout, table.columns):
            raise ChangeRefused(
                f"inline rows of {table}", "it has a column that cannot be inlined", "Write them to a file."
            )
        for row in kept:
            bound_values(storage, table, row)
        if kept:
            self._record(InsertInlined(table, kept, tuple(row_ids or [None] * len(kept))))

    def end_inlined(self, table: Table, rows: Sequence[InlinedRow]) -> None:
        """Delete rows that live in the metadata database."""
        self._refuse_other_definition(f"delete from {table}", table)
        if rows:
            self._record(EndInlined(table, tuple(rows)))

    def delete_inlined(self, table: Table, positions: Mapping[FileId, Sequence[int]]) -> None:
        """Delete rows of files without writing delete files; positions that are deleted already may not come again."""
        asked = f"delete from {table}"
        self._refuse_other_definition(asked, table)
        self._refuse_shared(asked, "Write a delete file.")
        kept = {file_id: tuple(found) for file_id, found in positions.items() if found}
        if not kept:
            return
        if set(kept) & set(self._deleted_from(table)):
            raise ChangeRefused(asked, "a data file is named twice", "Name all its positions at once.")
        files = {file.id: file for file in self.base.files(table).data_files}
        if missing := set(kept) - set(files):
            raise FileNotFound(str(table), min(missing), self.base.id)
        beside = {file_id: found.id if (found := files[file_id].delete_file) else None for file_id in kept}
        self._record(InlineDeletes(table, kept, beside))

    # The same rows in other files.

    def merge_files(self, table: Table, sources: Sequence[FileId], files: Sequence[VersionsFile]) -> None:
        """Let data files that have no deleted rows give way to others with the same rows."""
        self._compact(MergeFiles(table, tuple(sources), tuple(files)))

    def rewrite_files(self, table: Table, beside: Mapping[FileId, FileId | None], files: Sequence[FileToAdd]) -> None:
        """End data files with their delete files; their other rows, with their ids, are in new ones."""
        self._compact(RewriteFiles(table, dict(beside), tuple(files)))

    def flush_inlined(
        self, table: Table, kept_in: Sequence[str], files: Sequence[VersionsFile], deletes: Sequence[DeletesToAdd]
    ) -> None:
        """Let files take the place of inlined rows, in all their versions, and of inlined deletes."""
        self._refuse_shared(f"flush inlined rows of {table}", "Leave them where they are.")
        if kept_in or deletes:
            self._compact(FlushInlined(table, tuple(kept_in), tuple(files), tuple(deletes)))

    def _compact(self, change: Compaction) -> None:
        asked = f"compact {change.table}"
        self._refuse_other_definition(asked, change.table)
        if any(isinstance(one, _CHANGES_ROWS) and one.table.id == change.table.id for one in self._changes):
            raise ChangeRefused(asked, "its rows change in this transaction", "Compact it in one of its own.")
        self._record(change)

    def _record(self, change: Change) -> None:
        self.check_writable()
        self._changes.append(change)

    def _has_rows(self, table: Table) -> bool:
        return any(isinstance(change, _ADDS_ROWS) and change.table.id == table.id for change in self._changes)

    def _deleted_from(self, table: Table) -> list[FileId]:
        """The data files of a table that recorded changes delete from."""
        found: list[FileId] = []
        for change in self._changes:
            match change:
                case AddDeletes(of, deletes) if of.id == table.id:
                    found += [delete.data_file_id for delete in deletes]
                case EndFiles(of, ended) if of.id == table.id:
                    found += ended
                case InlineDeletes(of, positions) if of.id == table.id:
                    found += positions
        return found

    def _refuse_other_definition(self, asked: str, table: Table) -> None:
        """Rows are written under the definition that the transaction has of their table, and no other."""
        if self.find(table.schema.name, table.name) != table:
            found = "that is not the definition the table has in this transaction"
            raise ChangeRefused(asked, found, "Take it from the transaction, after its changes.")

    def _refuse_shared(self, asked: str, remedy: str) -> None:
        if self._metadata.layout.is_shared:
            found = "what metadata that are shared between tenants say of inlined rows is another matter"
            raise ChangeRefused(asked, found, remedy)


def _check_file(table: Table, file: FileToAdd) -> None:
    """Refuse a description that would make readers skip or misread rows."""
    asked = f"add {file.path} to {table}"
    leaves = {column.id for column in walk(table.columns) if not column.type.is_container}
    if unknown := sorted(set(file.columns) - leaves):
        raise ChangeRefused(asked, f"it has statistics of column id {unknown[0]}, which is no leaf column of the table")
    _check_partition(asked, table.partitioning, file)


def _check_partition(asked: str, partitioning: Partitioning | None, file: FileToAdd) -> None:
    keys = partitioning.fields if partitioning else ()
    if file.partition_values is None:
        if any(bucket_count(key.transform) for key in keys):
            raise ChangeRefused(
                asked, "it has no partition values, without which DuckDB skips files of a bucketed table"
            )
    elif len(file.partition_values) != len(keys):
        found = f"it has {len(file.partition_values)} partition values and the table {len(keys)} keys"
        raise ChangeRefused(asked, found, "Give the text of each key, in their order.")
