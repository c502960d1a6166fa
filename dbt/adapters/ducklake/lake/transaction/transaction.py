"""A transaction: changes to any number of schemas, tables and views, recorded now and committed as one snapshot.

It reads as the lake was at its base snapshot plus its own changes. Nothing is written before `commit`; a transaction
that is dropped leaves no trace. It belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from dbt.adapters.ducklake.lake.columns import Column, Default, numbered_all, walk
from dbt.adapters.ducklake.lake.definitions import (
    PartitionField,
    Partitioning,
    Schema,
    SortField,
    Table,
    TableName,
    View,
)
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    FileNotFound,
    NameTaken,
    ReadOnlyLake,
)
from dbt.adapters.ducklake.lake.metadata import Metadata
from dbt.adapters.ducklake.lake.names import FileId, SchemaId, SnapshotId, TableId, fold, folder_for, new_uuid
from dbt.adapters.ducklake.lake.partitioning import bucket_count
from dbt.adapters.ducklake.lake.paths import StoredPath
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow
from dbt.adapters.ducklake.lake.snapshot.pruning import Predicate
from dbt.adapters.ducklake.lake.snapshot.snapshot import Snapshot
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.tables import RowClass
from dbt.adapters.ducklake.lake.transaction import alter
from dbt.adapters.ducklake.lake.transaction.alter import Path
from dbt.adapters.ducklake.lake.transaction.changes import (
    AddDeletes,
    AlterTable,
    AlterView,
    AppendFiles,
    Change,
    CommitMessage,
    Compaction,
    CreateSchema,
    CreateTable,
    CreateView,
    DeletesToAdd,
    DropSchema,
    DropTable,
    DropView,
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
from dbt.adapters.ducklake.lake.transaction.commit import Commit, Patience, RewriteDeletes
from dbt.adapters.ducklake.lake.transaction.draft import Draft
from dbt.adapters.ducklake.lake.transaction.effects import effects_of
from dbt.adapters.ducklake.lake.transaction.inlining import bound_values, can_inline
from dbt.adapters.ducklake.lake.values import Value

_ADDS_ROWS = (AppendFiles, InsertInlined)
_CHANGES_ROWS = (AppendFiles, AddDeletes, EndFiles, InsertInlined, EndInlined, InlineDeletes)


class Transaction(Draft):
    def __init__(
        self,
        metadata: Metadata,
        base: Snapshot,
        patience: Patience,
        inlining_limit: int | None,
        refusal: str | None = None,
    ) -> None:
        super().__init__(base)
        self.attempts = 0
        self._metadata, self._patience, self._inlining_limit = metadata, patience, inlining_limit
        # Why nothing may be written; said at the first change, before any work is done for it.
        self._refusal = refusal
        self._changes: list[Change] = []
        self._message: CommitMessage | None = None
        self._next_local_id = -1
        self._looked_in: dict[TableId, tuple[Predicate, ...]] = {}

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes)

    # Schemas.

    def create_schema(self, name: str) -> Schema:
        _check_name("create a schema", name)
        if self.find_schema(name) is not None:
            raise NameTaken("Schema", name, "the lake")
        uuid = new_uuid()
        path = StoredPath(self._metadata.layout.folder + folder_for(name, uuid), True)
        schema = Schema(SchemaId(self._local_id()), uuid, name, path, SnapshotId(self.base.id + 1))
        self._record(CreateSchema(schema))
        self._schemas[fold(name)] = schema
        return schema

    def drop_schema(self, name: str, cascade: bool = False) -> None:
        schema = self.schema(name)
        members = self.members(schema)
        if members and not cascade:
            names = ", ".join(member.name for member in members[:10])
            raise ChangeRefused(f"drop schema {schema.name}", f"it holds {names}", "Drop them first, or cascade.")
        for member in members:
            self._drop(member)
        self._record(DropSchema(schema))
        self._schemas[fold(name)] = None

    # Tables.

    def create_table(
        self,
        schema: str,
        name: str,
        columns: Sequence[Column],
        partition_by: Sequence[tuple[str, str]] = (),
        sort_by: Sequence[SortField] = (),
        comment: str | None = None,
    ) -> Table:
        """A new table; `partition_by` are (column, transform) pairs."""
        _check_name(f"create a table in {schema}", name)
        if self.find(schema, name) is not None:
            raise NameTaken("Table or view", name, f"schema {schema}")
        return self._create_table(self.schema(schema), name, columns, partition_by, sort_by, comment)

    def replace_table(
        self,
        schema: str,
        name: str,
        columns: Sequence[Column],
        partition_by: Sequence[tuple[str, str]] = (),
        sort_by: Sequence[SortField] = (),
        comment: str | None = None,
    ) -> Table:
        """Another table under this name, whether or not one is there; readers see the old one until the commit."""
        _check_name(f"create a table in {schema}", name)
        there = self.find(schema, name)
        if isinstance(there, View):
            raise NameTaken("View", name, f"schema {schema}")
        if there is not None:
            self._drop(there)
        return self._create_table(self.schema(schema), name, columns, partition_by, sort_by, comment)

    def _create_table(
        self,
        schema: Schema,
        name: str,
        columns: Sequence[Column],
        partition_by: Sequence[tuple[str, str]],
        sort_by: Sequence[SortField],
        comment: str | None,
    ) -> Table:
        asked = f"create table {schema.name}.{name}"
        alter.check_columns(asked, columns)
        own, next_column_id = numbered_all(alter.with_initial_defaults(columns, asked))
        uuid = new_uuid()
        path = StoredPath(folder_for(name, uuid), True)
        named = TableName(TableId(self._local_id()), uuid, schema, name, path, SnapshotId(self.base.id + 1))
        location = path.under(schema.path.under(self.base.data_path))
        table = Table(named, own, location, comment=comment, sort=tuple(sort_by), next_column_id=next_column_id)
        if partition_by:
            table = alter.set_partitioning(table, _fields(table, partition_by), self._local_id())
        self._record(CreateTable(table))
        self._objects[schema.id, fold(name)] = table
        return table

    def drop_table(self, schema: str, name: str) -> None:
        self._drop(self.table(schema, name))

    def rename_table(self, schema: str, name: str, new_name: str) -> Table:
        table = self.table(schema, name)
        self._refuse_taken(schema, name, new_name)
        return self._alter(table, replace(table, named=replace(table.named, name=new_name)))

    def add_column(self, schema: str, name: str, column: Column, parent: Path = ()) -> Table:
        return self._altered(schema, name, lambda table: alter.add_column(table, column, parent))

    def drop_column(self, schema: str, name: str, path: Path) -> Table:
        return self._altered(schema, name, lambda table: alter.drop_column(table, path))

    def rename_column(self, schema: str, name: str, path: Path, new_name: str) -> Table:
        return self._altered(schema, name, lambda table: alter.rename_column(table, path, new_name))

    def change_type(self, schema: str, name: str, path: Path, column: Column) -> Table:
        """Widen a column to the type of `column`, of which nothing else counts."""
        return self._altered(schema, name, lambda table: alter.change_type(table, path, column.type))

    def set_nullable(self, schema: str, name: str, path: Path, nullable: bool, has_nulls: bool = False) -> Table:
        """Allow or forbid NULLs in new rows; whoever forbids them has looked whether there are any (`has_nulls`)."""
        return self._altered(schema, name, lambda table: alter.set_nullable(table, path, nullable, has_nulls))

    def set_default(self, schema: str, name: str, path: Path, default: Default) -> Table:
        return self._altered(schema, name, lambda table: alter.set_default(table, path, default))

    def set_partitioning(self, schema: str, name: str, partition_by: Sequence[tuple[str, str]]) -> Table:
        """Partition new files by (column, transform) pairs; by none, no more."""
        local = self._local_id()
        return self._altered(
            schema, name, lambda table: alter.set_partitioning(table, _fields(table, partition_by), local)
        )

    def set_sort(self, schema: str, name: str, sort_by: Sequence[SortField]) -> Table:
        if sort_by:
            self._refuse_absent(f"sort {schema}.{name}", tables.SortInfo, "sort keys")
        return self._altered(schema, name, lambda table: alter.set_sort(table, sort_by))

    def comment_on_table(self, schema: str, name: str, comment: str | None) -> Table:
        return self._altered(schema, name, lambda table: replace(table, comment=comment))

    def comment_on_column(self, schema: str, name: str, path: Path, comment: str | None) -> Table:
        return self._altered(schema, name, lambda table: alter.comment_on_column(table, path, comment))

    # Views.

    def create_view(
        self, schema: str, name: str, sql: str, aliases: Sequence[str] = (), comment: str | None = None,
        dialect: str = "duckdb", tags: Sequence[tuple[str, str]] = (),
    ) -> View:  # fmt: skip
        """A view of DuckDB's SQL; where it names tables with their lake, the lake is `{DUCKLAKE_CATALOG}`."""
        _check_name(f"create a view in {schema}", name)
        if self.find(schema, name) is not None:
            raise NameTaken("Table or view", name, f"schema {schema}")
        found = self.schema(schema)
        id, kept = TableId(self._local_id()), tuple(sorted(tags))
        view = View(id, new_uuid(), found, name, sql, dialect, tuple(aliases), comment, kept)
        self._record(CreateView(view))
        self._objects[found.id, fold(name)] = view
        return view

    def replace_view(
        self, schema: str, name: str, sql: str, aliases: Sequence[str] = (), comment: str | None = None,
        dialect: str = "duckdb", tags: Sequence[tuple[str, str]] = (),
    ) -> View:  # fmt: skip
        there = self.find(schema, name)
        if isinstance(there, Table):
            raise NameTaken("Table", name, f"schema {schema}")
        if there is not None:
            self._drop(there)
        return self.create_view(schema, name, sql, aliases, comment, dialect, tags)

    def drop_view(self, schema: str, name: str) -> None:
        self._drop(self.view(schema, name))

    def rename_view(self, schema: str, name: str, new_name: str) -> View:
        view = self.view(schema, name)
        self._refuse_taken(schema, name, new_name)
        return self._alter_view(view, replace(view, name=new_name))

    def comment_on_view(self, schema: str, name: str, comment: str | None) -> View:
        view = self.view(schema, name)
        return self._alter_view(view, replace(view, comment=comment))

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
        if not can_inline(storage, table.columns):
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
        if rows and self._metadata.layout.shares_files:
            found = "it has inlined rows, which this tenant shares with its forks"
            raise ChangeRefused(f"delete from {table}", found, "Let the fork's own client flush them first.")
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
        if self._metadata.layout.shares_files:
            found = "this tenant was forked or has forks, which read the same files"
            raise ChangeRefused(f"merge files of {table}", found, "Rewrite them, which leaves the old ones.")
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

    # The end of it.

    def say(self, author: str | None = None, message: str | None = None, extra_info: str | None = None) -> None:
        """What the commit will say of itself."""
        self._message = CommitMessage(author, message, extra_info)

    def commit(self, rewrite: RewriteDeletes | None = None) -> SnapshotId:
        """Write the recorded changes as one new snapshot and return its id.

        If another writer took that id, the changes are compared with what was committed meanwhile: no conflict, and
        they are written under the next id, without touching a file; else `CommitConflict`, and the lake is as before.
        A delete file that embeds snapshot ids says the id it was written for; `rewrite` makes it anew for another,
        inside the commit. With no changes, returns the id this transaction began from.
        """
        effects = effects_of(self._changes)
        effects.looked_in = self._looked_in
        if not effects.made():
            return self.base.id
        commit = Commit(
            self._metadata, self.base, effects, self._message, self._patience, self._inlining_limit, rewrite
        )
        try:
            return commit.run()
        finally:
            self.attempts = commit.attempts_made

    def look_in(self, table: Table, where: Sequence[Predicate] = ()) -> None:
        """Say that what is done here depends on which rows of a table satisfy `where`, of those too that it has not:
        what others do meanwhile to rows that may conflicts, and what they do to the other rows does not."""
        self._looked_in[table.id] = tuple(where)

    def check_writable(self) -> None:
        """ReadOnlyLake, before any work is done for a change."""
        if self._refusal is not None:
            raise ReadOnlyLake(self._metadata.backend.name, self._refusal)

    def _record(self, change: Change) -> None:
        self.check_writable()
        self._changes.append(change)

    def _local_id(self) -> int:
        self._next_local_id -= 1
        return self._next_local_id + 1

    def _altered(self, schema: str, name: str, change: Callable[[Table], Table]) -> Table:
        table = self.table(schema, name)
        return self._alter(table, change(table))

    def _alter(self, before: Table, after: Table) -> Table:
        if after == before:
            return before
        if (before.columns, before.partitioning) != (after.columns, after.partitioning) and self._has_rows(before):
            raise ChangeRefused(f"alter {before}", "rows were added to it in this transaction", "Alter it first.")
        self._record(AlterTable(before, after))
        self._objects[before.schema.id, fold(before.name)] = None
        self._objects[after.schema.id, fold(after.name)] = after
        return after

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

    def _alter_view(self, before: View, after: View) -> View:
        if after == before:
            return before
        self._record(AlterView(before, after))
        self._objects[before.schema.id, fold(before.name)] = None
        self._objects[after.schema.id, fold(after.name)] = after
        return after

    def _drop(self, there: Table | TableName | View) -> None:
        if isinstance(there, View):
            self._record(DropView(there))
        else:
            self._record(DropTable(there.named if isinstance(there, Table) else there))
        self._objects[there.schema.id, fold(there.name)] = None

    def _refuse_absent(self, asked: str, row_class: RowClass, what: str) -> None:
        if not self._metadata.layout.has(row_class):
            raise ChangeRefused(asked, f"metadata that are shared between tenants keep no {what}", "Leave them out.")

    def _refuse_shared(self, asked: str, remedy: str) -> None:
        if self._metadata.layout.is_shared:
            found = "what metadata that are shared between tenants say of inlined rows is another matter"
            raise ChangeRefused(asked, found, remedy)

    def _refuse_taken(self, schema: str, name: str, new_name: str) -> None:
        _check_name(f"rename {schema}.{name}", new_name)
        if fold(name) != fold(new_name) and self.find(schema, new_name) is not None:
            raise NameTaken("Table or view", new_name, f"schema {schema}")


def _check_name(asked: str, name: str) -> None:
    if not name or "\0" in name:
        raise ChangeRefused(asked, "a name may not be empty or hold a NUL character")


def _fields(table: Table, partition_by: Sequence[tuple[str, str]]) -> tuple[PartitionField, ...]:
    return tuple(PartitionField(table.column(column).id, transform.lower()) for column, transform in partition_by)


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
