"""The tables that hold inlined rows and inlined deletes: one or more per table of the lake, named by its id."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.names import TableId
from dbt.adapters.ducklake.lake.spec import tables


def rows_table_of(table_id: TableId, schema_version: int) -> str:
    return f"ducklake_inlined_data_{table_id}_{schema_version}"


def is_own_name(row: tables.InlinedDataTables) -> bool:
    """Whether the name that the metadata give is one of such a table's: it may be dropped, whoever wrote that row."""
    return row.table_name == rows_table_of(TableId(row.table_id), row.schema_version)


def deletes_table_of(table_id: TableId) -> str:
    """Rows (file_id, row_id, begin_snapshot), where row_id is a position in the file. Registered nowhere."""
    return f"ducklake_inlined_delete_{table_id}"
