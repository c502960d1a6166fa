"""The tables of the `catalog_id` layout as they are made: columns in their order, and keys.

Whatever a table has in common with that of the standard layout is said there.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.layout import Layout
from dbt.adapters.ducklake.lake.spec.tables import LOGICAL_TYPES, TABLES, RowClass

TENANT = "catalog_id"
# Tables beside those of spec.tables: columns with their types, and the key.
CATALOG: Mapping[str, str] = {
    TENANT: "BIGINT", "catalog_uuid": "UUID", "catalog_name": "VARCHAR", "parent_catalog_id": "BIGINT",
    "begin_snapshot": "BIGINT", "end_snapshot": "BIGINT",
}  # fmt: skip
LINEAGE: Mapping[str, str] = dict.fromkeys((TENANT, "previous_snapshot_id", "snapshot_id"), "BIGINT")

_KEYS: Mapping[RowClass, tuple[str, ...]] = {
    tables.Metadata: (),
    tables.Snapshot: ("snapshot_id",),
    tables.SnapshotChanges: ("snapshot_id",),
    tables.Schema: (TENANT, "schema_id"),
    tables.SchemaVersions: (TENANT, "begin_snapshot"),
    tables.Table: (TENANT, "table_id", "begin_snapshot"),
    tables.View: (TENANT, "view_id", "begin_snapshot"),
    tables.Column: (TENANT, "table_id", "column_id", "begin_snapshot"),
    tables.DataFile: (TENANT, "data_file_id"),
    tables.DeleteFile: (TENANT, "delete_file_id"),
    tables.TableStats: (TENANT, "table_id"),
    tables.TableColumnStats: (TENANT, "table_id", "column_id"),
    tables.FileColumnStats: (TENANT, "data_file_id", "column_id"),
    tables.PartitionInfo: (TENANT, "partition_id"),
    tables.PartitionColumn: (TENANT, "partition_id", "partition_key_index"),
    tables.FilePartitionValue: (TENANT, "data_file_id", "partition_key_index"),
    tables.ColumnMapping: (TENANT, "mapping_id"),
    tables.NameMapping: (TENANT, "mapping_id", "column_id"),
    tables.Tag: (TENANT, "object_id", "key", "begin_snapshot"),
    tables.ColumnTag: (TENANT, "table_id", "column_id", "key", "begin_snapshot"),
    tables.InlinedDataTables: (TENANT, "table_id", "schema_version"),
    tables.Macro: (TENANT, "macro_id", "begin_snapshot"),
    tables.MacroImpl: (TENANT, "macro_id", "impl_id"),
    tables.MacroParameters: (TENANT, "macro_id", "impl_id", "column_id"),
    tables.FilesScheduledForDeletion: (TENANT, "data_file_id"),
}
# Columns that come first, where the order is another than the standard layout's.
_FIRST: Mapping[RowClass, tuple[str, ...]] = {
    tables.SnapshotChanges: ("snapshot_id",),
    tables.Column: (TENANT, "table_id", "column_id"),
    tables.Tag: (TENANT, "object_id", "key"),
    tables.ColumnTag: (TENANT, "table_id", "column_id", "key"),
}
_LAST: Mapping[RowClass, tuple[str, ...]] = {tables.DataFile: ("partial_file_info", "mapping_id")}
_REQUIRED: Mapping[RowClass, tuple[str, ...]] = {
    tables.Metadata: ("key", "value"),
    tables.Snapshot: ("snapshot_time", "schema_version", "next_catalog_id", "next_file_id"),
    tables.SnapshotChanges: (TENANT,),
    tables.Schema: ("begin_snapshot",),
    tables.SchemaVersions: ("schema_version",),
    tables.Table: ("schema_id",),
    tables.View: ("schema_id",),
    tables.DataFile: ("table_id", "begin_snapshot"),
    tables.DeleteFile: ("table_id", "begin_snapshot", "data_file_id"),
    tables.FileColumnStats: ("table_id",),
    tables.PartitionInfo: ("table_id", "begin_snapshot"),
    tables.PartitionColumn: ("table_id", "column_id"),
    tables.FilePartitionValue: ("table_id",),
    tables.ColumnMapping: ("table_id",),
    tables.InlinedDataTables: ("table_name",),
    tables.Macro: ("schema_id",),
    tables.FilesScheduledForDeletion: ("path", "schedule_start"),
}
# On PostgreSQL, as the fork's script makes them: what is live under a name is so once. Not the one over columns, which
# would refuse a table with two lists.
UNIQUE_NAMES: Mapping[str, tuple[str, ...]] = {
    "catalog": ("catalog_name",),
    "schema": (TENANT, "schema_name"),
    "table": (TENANT, "schema_id", "table_name"),
    "view": (TENANT, "schema_id", "view_name"),
    "macro": (TENANT, "schema_id", "macro_name"),
}


def physical_columns(layout: Layout, row_class: RowClass) -> dict[str, str]:
    """The columns of a table in their order, with their logical types."""
    scope, own = layout.scope(row_class), layout.physical(row_class)
    logical = {
        **dict.fromkeys(scope, "BIGINT"),
        **{name: LOGICAL_TYPES[row_class].get(name, "VARCHAR") for name in own},
    }
    first, last = _FIRST.get(row_class, ()), _LAST.get(row_class, ())
    between = [name for name in logical if name not in (*first, *last)]
    return {name: logical[name] for name in (*first, *between, *last)}


def definition(columns: Mapping[str, str], key: tuple[str, ...], required: tuple[str, ...]) -> str:
    """What stands in the parentheses of CREATE TABLE; the columns' types are those of the database."""
    parts = [f'"{name}" {kind}{" NOT NULL" if name in required else ""}' for name, kind in columns.items()]
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(f'{chr(34)}{name}{chr(34)}' for name in key)})")
    return ", ".join(parts)


def definitions(layout: Layout, physical: Mapping[str, str]) -> dict[str, str]:
    """Every table by its name, with what stands in the parentheses of its CREATE TABLE."""
    beside = {
        "ducklake_catalog": (CATALOG, (TENANT, "begin_snapshot"), ("catalog_uuid", "catalog_name")),
        "ducklake_snapshot_lineage": (LINEAGE, (TENANT, "previous_snapshot_id"), ("snapshot_id",)),
    }
    every = {
        f"ducklake_{name}": (physical_columns(layout, of), _KEYS[of], _REQUIRED.get(of, ()))
        for of, name in TABLES.items()
        if layout.has(of)
    }
    return {
        name: definition({column: physical[logical] for column, logical in columns.items()}, key, required)
        for name, (columns, key, required) in {**every, **beside}.items()
    }
