"""The metadata rows of a commit: what a transaction's effects end, and what they add. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dbt.adapters.ducklake.lake.columns import Column, walk
from dbt.adapters.ducklake.lake.definitions import Schema, Table, TableName, View
from dbt.adapters.ducklake.lake.names import FileId
from dbt.adapters.ducklake.lake.paths import path_below, stored_path
from dbt.adapters.ducklake.lake.snapshot.files import MappedColumn, NameMapping
from dbt.adapters.ducklake.lake.snapshot.load import aliases_text
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.layout import Layout
from dbt.adapters.ducklake.lake.spec.tables import RowClass
from dbt.adapters.ducklake.lake.transaction import statistics
from dbt.adapters.ducklake.lake.transaction.changes import CommitMessage, DeletesToAdd, FileToAdd
from dbt.adapters.ducklake.lake.transaction.effects import Effects, TableEffect, ViewEffect, layout_of
from dbt.adapters.ducklake.lake.transaction.made import changes_text
from dbt.adapters.ducklake.lake.transaction.numbering import Numbering

# Rows that end with their table, by the column that names the table.
_ENDS_WITH_TABLE: tuple[tuple[RowClass, str], ...] = (
    (tables.Table, "table_id"),
    (tables.PartitionInfo, "table_id"),
    (tables.Column, "table_id"),
    (tables.ColumnTag, "table_id"),
    (tables.DataFile, "table_id"),
    (tables.DeleteFile, "table_id"),
    (tables.Tag, "object_id"),
    (tables.SortInfo, "table_id"),
)


@dataclass
class Batch:
    """Rows to end, by what they must equal, and rows to add. Ends come first: they are for rows that were there
    before."""

    numbering: Numbering
    layout: Layout
    ends: list[tuple[RowClass, dict[str, object]]] = field(default_factory=list)
    adds: dict[RowClass, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def add(self, row: Any) -> None:
        self.adds[type(row)].append(row)

    def end(self, row_class: RowClass, **where: object) -> None:
        self.ends.append((row_class, where))


def definition_rows(batch: Batch, effects: Effects) -> None:
    for schema in effects.dropped_schemas:
        batch.end(tables.Schema, schema_id=schema.id)
    for macro in effects.dropped_macros:
        batch.end(tables.Macro, macro_id=macro.id)
    for schema in effects.created_schemas:
        batch.add(_schema_row(batch, schema))
    for effect in effects.tables.values():
        if effect.dropped:
            for row_class, column in _ENDS_WITH_TABLE:
                batch.end(row_class, **{column: effect.id})
        elif effect.after is not None:
            _table_rows(batch, effect, effect.after)
    for view in effects.views.values():
        _view_rows(batch, view)


def change_rows(batch: Batch, effects: Effects, message: CommitMessage) -> None:
    """What the snapshot says it did, with real ids."""
    made = [
        change if change.id is None else type(change)(change.word, batch.numbering.of(change.id))
        for change in effects.made()
    ]
    batch.add(
        tables.SnapshotChanges(
            snapshot_id=batch.numbering.snapshot,
            changes_made=changes_text(made),
            author=message.author,
            commit_message=message.message,
            commit_extra_info=message.extra_info,
        )
    )


def _schema_row(batch: Batch, schema: Schema) -> tables.Schema:
    return tables.Schema(
        schema_id=batch.numbering.of(schema.id),
        schema_uuid=schema.uuid,
        begin_snapshot=batch.numbering.snapshot,
        end_snapshot=None,
        schema_name=schema.own_name,
        path=schema.path.text,
        path_is_relative=schema.path.is_relative,
        parent_schema_id=None if schema.parent is None else batch.numbering.of(schema.parent),
    )


def _table_rows(batch: Batch, effect: TableEffect, after: Table) -> None:
    snapshot, table_id = batch.numbering.snapshot, batch.numbering.of(effect.id)
    if effect.renamed:
        batch.end(tables.Table, table_id=table_id)
    if effect.created or effect.renamed:
        batch.add(_name_row(batch, after.named))
    if effect.created or effect.columns_changed:
        _column_rows(batch, table_id, effect.before, after)
    if effect.layout_changed:
        batch.add(tables.SchemaVersions(snapshot, batch.numbering.schema_version, table_id))
    if effect.partitioning_changed:
        batch.end(tables.PartitionInfo, table_id=table_id)
    if effect.id in batch.numbering.partitions:
        _partition_rows(batch, effect, table_id, after)
    if effect.sort_changed:
        batch.end(tables.SortInfo, table_id=table_id)
    if effect.id in batch.numbering.sorts:
        _sort_rows(batch, batch.numbering.sorts[effect.id], table_id, after)
    if effect.comment_changed:
        batch.end(tables.Tag, object_id=table_id, key="comment")
    if effect.comment_changed or (effect.created and after.comment is not None):
        batch.add(tables.Tag(table_id, snapshot, None, "comment", after.comment))
    for column_id, comment in effect.column_comments().items():
        if not effect.created:
            batch.end(tables.ColumnTag, table_id=table_id, column_id=column_id, key="comment")
        batch.add(tables.ColumnTag(table_id, column_id, snapshot, None, "comment", comment))


def _name_row(batch: Batch, named: TableName) -> tables.Table:
    return tables.Table(
        table_id=batch.numbering.of(named.id),
        table_uuid=named.uuid,
        begin_snapshot=batch.numbering.snapshot,
        end_snapshot=None,
        schema_id=batch.numbering.of(named.schema.id),
        table_name=named.name,
        path=named.path.text,
        path_is_relative=named.path.is_relative,
    )


def _column_rows(batch: Batch, table_id: int, before: Table | None, after: Table) -> None:
    earlier = {column.id: layout_of(column) for column in walk(before.columns)} if before else {}
    later = {column.id: column for column in walk(after.columns)}
    for column_id, layout in earlier.items():
        if column_id not in later or layout_of(later[column_id]) != layout:
            batch.end(tables.Column, table_id=table_id, column_id=column_id)
        if column_id not in later and batch.layout.ends_comments_with_columns:
            batch.end(tables.ColumnTag, table_id=table_id, column_id=column_id)
    for column, parent in _with_parents(after):
        if earlier.get(column.id) != layout_of(column):
            batch.add(_column_row(batch, table_id, column, parent))


def _with_parents(table: Table) -> list[tuple[Column, Column | None]]:
    found: list[tuple[Column, Column | None]] = []

    def visit(column: Column, parent: Column | None) -> None:
        found.append((column, parent))
        for child in column.children:
            visit(child, column)

    for column in table.columns:
        visit(column, None)
    return found


def _column_row(batch: Batch, table_id: int, column: Column, parent: Column | None) -> tables.Column:
    return tables.Column(
        column_id=column.id,
        begin_snapshot=batch.numbering.snapshot,
        end_snapshot=None,
        table_id=table_id,
        column_order=column.order,
        column_name=column.name,
        column_type=column.type.text,
        initial_default=column.initial_default,
        default_value="NULL" if column.default.text is None else column.default.text,
        nulls_allowed=column.nullable,
        parent_column=parent.id if parent else None,
        default_value_type=column.default.kind,
        default_value_dialect=column.default.dialect,
    )


def _partition_rows(batch: Batch, effect: TableEffect, table_id: int, after: Table) -> None:
    partition_id = batch.numbering.partitions[effect.id]
    # A spec without keys says that the table is no longer partitioned.
    batch.add(tables.PartitionInfo(partition_id, table_id, batch.numbering.snapshot, None))
    for place, key in enumerate(after.partitioning.fields if after.partitioning else ()):
        batch.add(tables.PartitionColumn(partition_id, table_id, place, key.column_id, key.transform))


def _sort_rows(batch: Batch, sort_id: int, table_id: int, after: Table) -> None:
    batch.add(tables.SortInfo(sort_id, table_id, batch.numbering.snapshot, None))
    for place, key in enumerate(after.sort):
        direction, nulls = "DESC" if key.descending else "ASC", "NULLS_FIRST" if key.nulls_first else "NULLS_LAST"
        batch.add(tables.SortExpression(sort_id, table_id, place, key.expression, key.dialect, direction, nulls))


def _view_rows(batch: Batch, effect: ViewEffect) -> None:
    before, after, snapshot = effect.before, effect.after, batch.numbering.snapshot
    if after is None:
        if before is not None:
            batch.end(tables.View, view_id=before.id)
            batch.end(tables.Tag, object_id=before.id)
            batch.end(tables.ViewColumnTag, view_id=before.id)
        return
    view_id = batch.numbering.of(after.id)
    if before is not None and before.name != after.name:
        batch.end(tables.View, view_id=view_id)
    if before is None or before.name != after.name:
        batch.add(_view_row(batch, view_id, after))
    if (before.comment if before else None) != after.comment:
        if before is not None:
            batch.end(tables.Tag, object_id=view_id, key="comment")
        batch.add(tables.Tag(view_id, snapshot, None, "comment", after.comment))
    for key, value in after.tags if before is None else ():
        batch.add(tables.Tag(view_id, snapshot, None, key, value))
    _rows_of_comments_on_columns(batch, view_id, before, after)


def _rows_of_comments_on_columns(batch: Batch, view_id: int, before: View | None, after: View) -> None:
    earlier = dict(before.column_comments) if before else {}
    later: dict[str, str | None] = {**dict.fromkeys(earlier), **dict(after.column_comments)}
    is_renamed = before is not None and before.name != after.name
    for name, comment in later.items():
        if comment == earlier.get(name) and not (is_renamed and comment is not None):
            continue
        if before is not None:
            batch.end(tables.ViewColumnTag, view_id=view_id, column_name=name, key="comment")
        batch.add(tables.ViewColumnTag(view_id, name, batch.numbering.snapshot, None, "comment", comment))


def _view_row(batch: Batch, view_id: int, view: View) -> tables.View:
    return tables.View(
        view_id=view_id,
        view_uuid=view.uuid,
        begin_snapshot=batch.numbering.snapshot,
        end_snapshot=None,
        schema_id=batch.numbering.of(view.schema.id),
        view_name=view.name,
        dialect=view.dialect,
        sql=view.sql,
        # NULL here would make the lake unreadable for DuckDB.
        column_aliases=aliases_text(view.column_aliases),
    )


def file_rows(
    batch: Batch,
    effect: TableEffect,
    table: Table,
    partition_id: int | None,
    mappings: Mapping[NameMapping, FileId],
    first_row_id: int,
) -> None:
    """Data files with their statistics, partition values and mappings. Their rows take row ids from `first_row_id`."""
    table_id = batch.numbering.of(effect.id)
    for mapping, mapping_id in batch.numbering.new_mappings[effect.id].items():
        batch.add(tables.ColumnMapping(mapping_id, table_id, "map_by_name"))
        batch.adds[tables.NameMapping] += _mapping_rows(mapping_id, mapping)
    known = {**mappings, **batch.numbering.new_mappings[effect.id]}
    row_id = first_row_id
    for file_id, file in zip(batch.numbering.files[effect.id], effect.files, strict=True):
        data_file_rows(
            batch, table, file_id, file, known,
            begin_snapshot=batch.numbering.snapshot, row_id_start=row_id,
            partition_id=partition_id if file.partition_values is not None else None,
        )  # fmt: skip
        row_id += file.record_count


def data_file_rows(
    batch: Batch,
    table: Table,
    file_id: int,
    file: FileToAdd,
    mappings: Mapping[NameMapping, FileId],
    begin_snapshot: int,
    row_id_start: int | None,
    partition_id: int | None,
    partial_max: int | None = None,
) -> None:
    """One data file with its statistics and partition values."""
    table_id, columns = batch.numbering.of(table.id), table.by_id()
    path = path_below(table.location, file.path)
    batch.add(
        tables.DataFile(
            data_file_id=file_id,
            table_id=table_id,
            begin_snapshot=begin_snapshot,
            end_snapshot=None,
            file_order=None,
            path=path.text,
            path_is_relative=path.is_relative,
            file_format="parquet",
            record_count=file.record_count,
            file_size_bytes=file.size,
            footer_size=file.footer_size,
            row_id_start=row_id_start,
            partition_id=partition_id,
            encryption_key=None,
            mapping_id=mappings[file.mapping] if file.mapping is not None else None,
            partial_max=partial_max,
            row_group_count=file.row_groups,
        )
    )
    for column_id, found in sorted(file.columns.items()):
        batch.add(statistics.file_row(file_id, table_id, columns[column_id], found))
    for place, value in enumerate(file.partition_values or ()):
        batch.add(tables.FilePartitionValue(file_id, table_id, place, value))


def _mapping_rows(mapping_id: int, mapping: NameMapping) -> list[tables.NameMapping]:
    rows: list[tables.NameMapping] = []

    def visit(column: MappedColumn, parent: int | None) -> None:
        own = len(rows)
        rows.append(tables.NameMapping(mapping_id, own, column.name, column.field_id, parent, column.is_partition))
        for child in column.children:
            visit(child, own)

    for column in mapping:
        visit(column, None)
    return rows


def delete_row(batch: Batch, table_id: int, location: str, delete_id: int, delete: DeletesToAdd) -> tables.DeleteFile:
    path = path_below(location, delete.path)
    first, last = delete.snapshots or (batch.numbering.snapshot, None)
    return tables.DeleteFile(
        delete_file_id=delete_id,
        table_id=table_id,
        begin_snapshot=first,
        end_snapshot=None,
        data_file_id=delete.data_file_id,
        path=path.text,
        path_is_relative=path.is_relative,
        format=delete.format,
        delete_count=delete.delete_count,
        file_size_bytes=delete.size,
        footer_size=delete.footer_size,
        encryption_key=None,
        partial_max=last,
        row_group_count=delete.row_groups,
    )


def scheduled_row(
    file_id: int, path: str, is_relative: bool, location: str, data_path: str, now: datetime
) -> tables.FilesScheduledForDeletion:
    """A file that nothing refers to any more; its path is relative to the data path, not to its table's location."""
    stored = path_below(data_path, stored_path(path, is_relative).under(location))
    return tables.FilesScheduledForDeletion(file_id, stored.text, stored.is_relative, now)
