"""The tables that hold inlined rows and inlined deletes: one or more per table of the lake, named by its id."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.names import TableId, fold
from dbt.adapters.ducklake.lake.spec import tables

# Columns that lead every inlined table, before those of the lake's table.
LEADING = ("row_id", "begin_snapshot", "end_snapshot")
_RESERVED_PREFIX = "_ducklake_internal_"


def rows_table_of(table_id: TableId, schema_version: int) -> str:
    return f"ducklake_inlined_data_{table_id}_{schema_version}"


def is_own_name(row: tables.InlinedDataTables) -> bool:
    """Whether the name that the metadata give is one of such a table's: it may be dropped, whoever wrote that row."""
    return row.table_name == rows_table_of(TableId(row.table_id), row.schema_version)


def deletes_table_of(table_id: TableId) -> str:
    """Rows (file_id, row_id, begin_snapshot), where row_id is a position in the file. Registered nowhere."""
    return f"ducklake_inlined_delete_{table_id}"


def is_reserved(column: Column) -> bool:
    """Whether the column's name is one that DuckDB uses in inlined tables, so that it inlines no rows of its table."""
    return fold(column.name) in LEADING or fold(column.name).startswith(_RESERVED_PREFIX)
