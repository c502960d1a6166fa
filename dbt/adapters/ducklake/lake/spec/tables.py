"""The metadata tables of DuckLake 1.1: a class per `ducklake_*` table, its fields in the physical order. What older
versions have not is said by their layouts.

The order is part of the format: DuckDB inserts without naming columns. A field's Python type says its logical type: int
BIGINT, str VARCHAR, bool BOOLEAN, UUID UUID, datetime TIMESTAMPTZ. Every column may be NULL except `PRIMARY_KEYS` and
those of `ducklake_metadata`; where a row without the value would be no row at all, the field is not Optional here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, get_type_hints
from uuid import UUID


class Metadata(NamedTuple):
    key: str
    value: str
    scope: str | None = None
    scope_id: int | None = None


class Snapshot(NamedTuple):
    snapshot_id: int
    snapshot_time: datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int


class SnapshotChanges(NamedTuple):
    snapshot_id: int
    changes_made: str | None
    author: str | None = None
    commit_message: str | None = None
    commit_extra_info: str | None = None


class Schema(NamedTuple):
    schema_id: int
    schema_uuid: UUID
    begin_snapshot: int
    end_snapshot: int | None
    schema_name: str
    path: str | None
    path_is_relative: bool | None
    parent_schema_id: int | None = None


class Table(NamedTuple):
    table_id: int
    table_uuid: UUID
    begin_snapshot: int
    end_snapshot: int | None
    schema_id: int
    table_name: str
    path: str | None
    path_is_relative: bool | None


class View(NamedTuple):
    view_id: int
    view_uuid: UUID
    begin_snapshot: int
    end_snapshot: int | None
    schema_id: int
    view_name: str
    dialect: str | None
    sql: str
    column_aliases: str | None


class Tag(NamedTuple):
    object_id: int
    begin_snapshot: int
    end_snapshot: int | None
    key: str
    value: str | None


class ColumnTag(NamedTuple):
    table_id: int
    column_id: int
    begin_snapshot: int
    end_snapshot: int | None
    key: str
    value: str | None


class ViewColumnTag(NamedTuple):
    view_id: int
    column_name: str
    begin_snapshot: int
    end_snapshot: int | None
    key: str
    value: str | None


class DataFile(NamedTuple):
    data_file_id: int
    table_id: int
    begin_snapshot: int
    end_snapshot: int | None
    file_order: int | None
    path: str
    path_is_relative: bool
    file_format: str
    record_count: int
    file_size_bytes: int
    footer_size: int | None
    row_id_start: int | None
    partition_id: int | None
    encryption_key: str | None
    mapping_id: int | None
    partial_max: int | None
    row_group_count: int | None = None


class FileColumnStats(NamedTuple):
    data_file_id: int
    table_id: int
    column_id: int
    column_size_bytes: int | None
    value_count: int | None
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None
    extra_stats: str | None
    # An exact bound is a value that is there; another one may lie beyond all of them.
    min_is_exact: bool | None = None
    max_is_exact: bool | None = None


class FileVariantStats(NamedTuple):
    data_file_id: int
    table_id: int
    column_id: int
    variant_path: str
    shredded_type: str
    column_size_bytes: int | None
    value_count: int | None
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None
    extra_stats: str | None


class DeleteFile(NamedTuple):
    delete_file_id: int
    table_id: int
    begin_snapshot: int
    end_snapshot: int | None
    data_file_id: int
    path: str
    path_is_relative: bool
    format: str
    delete_count: int
    file_size_bytes: int
    footer_size: int | None
    encryption_key: str | None
    partial_max: int | None
    row_group_count: int | None = None


class Column(NamedTuple):
    column_id: int
    begin_snapshot: int
    end_snapshot: int | None
    table_id: int
    column_order: int
    column_name: str
    column_type: str
    initial_default: str | None
    default_value: str | None
    nulls_allowed: bool
    parent_column: int | None
    default_value_type: str | None
    default_value_dialect: str | None


class TableStats(NamedTuple):
    table_id: int
    record_count: int | None
    next_row_id: int
    file_size_bytes: int | None


class TableColumnStats(NamedTuple):
    table_id: int
    column_id: int
    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    extra_stats: str | None
    min_is_exact: bool | None = None
    max_is_exact: bool | None = None


class PartitionInfo(NamedTuple):
    partition_id: int
    table_id: int
    begin_snapshot: int
    end_snapshot: int | None


class PartitionColumn(NamedTuple):
    partition_id: int
    table_id: int
    partition_key_index: int
    column_id: int
    transform: str


class FilePartitionValue(NamedTuple):
    data_file_id: int
    table_id: int
    partition_key_index: int
    partition_value: str | None


class FilesScheduledForDeletion(NamedTuple):
    data_file_id: int
    path: str
    path_is_relative: bool
    schedule_start: datetime


class InlinedDataTables(NamedTuple):
    table_id: int
    table_name: str
    schema_version: int


class ColumnMapping(NamedTuple):
    mapping_id: int
    table_id: int
    type: str


class NameMapping(NamedTuple):
    mapping_id: int
    column_id: int
    source_name: str
    target_field_id: int
    parent_column: int | None
    is_partition: bool


class SchemaVersions(NamedTuple):
    begin_snapshot: int
    schema_version: int
    table_id: int | None


class Macro(NamedTuple):
    schema_id: int
    macro_id: int
    macro_name: str
    begin_snapshot: int
    end_snapshot: int | None


class MacroImpl(NamedTuple):
    macro_id: int
    impl_id: int
    dialect: str
    sql: str
    type: str


class MacroParameters(NamedTuple):
    macro_id: int
    impl_id: int
    column_id: int
    parameter_name: str
    parameter_type: str
    default_value: str
    default_value_type: str


class SortInfo(NamedTuple):
    sort_id: int
    table_id: int
    begin_snapshot: int
    end_snapshot: int | None


class SortExpression(NamedTuple):
    sort_id: int
    table_id: int
    sort_key_index: int
    expression: str
    dialect: str
    sort_direction: str
    null_order: str


# A row class. Its fields are reached by name and its rows made by `_make`, which `type[NamedTuple]` cannot say.
RowClass = type[Any]

TABLES: dict[RowClass, str] = {
    Metadata: "metadata",
    Snapshot: "snapshot",
    SnapshotChanges: "snapshot_changes",
    Schema: "schema",
    Table: "table",
    View: "view",
    Tag: "tag",
    ColumnTag: "column_tag",
    ViewColumnTag: "view_column_tag",
    DataFile: "data_file",
    FileColumnStats: "file_column_stats",
    FileVariantStats: "file_variant_stats",
    DeleteFile: "delete_file",
    Column: "column",
    TableStats: "table_stats",
    TableColumnStats: "table_column_stats",
    PartitionInfo: "partition_info",
    PartitionColumn: "partition_column",
    FilePartitionValue: "file_partition_value",
    FilesScheduledForDeletion: "files_scheduled_for_deletion",
    InlinedDataTables: "inlined_data_tables",
    ColumnMapping: "column_mapping",
    NameMapping: "name_mapping",
    SchemaVersions: "schema_versions",
    Macro: "macro",
    MacroImpl: "macro_impl",
    MacroParameters: "macro_parameters",
    SortInfo: "sort_info",
    SortExpression: "sort_expression",
}

# What the metadata hold of a data file by its id, beside its delete files.
OF_DATA_FILE: tuple[RowClass, ...] = (DataFile, FileColumnStats, FileVariantStats, FilePartitionValue)

PRIMARY_KEYS = {
    Snapshot: "snapshot_id",
    SnapshotChanges: "snapshot_id",
    Schema: "schema_id",
    DataFile: "data_file_id",
    DeleteFile: "delete_file_id",
}

_LOGICAL = {int: "BIGINT", str: "VARCHAR", bool: "BOOLEAN", UUID: "UUID", datetime: "TIMESTAMPTZ"}


def _logical_types(row_class: RowClass) -> dict[str, str]:
    hints = get_type_hints(row_class)
    bare = {name: next(t for t in getattr(hint, "__args__", (hint,)) if t in _LOGICAL) for name, hint in hints.items()}
    return {name: _LOGICAL[hint] for name, hint in bare.items()}


LOGICAL_TYPES: dict[RowClass, dict[str, str]] = {row_class: _logical_types(row_class) for row_class in TABLES}
