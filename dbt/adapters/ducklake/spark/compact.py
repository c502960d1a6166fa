"""The same rows in other files: small files become large ones, deleted rows are left out, inlined rows get files.

What is merged is read file by file and written by one task per new file: no row is shuffled or sorted unless the table
has sort keys. So the rows need not come in the order of their ids, and the files hold these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnType,
    DataFile,
    DeletesToAdd,
    FileId,
    FileToAdd,
    InlinedRow,
    MergeGroup,
    SnapshotId,
    Table,
    TableFiles,
    VersionsFile,
    deleted_rows,
    new_uuid,
)
from dbt.adapters.ducklake.spark.assignment import refuse_types
from dbt.adapters.ducklake.spark.delete import write_positions
from dbt.adapters.ducklake.spark.errors import RowsDiffer
from dbt.adapters.ducklake.spark.footers import Footer, field_ids, read_footers
from dbt.adapters.ducklake.spark.local_rows import dataframe_of
from dbt.adapters.ducklake.spark.own_folder import OwnFolder, own_folder
from dbt.adapters.ducklake.spark.puffin import positions_in
from dbt.adapters.ducklake.spark.scan import ROW_ID, scan_versions
from dbt.adapters.ducklake.spark.schema import FIELD_ID, ROW_ID_COLUMN, ROW_IDS, SNAPSHOT_COLUMN, VERSIONS, quoted
from dbt.adapters.ducklake.spark.statistics import statistics_of
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.spark.write import (
    WriteSettings,
    arrow_files,
    needs_mapping,
    own_columns,
    refuse_nanoseconds,
    remove_files,
    run_write,
    set_to,
    without_others,
    write_rows,
)

_GROUP = "_ducklake_group"
# Spark numbers its files by the tasks that write them.
_PLACE = re.compile(rf"(?:part-|{_GROUP}=)(\d+)")
_ROWS_OF_A_TASK = 1_000_000


def merge_files(
    spark: SparkSession,
    storage: Storage,
    table: Table,
    groups: Sequence[MergeGroup],
    files: TableFiles,
    snapshot: SnapshotId,
    settings: WriteSettings,
    sort_by: Sequence[Expression] = (),
) -> list[VersionsFile]:
    """One file for each group, all of which `table` defines. After any error no file is left."""
    refuse_nanoseconds(table)
    for column in table.columns:
        refuse_types(column, table)
    parts = []
    scanned = scan_versions(spark, storage, table, files, snapshot, [group.files for group in groups])
    for place, versions in enumerate(scanned):
        rows = versions.coalesce(1)
        rows = rows.sortWithinPartitions(*sort_by) if sort_by else rows
        # Behind the union, no row would be touched by generated code any more.
        parts.append(_as_stored(rows, table, place))
    # Else the single partitions of the parts would be taken together (Spark 4.1).
    apart = set_to(spark, "spark.sql.unionOutputPartitioning", "false")
    whole = set_to(spark, "spark.sql.files.maxRecordsPerFile", "0")
    with own_folder(storage, table) as folder, apart, whole:
        footers = _written(folder, table, reduce(DataFrame.unionAll, parts), len(parts), settings)
        _check_files(table, groups, footers)
        return [
            VersionsFile(table, _described(folder, table, group, footer), group.first, group.last, group.partition_id)
            for group, footer in zip(groups, footers, strict=True)
        ]


def _as_stored(rows: DataFrame, table: Table, group: int) -> DataFrame:
    """The columns with their ids, and the number of the group where pyarrow writes the files."""
    width = len(table.columns)
    placed = rows.toDF(*(f"_ducklake_{place}" for place in range(width + len(VERSIONS))))
    values = [
        F.col(f"_ducklake_{place}").alias(column.name, metadata={FIELD_ID: int(column.id)})
        for place, column in enumerate(table.columns)
    ]
    number = [F.lit(str(group)).alias(_GROUP)] if needs_mapping(table.columns) else []
    return placed.select(*values, *own_columns(VERSIONS, width), *number)


def _written(folder: OwnFolder, table: Table, rows: DataFrame, count: int, settings: WriteSettings) -> list[Footer]:
    """Write each of the partitions of rows to a file; their footers, in the order of the partitions."""
    if needs_mapping(table.columns):
        writer = arrow_files(folder.storage, table, (_GROUP,), settings, folder.path, VERSIONS)
        paths: set[str] | None = writer.write(rows)
    else:
        paths = run_write(folder.storage, rows, (), settings, folder.path)
    found = without_others(folder.storage, folder.parquet_files(), paths)
    by_place = {_place_of(path[len(folder.path) :]): (path, size) for path, size in found}
    if sorted(by_place) != list(range(count)) or len(found) != count:
        raise RowsDiffer(str(table), f"{count} files were to be written", f"there are {len(found)}")
    return read_footers(folder.storage, [by_place[place] for place in range(count)])


def _place_of(path: str) -> int:
    found = _PLACE.match(path)
    return int(found[1]) if found else -1


def _check_files(table: Table, groups: Sequence[MergeGroup], footers: Sequence[Footer]) -> None:
    """What is registered here is what every snapshot from now on reads: no row may be lost, nor a column's id."""
    wanted = [*(column.id for column in table.columns), *(field_id for _, field_id in VERSIONS)]
    for group, footer in zip(groups, footers, strict=True):
        if field_ids(footer) != wanted:
            raise RowsDiffer(str(table), f"columns should have the ids {wanted}", f"they have {field_ids(footer)}")
        if footer.metadata.num_rows != group.rows:
            found = f"they have {footer.metadata.num_rows}"
            names = ", ".join(str(file.id) for file in group.files[:5])
            raise RowsDiffer(str(table), f"its data files {names} should have {group.rows} rows", found)


