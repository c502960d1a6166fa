"""Indexes that keep reading fast in a large lake on PostgreSQL. DuckLake makes none; they change none of its tables."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.tables import TABLES, RowClass

# What one statement asks for: rows of one table, or the files of one table. Primary keys answer the rest.
INDEXES: tuple[tuple[RowClass, tuple[str, ...]], ...] = (
    (tables.Table, ("schema_id",)),
    (tables.View, ("schema_id",)),
    (tables.Tag, ("object_id",)),
    (tables.Column, ("table_id",)),
    (tables.ColumnTag, ("table_id",)),
    (tables.DataFile, ("table_id",)),
    (tables.DeleteFile, ("table_id",)),
    (tables.FileColumnStats, ("table_id", "column_id")),
    (tables.FilePartitionValue, ("table_id",)),
    (tables.TableStats, ("table_id",)),
    (tables.TableColumnStats, ("table_id",)),
    (tables.PartitionInfo, ("table_id",)),
    (tables.SortInfo, ("table_id",)),
    (tables.SchemaVersions, ("table_id",)),
    (tables.InlinedDataTables, ("table_id",)),
    (tables.ColumnMapping, ("table_id",)),
    (tables.NameMapping, ("mapping_id",)),
)


def index_name(row_class: RowClass, columns: tuple[str, ...]) -> str:
    return f"dbt_ducklake_{TABLES[row_class]}_{'_'.join(columns)}"
