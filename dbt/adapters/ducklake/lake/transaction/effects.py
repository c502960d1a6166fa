"""What the recorded changes come to: one effect per schema, table and view, whatever the order and number of changes.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dbt.adapters.ducklake.lake.columns import Column, walk
from dbt.adapters.ducklake.lake.definitions import Macro, Schema, Table, TableName, View
from dbt.adapters.ducklake.lake.errors import ChangeRefused
from dbt.adapters.ducklake.lake.names import ColumnId, FileId, TableId, fold
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow
from dbt.adapters.ducklake.lake.snapshot.pruning import Predicate
from dbt.adapters.ducklake.lake.transaction.changes import (
    AddDeletes,
    AlterTable,
    AlterView,
    AppendFiles,
    Change,
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
)
from dbt.adapters.ducklake.lake.transaction.conflicts import Intent
from dbt.adapters.ducklake.lake.transaction.made import Made


@dataclass
class TableEffect:
    """`before` is None for a table that the transaction makes, `after` None for one whose definition it does not
    change.

    `table` is the definition that new rows are written under, None for a table that is only dropped.
    """

    named: TableName
    table: Table | None = None
    before: Table | None = None
    after: Table | None = None
    dropped: bool = False
    files: list[FileToAdd] = field(default_factory=list)
    deletes: list[DeletesToAdd] = field(default_factory=list)
    ended: list[FileId] = field(default_factory=list)
    inserted: list[InsertInlined] = field(default_factory=list)
    inlined_ended: list[InlinedRow] = field(default_factory=list)
    inlined_deletes: dict[FileId, tuple[int, ...]] = field(default_factory=dict)
    inlined_beside: dict[FileId, FileId | None] = field(default_factory=dict)
    compactions: list[Compaction] = field(default_factory=list)

    @property
    def id(self) -> TableId:
        return self.named.id

    @property
    def created(self) -> bool:
        return self.after is not None and self.before is None

    @property
    def renamed(self) -> bool:
        return self._altered and self.before.name != self.after.name  # type: ignore[union-attr]

    @property
    def columns_changed(self) -> bool:
        return self._altered and _layout(self.before) != _layout(self.after)  # type: ignore[arg-type]

    @property
    def partitioning_changed(self) -> bool:
        return self._altered and self.before.partitioning != self.after.partitioning  # type: ignore[union-attr]

    @property
    def sort_changed(self) -> bool:
        return self._altered and self.before.sort != self.after.sort  # type: ignore[union-attr]

    @property
    def comment_changed(self) -> bool:
        return self._altered and self.before.comment != self.after.comment  # type: ignore[union-attr]

    @property
    def layout_changed(self) -> bool:
        """Whether later files may differ from earlier ones: DuckDB keeps such files apart when it merges."""
        return self.created or self.renamed or self.columns_changed or self.partitioning_changed

    @property
    def altered(self) -> bool:
        return (
            self.columns_changed
            or self.partitioning_changed
            or self.sort_changed
            or self.comment_changed
            or bool(self.column_comments())
        )

    @property
    def deleted_from_files(self) -> bool:
        return bool(self.deletes or self.ended)

    def compacted(self, kind: type[Compaction]) -> bool:
        return any(isinstance(change, kind) for change in self.compactions)

    @property
    def inlined_deleted(self) -> bool:
        return bool(self.inlined_ended or self.inlined_deletes)

    @property
    def _altered(self) -> bool:
        return self.before is not None and self.after is not None

    def column_comments(self) -> dict[ColumnId, str | None]:
        """The comments that differ from before, of columns that are there after."""
        if self.after is None:
            return {}
        earlier = {column.id: column.comment for column in walk(self.before.columns)} if self.before else {}
        return {
            column.id: column.comment for column in walk(self.after.columns) if column.comment != earlier.get(column.id)
        }


@dataclass
class ViewEffect:
    before: View | None = None
    after: View | None = None


@dataclass
class Effects:
    created_schemas: list[Schema] = field(default_factory=list)
    dropped_schemas: list[Schema] = field(default_factory=list)
    dropped_macros: list[Macro] = field(default_factory=list)
    tables: dict[TableId, TableEffect] = field(default_factory=dict)
    views: dict[TableId, ViewEffect] = field(default_factory=dict)
    looked_in: Mapping[TableId, tuple[Predicate, ...]] = field(default_factory=dict)

    def made(self) -> tuple[Made, ...]:
        return tuple(self._made())

    def intent(self) -> Intent:
        schemas = [effect.named.schema for effect in self.tables.values()]
        schemas += [effect.after.schema for effect in self.views.values() if effect.after]
        homes = [(schema.parts, schema.id) for schema in schemas]
        homes += [(schema.parts[:-1], schema.parent) for schema in self.created_schemas if schema.parent is not None]
        return Intent(
            # What the transaction itself makes has no id yet, and nobody else knows it.
            made=tuple(made for made in (*self.made(), *self._renamed()) if made.id is None or made.id >= 0),
            schema_ids={tuple(map(fold, parts)): id for parts, id in homes},
            deletes_in={
                effect.id: frozenset(effect.ended) | {delete.data_file_id for delete in effect.deletes}
                for effect in self.tables.values()
                if effect.deleted_from_files
            },
            looked_in=frozenset(self.looked_in),
        )

    def _renamed(self) -> Iterator[Made]:
        """Renames by the id of what is renamed: `changes_made` tells only of the new name."""
        for effect in self.tables.values():
            if effect.renamed and effect.before is not None:
                yield Made("renamed_table", effect.id, effect.before.schema.parts, effect.before.name)
        for view in self.views.values():
            if view.before and view.after and view.before.name != view.after.name:
                yield Made("renamed_view", view.before.id, view.before.schema.parts, view.before.name)

    @property
    def changes_schema(self) -> bool:
        words = ("created_", "dropped_", "altered_")
        return any(made.word.startswith(words) for made in self._made())

    def _made(self) -> Iterator[Made]:
        yield from (
            Made("dropped_schema", schema.id, schema.parts[:-1], schema.own_name) for schema in self.dropped_schemas
        )
        for macro in self.dropped_macros:
            yield Made("dropped_table_macro" if macro.is_of_tables else "dropped_scalar_macro", macro.id)
        yield from (Made("created_schema", None, schema.parts[:-1], schema.own_name) for schema in self.created_schemas)
        for effect in self.tables.values():
            yield from _made_of_table(effect)
        for view in self.views.values():
            yield from _made_of_view(view)


def effects_of(changes: Iterable[Change]) -> Effects:
    effects = Effects()
    for change in changes:
        match change:
            case CreateSchema(schema):
                effects.created_schemas.append(schema)
            case DropSchema(schema, macros):
                _drop_schema(effects, schema)
                effects.dropped_macros += macros
            case CreateTable(table):
                effects.tables[table.id] = TableEffect(table.named, table, after=table)
            case AlterTable(before, after):
                effect = _effect(effects, before)
                if effect.after is None:
                    effect.before = before
                effect.named, effect.table, effect.after = after.named, after, after
            case DropTable(named):
                _drop_table(effects, named)
            case CreateView(view):
                effects.views[view.id] = ViewEffect(after=view)
            case AlterView(view, after_view):
                view_effect = effects.views.setdefault(view.id, ViewEffect(before=view))
                view_effect.after = after_view
            case DropView(view):
                _drop_view(effects, view)
            case _:
                _add_data(effects, change)
    return effects


def _add_data(effects: Effects, change: Change) -> None:
    match change:
        case AppendFiles(table, files):
            _effect(effects, table).files += files
        case AddDeletes(table, deletes):
            _effect(effects, table).deletes += deletes
        case EndFiles(table, ended):
            _effect(effects, table).ended += ended
        case InsertInlined(table):
            _effect(effects, table).inserted.append(change)
        case EndInlined(table, rows):
            _effect(effects, table).inlined_ended += rows
        case MergeFiles(table) | RewriteFiles(table) | FlushInlined(table):
            _effect(effects, table).compactions.append(change)
        case InlineDeletes(table, positions, beside):
            effect = _effect(effects, table)
            effect.inlined_beside.update(beside)
            for file_id, more in positions.items():
                effect.inlined_deletes[file_id] = (*effect.inlined_deletes.get(file_id, ()), *more)


def _effect(effects: Effects, table: Table) -> TableEffect:
    effect = effects.tables.setdefault(table.id, TableEffect(table.named, table))
    if effect.dropped:
        raise ChangeRefused(f"change {table}", "this transaction drops it", "Change another table, or do not drop it.")
    return effect


def _drop_schema(effects: Effects, schema: Schema) -> None:
    if schema in effects.created_schemas:
        effects.created_schemas.remove(schema)
    else:
        effects.dropped_schemas.append(schema)


def _drop_table(effects: Effects, named: TableName) -> None:
    # Whatever else was to be done to it is gone with it.
    effects.tables.pop(named.id, None)
    if named.id >= 0:
        effects.tables[named.id] = TableEffect(named, dropped=True)


def _drop_view(effects: Effects, view: View) -> None:
    earlier = effects.views.pop(view.id, None)
    if view.id >= 0:
        effects.views[view.id] = ViewEffect(before=earlier.before if earlier and earlier.before else view)


def _made_of_table(effect: TableEffect) -> Iterator[Made]:
    id, schema, name = effect.id, effect.named.schema.parts, effect.named.name
    if effect.dropped:
        yield Made("dropped_table", id, schema, name)
        return
    if effect.created or effect.renamed:
        yield Made("created_table", None, schema, name)
    if effect.files:
        yield Made("inserted_into_table", id, schema, name)
    if effect.deleted_from_files:
        yield Made("deleted_from_table", id, schema, name)
    if effect.altered and not effect.created:
        yield Made("altered_table", id, schema, name)
    if effect.inserted:
        yield Made("inlined_insert", id, schema, name)
    if effect.inlined_deleted:
        yield Made("inlined_delete", id, schema, name)
    yield from (Made(word, id, schema, name) for word in _words_of_compactions(effect))


def _words_of_compactions(effect: TableEffect) -> Iterator[str]:
    for change in effect.compactions:
        match change:
            # With a flush beside it, or DuckDB would commit small deletes from files that are no more.
            case MergeFiles():
                yield from ("merge_adjacent", "inline_flush")
            case RewriteFiles():
                yield from ("rewrite_delete", "inline_flush")
            case FlushInlined(_, kept_in, _, deletes):
                # As the extension says of a flush: deletes that go to files are deletes from files.
                if kept_in:
                    yield "inline_flush"
                if deletes:
                    yield "deleted_from_table"


def _made_of_view(effect: ViewEffect) -> Iterator[Made]:
    before, after = effect.before, effect.after
    if after is None:
        if before is not None:
            yield Made("dropped_view", before.id, before.schema.parts, before.name)
        return
    if before is None or before.name != after.name:
        yield Made("created_view", None, after.schema.parts, after.name)
    if before is not None and (before.comment, before.column_comments) != (after.comment, after.column_comments):
        yield Made("altered_view", after.id, after.schema.parts, after.name)


def _layout(table: Table) -> list[tuple[object, ...]]:
    return [layout_of(column) for column in walk(table.columns)]


def layout_of(column: Column) -> tuple[object, ...]:
    """What a column's row says: a column with another layout gets a new row."""
    return (column.id, column.name, column.type, column.nullable, column.default, column.initial_default, column.order)