def _described(folder: OwnFolder, table: Table, group: MergeGroup, footer: Footer) -> FileToAdd:
    return FileToAdd(
        path=folder.keep(footer.path, f"{table.location}{_folder_of(table, group)}ducklake-{new_uuid()}.parquet"),
        record_count=footer.metadata.num_rows,
        size=footer.size,
        footer_size=footer.length,
        columns=statistics_of(footer, table.columns),
        partition_values=group.partition_values,
        row_groups=footer.row_groups,
    )


def _folder_of(table: Table, group: MergeGroup) -> str:
    """The folder of a partition below its table, where the first file of a group lies in one."""
    path = group.files[0].path
    if not path.startswith(table.location):
        return ""
    parts = PurePosixPath(path[len(table.location) :]).parts[:-1]
    return "".join(f"{part}/" for part in parts if "=" in part)


def rewrite_files(
    spark: SparkSession,
    storage: Storage,
    table: Table,
    sources: Sequence[DataFile],
    files: TableFiles,
    snapshot: SnapshotId,
    settings: WriteSettings,
    count: int,
    sort_by: Sequence[Expression] = (),
) -> list[FileToAdd]:
    """The rows of files that are not deleted in about `count` new ones, which hold their ids."""
    (rows,) = scan_versions(spark, storage, table, files, snapshot, [sources])
    kept = rows.select(*(quoted(column.name) for column in table.columns), ROW_ID)
    made = write_rows(spark, storage, kept.coalesce(max(1, count)), table, settings, sort_by, own=ROW_IDS)
    expected = sum(file.record_count - deleted_rows(file, files) for file in sources)
    # What is noted in a delete file and inlined may be the same rows.
    is_sure = not any(file.delete_file and files.inlined_deletes.get(file.id) for file in sources)
    found = sum(file.record_count for file in made)
    if found < expected or (is_sure and found > expected):
        remove_files(storage, made)
        raise RowsDiffer(str(table), f"{expected} rows should be left in {len(sources)} of its files", f"{found} are")
    return made


def flush_rows(
    spark: SparkSession,
    storage: Storage,
    table: Table,
    rows: Sequence[InlinedRow],
    settings: WriteSettings,
    sort_by: Sequence[Expression] = (),
) -> list[VersionsFile]:
    """Inlined rows, deleted ones too, in files, with delete files that say of each when it went."""
    own = [Column(name, ColumnType("int64")) for name, _ in VERSIONS]
    given = dataframe_of(spark, [*table.columns, *own], ([*row.values, row.row_id, row.begin] for row in rows))
    given = given.coalesce(max(1, len(rows) // _ROWS_OF_A_TASK))
    files = write_rows(spark, storage, given, table, settings, sort_by, own=VERSIONS)
    made: list[VersionsFile] = []
    ends = {(row.row_id, int(row.begin)): row.end for row in rows if row.end is not None}
    try:
        for file in files:
            made.append(_with_versions(storage, table, file, ends))
    except BaseException:
        for path in [*(file.path for file in files), *(one.deletes.path for one in made if one.deletes)]:
            storage.remove(path)
        raise
    return made


def _with_versions(
    storage: Storage, table: Table, file: FileToAdd, ends: dict[tuple[int, int], SnapshotId]
) -> VersionsFile:
    with storage.open(file.path) as opened:
        found = pq.read_table(opened, columns=[ROW_ID_COLUMN, SNAPSHOT_COLUMN])
    ids, begins = (found.column(place).to_pylist() for place in range(2))
    gone = [(place, ends[key]) for place, key in enumerate(zip(ids, begins, strict=True)) if key in ends]
    deletes = None
    if gone:
        positions, snapshots = zip(*gone, strict=True)
        deletes = write_positions(storage, table, FileId(-1), file.path, positions, snapshots)
    spec = table.partitioning
    return VersionsFile(
        table, file, SnapshotId(min(begins)), SnapshotId(max(begins)),
        partition_id=spec.id if spec and file.partition_values is not None else None,
        row_id_start=min(ids), deletes=deletes,
    )  # fmt: skip


def flush_deletes(
    storage: Storage, table: Table, file: DataFile, positions: Sequence[tuple[int, SnapshotId]]
) -> DeletesToAdd:
    """A delete file with the inlined deletes of a data file, and with those that it has already."""
    earlier = _positions_of(storage, file)
    # DuckDB lets two deletes of one row both commit, one to a file and one inlined: the earlier counts.
    every: dict[int, SnapshotId] = {}
    for position, snapshot in sorted([*earlier, *positions]):
        every.setdefault(position, snapshot)
    places, snapshots = list(every), list(every.values())
    replaces = file.delete_file.id if file.delete_file else None
    return replace(write_positions(storage, table, file.id, file.path, places, snapshots), replaces=replaces)


def _positions_of(storage: Storage, file: DataFile) -> list[tuple[int, SnapshotId]]:
    delete = file.delete_file
    if delete is None:
        return []
    if delete.format == "puffin":
        found = positions_in(delete.path, storage.read(delete.path))
        return [(position, delete.begin if at is None else SnapshotId(at)) for position, at in found]
    with storage.open(delete.path) as opened:
        found = pq.read_table(opened)
    positions = found.column("pos")
    begin = pa.scalar(int(delete.begin), pa.int64())
    if SNAPSHOT_COLUMN in found.column_names:
        snapshots = pc.coalesce(found.column(SNAPSHOT_COLUMN), begin)
    else:
        snapshots = pa.array([int(delete.begin)] * found.num_rows, pa.int64())
    return list(zip(positions.to_pylist(), snapshots.to_pylist(), strict=True))
