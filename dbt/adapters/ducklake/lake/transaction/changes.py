"""What a transaction will do: frozen values, recorded in order. Nothing here touches a database.

New schemas, tables and views carry negative ids until the commit numbers them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dbt.adapters.ducklake.lake.definitions import Macro, Schema, Table, TableName, View
from dbt.adapters.ducklake.lake.names import ColumnId, FileId, SnapshotId
from dbt.adapters.ducklake.lake.snapshot.files import NameMapping
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow
from dbt.adapters.ducklake.lake.values import Value


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One leaf column in one file. Bounds are values of the column's type, and None where they are not known.

    Bounds may be wider than the values, never narrower: only an exact one is itself a value. Leave the whole column out
    of a file's statistics rather than guess.
    """

    value_count: int
    null_count: int
    minimum: Value = None
    maximum: Value = None
    contains_nan: bool | None = None
    size: int = 0
    extra: str | None = None
    min_is_exact: bool = True
    max_is_exact: bool = True


@dataclass(frozen=True, slots=True)
class FileToAdd:
    """A Parquet file that is written and complete, to become visible with the commit.

    `partition_values` are the texts of its keys under the table's partitioning. Without `mapping` all columns of the
    file, at any depth, carry their column ids as Parquet field ids.
    """

    path: str
    record_count: int
    size: int
    footer_size: int | None = None
    columns: Mapping[ColumnId, ColumnStatistics] = field(default_factory=dict)
    partition_values: tuple[str | None, ...] | None = None
    mapping: NameMapping | None = None
    row_groups: int | None = None


@dataclass(frozen=True, slots=True)
class DeletesToAdd:
    """A delete file for one data file, holding all positions deleted so far.

    `replaces` is the delete file that the data file has had. `snapshots` is the range of the file's column
    `_ducklake_internal_snapshot_id`, whose end is the snapshot it was written for; with it, as in DuckDB, the new
    file takes the place of the old one also for earlier snapshots, and the change feed stays exact. Without the
    column the old file is kept for earlier snapshots, and a feed over both repeats the older positions.
    """

    data_file_id: FileId
    path: str
    delete_count: int
    size: int
    footer_size: int | None = None
    replaces: FileId | None = None
    snapshots: tuple[SnapshotId, SnapshotId] | None = None
    format: str = "parquet"
    row_groups: int | None = None


@dataclass(frozen=True, slots=True)
class CreateSchema:
    schema: Schema


@dataclass(frozen=True, slots=True)
class DropSchema:
    schema: Schema
    macros: tuple[Macro, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable:
    table: Table


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Any change of a table's definition: its name, columns, defaults, comments, partitioning or sort keys."""

    before: Table
    after: Table


@dataclass(frozen=True, slots=True)
class DropTable:
    table: TableName


@dataclass(frozen=True, slots=True)
class CreateView:
    view: View


@dataclass(frozen=True, slots=True)
class AlterView:
    """A view's new name or comment; another query is a new view."""

    before: View
    after: View


@dataclass(frozen=True, slots=True)
class DropView:
    view: View


@dataclass(frozen=True, slots=True)
class AppendFiles:
    table: Table
    files: tuple[FileToAdd, ...]


@dataclass(frozen=True, slots=True)
class AddDeletes:
    table: Table
    deletes: tuple[DeletesToAdd, ...]


@dataclass(frozen=True, slots=True)
class EndFiles:
    """All rows of these data files go; the files stay for earlier snapshots."""

    table: Table
    files: tuple[FileId, ...]


@dataclass(frozen=True, slots=True)
class InsertInlined:
    """Rows for the metadata database, with their values in the order of the table's columns.

    A row with a row id is the new version of the row that has it; one without takes the next.
    """

    table: Table
    rows: tuple[tuple[Value, ...], ...]
    row_ids: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class EndInlined:
    table: Table
    rows: tuple[InlinedRow, ...]


@dataclass(frozen=True, slots=True)
class InlineDeletes:
    """Positions of data files that are deleted in the metadata database instead of in a delete file.

    `beside` are the delete files that these data files have; with others, positions might be deleted twice.
    """

    table: Table
    positions: Mapping[FileId, tuple[int, ...]]
    beside: Mapping[FileId, FileId | None]


@dataclass(frozen=True, slots=True)
class VersionsFile:
    """A file whose rows came with several snapshots, from `first` to `last`: each row's own stands in the file, and
    its row id. `deletes` are the positions of those that are deleted again.

    `table` is the definition that the file was written under, which may be an earlier one.
    """

    table: Table
    file: FileToAdd
    first: SnapshotId
    last: SnapshotId
    partition_id: int | None = None
    row_id_start: int | None = None
    deletes: DeletesToAdd | None = None


@dataclass(frozen=True, slots=True)
class MergeFiles:
    """Data files without deleted rows give way to others with the same rows, at every snapshot."""

    table: Table
    sources: tuple[FileId, ...]
    files: tuple[VersionsFile, ...]


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Data files end, with the delete files that they have (`beside`), and their other rows go on in new files.

    The new files hold the row ids.
    """

    table: Table
    beside: Mapping[FileId, FileId | None]
    files: tuple[FileToAdd, ...]


@dataclass(frozen=True, slots=True)
class FlushInlined:
    """All versions of the inlined rows up to the base snapshot go to files, from the tables `kept_in`.

    `deletes` take the place of what the metadata hold of deleted rows of data files.
    """

    table: Table
    kept_in: tuple[str, ...] = ()
    files: tuple[VersionsFile, ...] = ()
    deletes: tuple[DeletesToAdd, ...] = ()


Compaction: TypeAlias = MergeFiles | RewriteFiles | FlushInlined
DataChange: TypeAlias = AppendFiles | AddDeletes | EndFiles | InsertInlined | EndInlined | InlineDeletes | Compaction
Change: TypeAlias = (
    CreateSchema | DropSchema | CreateTable | AlterTable | DropTable | CreateView | AlterView | DropView | DataChange
)


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """What the commit says of itself; extra info is usually JSON."""

    author: str | None = None
    message: str | None = None
    extra_info: str | None = None
