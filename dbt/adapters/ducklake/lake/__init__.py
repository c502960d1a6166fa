"""The DuckLake client: lakes, their snapshots, and transactions that commit new ones. It knows neither dbt nor Spark
nor SQL.

with connect(LakeDescription("duckdb:lake.ducklake")) as lake:
    orders = lake.snapshot().table("main", "orders")
    files = lake.snapshot().files(orders)
    transaction = lake.transaction()
    transaction.append(orders, [FileToAdd(…)])
    transaction.commit()
"""

from dbt.adapters.ducklake.lake.calendar import INFINITE_DAYS, INFINITE_TICKS
from dbt.adapters.ducklake.lake.columns import Column, Default
from dbt.adapters.ducklake.lake.definitions import PartitionField, Schema, SortField, Table, TableName, View
from dbt.adapters.ducklake.lake.description import LakeDescription
from dbt.adapters.ducklake.lake.errors import (
    CannotOpen,
    CommitConflict,
    CommitFailed,
    CommitOutcomeUnknown,
    LakeError,
    NotFound,
)
from dbt.adapters.ducklake.lake.lake import Lake, connect
from dbt.adapters.ducklake.lake.names import ColumnId, FileId, SchemaId, SnapshotId, TableId, fold, new_uuid
from dbt.adapters.ducklake.lake.options import Options
from dbt.adapters.ducklake.lake.partitioning import CALENDAR_PARTS, bucket_count, partition_text, partition_value
from dbt.adapters.ducklake.lake.snapshot.feed import DeletedRows, EndedFile, InsertedRows, TableChanges
from dbt.adapters.ducklake.lake.snapshot.files import DataFile, DeleteFile, MappedColumn, NameMapping, TableFiles
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow
from dbt.adapters.ducklake.lake.snapshot.pruning import Between, Compare, IsIn, IsNotNull, IsNull, Predicate
from dbt.adapters.ducklake.lake.snapshot.snapshot import CommitInfo, Snapshot, TableStatistics
from dbt.adapters.ducklake.lake.transaction.changes import ColumnStatistics, CommitMessage, DeletesToAdd, FileToAdd
from dbt.adapters.ducklake.lake.transaction.commit import Patience
from dbt.adapters.ducklake.lake.transaction.transaction import Transaction
from dbt.adapters.ducklake.lake.types import ColumnType, can_widen, decimal, type_from_text
from dbt.adapters.ducklake.lake.values import Value, fits, has_bounds, parse_value, value_text

__all__ = [
    "CALENDAR_PARTS",
    "INFINITE_DAYS",
    "INFINITE_TICKS",
    "Between",
    "CannotOpen",
    "Column",
    "ColumnId",
    "ColumnStatistics",
    "ColumnType",
    "CommitConflict",
    "CommitFailed",
    "CommitInfo",
    "CommitMessage",
    "CommitOutcomeUnknown",
    "Compare",
    "DataFile",
    "Default",
    "DeleteFile",
    "DeletedRows",
    "DeletesToAdd",
    "EndedFile",
    "FileId",
    "FileToAdd",
    "InlinedRow",
    "InsertedRows",
    "IsIn",
    "IsNotNull",
    "IsNull",
    "Lake",
    "LakeDescription",
    "LakeError",
    "MappedColumn",
    "NameMapping",
    "NotFound",
    "Options",
    "PartitionField",
    "Patience",
    "Predicate",
    "Schema",
    "SchemaId",
    "Snapshot",
    "SnapshotId",
    "SortField",
    "Table",
    "TableChanges",
    "TableFiles",
    "TableId",
    "TableName",
    "TableStatistics",
    "Transaction",
    "Value",
    "View",
    "bucket_count",
    "can_widen",
    "connect",
    "decimal",
    "fits",
    "fold",
    "has_bounds",
    "new_uuid",
    "parse_value",
    "partition_text",
    "partition_value",
    "type_from_text",
    "value_text",
]
