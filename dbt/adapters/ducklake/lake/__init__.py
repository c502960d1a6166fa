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
from dbt.adapters.ducklake.lake.columns import Column, Default, find
from dbt.adapters.ducklake.lake.definitions import PartitionField, Schema, SortField, Table, TableName, View
from dbt.adapters.ducklake.lake.description import LakeDescription
from dbt.adapters.ducklake.lake.errors import (
    CannotOpen,
    CommitConflict,
    CommitContended,
    CommitFailed,
    CommitOutcomeUnknown,
    InvalidDescription,
    LakeError,
    NotFound,
)
from dbt.adapters.ducklake.lake.lake import Lake
from dbt.adapters.ducklake.lake.maintenance.expiry import Expired
from dbt.adapters.ducklake.lake.maintenance.health import LakeHealth, TableHealth
from dbt.adapters.ducklake.lake.maintenance.maintenance import KnownFiles, Maintenance, ScheduledFile
from dbt.adapters.ducklake.lake.maintenance.planning import (
    DEFAULT_TARGET_SIZE,
    Bounds,
    MergeGroup,
    deleted_rows,
    files_to_rewrite,
    merge_groups,
)
from dbt.adapters.ducklake.lake.migration import Migration, migrate_lake
from dbt.adapters.ducklake.lake.names import (
    ColumnId,
    FileId,
    SchemaId,
    SnapshotId,
    TableId,
    exact_path,
    fold,
    new_uuid,
    path_in,
    quoted,
)
from dbt.adapters.ducklake.lake.opening import connect
from dbt.adapters.ducklake.lake.options import Options
from dbt.adapters.ducklake.lake.partitioning import (
    CALENDAR_PARTS,
    EPOCH_PARTS,
    bucket_count,
    partition_text,
    partition_value,
)
from dbt.adapters.ducklake.lake.paths import plain
from dbt.adapters.ducklake.lake.protection import protect_tenant
from dbt.adapters.ducklake.lake.snapshot.feed import DeletedRows, EndedFile, InsertedRows, TableChanges
from dbt.adapters.ducklake.lake.snapshot.files import DataFile, DeleteFile, MappedColumn, NameMapping, TableFiles
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow, InlinedTable
from dbt.adapters.ducklake.lake.snapshot.pruning import Between, Compare, IsIn, IsNotNull, IsNull, Predicate
from dbt.adapters.ducklake.lake.snapshot.snapshot import CommitInfo, Snapshot, TableStatistics
from dbt.adapters.ducklake.lake.spans import NotASpan, moment_before
from dbt.adapters.ducklake.lake.tenants import Tenant, create_tenant, drop_tenant, tenants
from dbt.adapters.ducklake.lake.transaction.changes import (
    ColumnStatistics,
    CommitMessage,
    DeletesToAdd,
    FileToAdd,
    VersionsFile,
)
from dbt.adapters.ducklake.lake.transaction.commit import Patience
from dbt.adapters.ducklake.lake.transaction.transaction import Transaction
from dbt.adapters.ducklake.lake.types import INTEGERS, ColumnType, can_widen, decimal, type_from_text
from dbt.adapters.ducklake.lake.values import Value, fits, has_bounds, parse_value, value_text
from dbt.adapters.ducklake.lake.variant import variant_parts

__all__ = [
    "CALENDAR_PARTS",
    "DEFAULT_TARGET_SIZE",
    "EPOCH_PARTS",
    "INFINITE_DAYS",
    "INFINITE_TICKS",
    "INTEGERS",
    "Between",
    "Bounds",
    "CannotOpen",
    "Column",
    "ColumnId",
    "ColumnStatistics",
    "ColumnType",
    "CommitConflict",
    "CommitContended",
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
    "Expired",
    "FileId",
    "FileToAdd",
    "InlinedRow",
    "InlinedTable",
    "InsertedRows",
    "InvalidDescription",
    "IsIn",
    "IsNotNull",
    "IsNull",
    "KnownFiles",
    "Lake",
    "LakeDescription",
    "LakeError",
    "LakeHealth",
    "Maintenance",
    "MappedColumn",
    "MergeGroup",
    "Migration",
    "NameMapping",
    "NotASpan",
    "NotFound",
    "Options",
    "PartitionField",
    "Patience",
    "Predicate",
    "ScheduledFile",
    "Schema",
    "SchemaId",
    "Snapshot",
    "SnapshotId",
    "SortField",
    "Table",
    "TableChanges",
    "TableFiles",
    "TableHealth",
    "TableId",
    "TableName",
    "TableStatistics",
    "Tenant",
    "Transaction",
    "Value",
    "VersionsFile",
    "View",
    "bucket_count",
    "can_widen",
    "connect",
    "create_tenant",
    "decimal",
    "deleted_rows",
    "drop_tenant",
    "exact_path",
    "files_to_rewrite",
    "find",
    "fits",
    "fold",
    "has_bounds",
    "merge_groups",
    "migrate_lake",
    "moment_before",
    "new_uuid",
    "parse_value",
    "partition_text",
    "partition_value",
    "path_in",
    "plain",
    "protect_tenant",
    "quoted",
    "tenants",
    "type_from_text",
    "value_text",
    "variant_parts",
]
