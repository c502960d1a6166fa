"""A transaction: changes to any number of schemas, tables and views, recorded now and committed as one snapshot.

It reads as the lake was at its base snapshot plus its own changes. Nothing is written before `commit`; a transaction
that is dropped leaves no trace. It belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dbt.adapters.ducklake.lake.columns import Column, Default, numbered_all
from dbt.adapters.ducklake.lake.definitions import (
    PartitionField,
    Schema,
    SortField,
    Table,
    TableName,
    View,
)
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    NameTaken,
)
from dbt.adapters.ducklake.lake.metadata import Metadata
from dbt.adapters.ducklake.lake.names import SchemaId, SnapshotId, TableId, fold, folder_for, new_uuid
from dbt.adapters.ducklake.lake.partitioning import EPOCH_PARTS
from dbt.adapters.ducklake.lake.paths import StoredPath
from dbt.adapters.ducklake.lake.snapshot.load import schema_name
from dbt.adapters.ducklake.lake.snapshot.pruning import Predicate
from dbt.adapters.ducklake.lake.snapshot.snapshot import Snapshot
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.tables import RowClass
from dbt.adapters.ducklake.lake.transaction import alter
from dbt.adapters.ducklake.lake.transaction.alter import Path
from dbt.adapters.ducklake.lake.transaction.changes import (
    AlterTable,
    AlterView,
    CommitMessage,
    CreateSchema,
    CreateTable,
    CreateView,
    DropSchema,
    DropTable,
    DropView,
)
from dbt.adapters.ducklake.lake.transaction.commit import Commit, Patience, RewriteDeletes
from dbt.adapters.ducklake.lake.transaction.effects import effects_of
from dbt.adapters.ducklake.lake.transaction.row_changes import RowChanges

MIGRATE = "Bring the lake there with `automatic_migration: true`, or leave it out."


class Transaction(RowChanges):
    def __init__(
        self,
        metadata: Metadata,
        base: Snapshot,
        patience: Patience,
        inlining_limit: int | None,
        refusal: str | None = None,
    ) -> None:
        super().__init__(metadata, base, refusal)
        self.attempts = 0
        self._patience, self._inlining_limit = patience, inlining_limit
        self._message: CommitMessage | None = None
        self._next_local_id = -1
        self._looked_in: dict[TableId, tuple[Predicate, ...]] = {}

    # Schemas.

    def create_schema(self, name: str) -> Schema:
        """A new schema; of one that its dots put within others, those too that are not there yet."""
        if self.find_schema(name) is not None:
            raise NameTaken("Schema", name, "the lake")
        *above, _ = path = self.base.paths_of(name)[-1]
        for part in path:
            _check_name("create a schema", part)
        parent = None
        for depth in range(1, len(above) + 1):
            parent = self._schema_at(path[:depth]) or self._create_schema(path[:depth], parent)
        return self._create_schema(path, parent)

    def _create_schema(self, parts: tuple[str, ...], parent: Schema | None) -> Schema:
        uuid = new_uuid()
        # As DuckDB does, whose tables of a schema within another lie beside those of the one around it.
        folder = f"{uuid}/" if parent else folder_for(parts[0], uuid)
        path = StoredPath(self._metadata.layout.folder + folder, True)
        taken = {fold(schema.own_name) for schema in self.all_schemas() if schema.parent is None}
        name = schema_name(parts, taken) if self.base.nests_schemas else parts[0]
        id, since = SchemaId(self._local_id()), SnapshotId(self.base.id + 1)
        schema = Schema(id, uuid, name, path, since, parts, parent.id if parent else None)
        self._record(CreateSchema(schema))
        self._schemas[tuple(map(fold, parts))] = schema
        return schema

    def drop_schema(self, name: str, cascade: bool = False) -> None:
        schema = self.schema(name)
        below = self.below(schema)
        macros = {one.id: self.base.macros_in(one) if one.id >= 0 else () for one in (*below, schema)}
        names = [one.name for one in (*below, *self.members(schema), *macros[schema.id])]
        if names and not cascade:
            found = f"it holds {', '.join(names[:10])}"
            raise ChangeRefused(f"drop schema {schema.name}", found, "Drop them first, or cascade.")
        for one in (*below, schema):
            for member in self.members(one):
                self._drop(member)
            # DuckDB cannot open a lake in which a macro is left without its schema.
            self._record(DropSchema(one, macros[one.id]))
            self._schemas[tuple(map(fold, one.parts))] = None

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
        self._refuse_reserved(asked, *(column.name for column in columns))
        own, next_column_id = numbered_all(alter.with_initial_defaults(columns, asked))
        uuid = new_uuid()
        path = StoredPath(folder_for(name, uuid), True)
        named = TableName(TableId(self._local_id()), uuid, schema, name, path, SnapshotId(self.base.id + 1))
        location = path.under(schema.path.under(self.base.data_path))
        table = Table(named, own, location, comment=comment, sort=tuple(sort_by), next_column_id=next_column_id)
        if partition_by:
            self._refuse_transforms(asked, partition_by)
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
        if not parent:
            self._refuse_reserved(f"add column {column.name} to {schema}.{name}", column.name)
        return self._altered(schema, name, lambda table: alter.add_column(table, column, parent))

    def drop_column(self, schema: str, name: str, path: Path) -> Table:
        return self._altered(schema, name, lambda table: alter.drop_column(table, path))

    def rename_column(self, schema: str, name: str, path: Path, new_name: str) -> Table:
        if len(path) == 1:
            self._refuse_reserved(f"rename column {path[0]} of {schema}.{name} to {new_name}", new_name)
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
        self._refuse_transforms(f"partition {schema}.{name}", partition_by)
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
        column_comments: Sequence[tuple[str, str]] = (),
    ) -> View:  # fmt: skip
        """A view of DuckDB's SQL; where it names tables with their lake, the lake is `{DUCKLAKE_CATALOG}`."""
        asked = f"create a view in {schema}"
        _check_name(asked, name)
        if column_comments:
            self._refuse_comments_on_columns(asked)
        if self.find(schema, name) is not None:
            raise NameTaken("Table or view", name, f"schema {schema}")
        found = self.schema(schema)
        id, kept = TableId(self._local_id()), tuple(sorted(tags))
        comments = tuple(sorted(column_comments))
        view = View(id, new_uuid(), found, name, sql, dialect, tuple(aliases), comment, kept, comments)
        self._record(CreateView(view))
        self._objects[found.id, fold(name)] = view
        return view

    def replace_view(
        self, schema: str, name: str, sql: str, aliases: Sequence[str] = (), comment: str | None = None,
        dialect: str = "duckdb", tags: Sequence[tuple[str, str]] = (),
        column_comments: Sequence[tuple[str, str]] = (),
    ) -> View:  # fmt: skip
        there = self.find(schema, name)
        if isinstance(there, Table):
            raise NameTaken("Table", name, f"schema {schema}")
        if there is not None:
            self._drop(there)
        return self.create_view(schema, name, sql, aliases, comment, dialect, tags, column_comments)

    def drop_view(self, schema: str, name: str) -> None:
        self._drop(self.view(schema, name))

    def rename_view(self, schema: str, name: str, new_name: str) -> View:
        view = self.view(schema, name)
        self._refuse_taken(schema, name, new_name)
        return self._alter_view(view, replace(view, name=new_name))

    def comment_on_view(self, schema: str, name: str, comment: str | None) -> View:
        view = self.view(schema, name)
        return self._alter_view(view, replace(view, comment=comment))

    def comment_on_view_column(self, schema: str, name: str, column: str, comment: str | None) -> View:
        """`column` is a name that the view gives; whether it does is for the caller to know."""
        view = self.view(schema, name)
        self._refuse_comments_on_columns(f"comment on column {column} of view {view}")
        others = tuple((own, text) for own, text in view.column_comments if fold(own) != fold(column))
        spelled = next((own for own, _ in view.column_comments if fold(own) == fold(column)), column)
        own = () if comment is None else ((spelled, comment),)
        return self._alter_view(view, replace(view, column_comments=tuple(sorted((*others, *own)))))

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

    def _refuse_reserved(self, asked: str, *columns: str) -> None:
        layout = self._metadata.layout
        if reserved := [name for name in columns if layout.refuses_reserved and layout.is_reserved(name)]:
            found = f"{reserved[0]} begins with _ducklake_, as DuckLake's own columns do"
            raise ChangeRefused(asked, found, "Give it another name.")

    def _refuse_transforms(self, asked: str, partition_by: Sequence[tuple[str, str]]) -> None:
        if self._metadata.layout.has_epochs:
            return
        if later := [transform for _, transform in partition_by if transform.lower() in EPOCH_PARTS]:
            raise ChangeRefused(asked, f"a lake has {later[0]} from DuckLake 1.1 on", MIGRATE)

    def _refuse_comments_on_columns(self, asked: str) -> None:
        if not self._metadata.layout.has(tables.ViewColumnTag):
            raise ChangeRefused(asked, "a lake keeps comments on columns of views from DuckLake 1.1 on", MIGRATE)

    def _refuse_taken(self, schema: str, name: str, new_name: str) -> None:
        _check_name(f"rename {schema}.{name}", new_name)
        if fold(name) != fold(new_name) and self.find(schema, new_name) is not None:
            raise NameTaken("Table or view", new_name, f"schema {schema}")


def _check_name(asked: str, name: str) -> None:
    if not name or "\0" in name:
        raise ChangeRefused(asked, "a name may not be empty or hold a NUL character")


def _fields(table: Table, partition_by: Sequence[tuple[str, str]]) -> tuple[PartitionField, ...]:
    return tuple(PartitionField(table.column(column).id, transform.lower()) for column, transform in partition_by)
