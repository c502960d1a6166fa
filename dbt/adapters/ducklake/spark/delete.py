"""Rows to remove, by their places → delete files, one for each data file, and the data files that end.

A delete file holds all positions of its data file, in order, and each once. Where the data file has one already, the
new one says of every position in which snapshot it went, as DuckDB's does: then it takes the old one's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import (
    DataFile,
    DeletesToAdd,
    FileId,
    InlinedRow,
    SnapshotId,
    Table,
    new_uuid,
)
from dbt.adapters.ducklake.spark.deleted import delete_file_rows, positions_of
from dbt.adapters.ducklake.spark.errors import FilesNotFound
from dbt.adapters.ducklake.spark.footers import Footer, read_footers
from dbt.adapters.ducklake.spark.local_rows import keys_dataframe
from dbt.adapters.ducklake.spark.own_folder import OwnFolder, own_folder
from dbt.adapters.ducklake.spark.scan import FILE, INLINED, POSITION, Placed
from dbt.adapters.ducklake.spark.schema import FIELD_ID, SNAPSHOT_COLUMN, SNAPSHOT_FIELD_ID
from dbt.adapters.ducklake.spark.storage import Storage, file_uri, spark_path

_PATH_FIELD_ID, _POSITION_FIELD_ID = 2147483646, 2147483645
# As DuckDB writes delete files: their positions are few and compress well.
_COMPRESSION = "zstd"


@dataclass(frozen=True)
class Removed:
    """What a commit has to do for rows to be gone."""

    deletes: tuple[DeletesToAdd, ...] = ()
    ended: tuple[FileId, ...] = ()
    inlined: tuple[InlinedRow, ...] = ()
    count: int = 0


def remove_rows(
    spark: SparkSession, storage: Storage, table: Table, placed: Placed, gone: DataFrame, counts: Mapping[int, int]
) -> Removed:
    """Write the delete files for the rows of `gone`, which has FILE and POSITION, each place once.

    `counts` says how many there are in each file. After any error no file is left.
    """
    inlined = _inlined(placed, gone) if counts.get(INLINED) else ()
    in_files = {number: count for number, count in counts.items() if number != INLINED}
    whole = {number for number, count in in_files.items() if _is_whole(placed, placed.files[number], count)}
    partly = {number: placed.files[number] for number in in_files if number not in whole}
    deletes: list[DeletesToAdd] = []
    try:
        for files in _with_and_without(partly):
            if files:
                deletes += _written(spark, storage, table, placed, gone, files)
    except BaseException:
        remove_delete_files(storage, deletes)
        raise
    return Removed(tuple(deletes), tuple(placed.files[n].id for n in sorted(whole)), inlined, sum(counts.values()))


def remove_delete_files(storage: Storage, deletes: Sequence[DeletesToAdd]) -> None:
    for delete in deletes:
        storage.remove(delete.path)


def write_positions(
    storage: Storage, table: Table, file_id: FileId, data_path: str, positions: Sequence[int], snapshots: Sequence[int]
) -> DeletesToAdd:
    """Write a delete file of positions, in order, each with the snapshot that deleted it."""
    given = [
        (pa.field("file_path", pa.string(), metadata=_id(_PATH_FIELD_ID)), [data_path] * len(positions)),
        (pa.field("pos", pa.int64(), metadata=_id(_POSITION_FIELD_ID)), positions),
        (pa.field(SNAPSHOT_COLUMN, pa.int64(), metadata=_id(SNAPSHOT_FIELD_ID)), snapshots),
    ]
    rows = pa.Table.from_arrays(
        [pa.array(values, field.type) for field, values in given], schema=pa.schema([field for field, _ in given])
    )
    path = f"{table.location}ducklake-{new_uuid()}-delete.parquet"
    footer = _stored(storage, path, rows)
    between = SnapshotId(min(snapshots)), SnapshotId(max(snapshots))
    return DeletesToAdd(
        file_id, path, len(positions), footer.size, footer.length, snapshots=between, row_groups=footer.row_groups
    )


def _id(field_id: int) -> dict[bytes, bytes]:
    return {b"PARQUET:field_id": str(field_id).encode()}


def _stored(storage: Storage, path: str, rows: pa.Table) -> Footer:
    """Write a small file."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression=_COMPRESSION)
    size = storage.write(path, sink.getvalue())
    return read_footers(storage, [(path, size)])[0]


def for_snapshot(storage: Storage, snapshot: SnapshotId, delete: DeletesToAdd) -> DeletesToAdd:
    """The delete file anew, for another snapshot than the one it was written for, which another commit took.

    The old one stays: it is what the next attempt begins from.
    """
    assert delete.snapshots is not None
    with storage.open(delete.path) as file:
        rows = pq.read_table(file, read_dictionary=["file_path"])
    first, last = delete.snapshots
    place = rows.schema.get_field_index(SNAPSHOT_COLUMN)
    moved = pc.if_else(pc.equal(rows.column(place), last), pa.scalar(int(snapshot), pa.int64()), rows.column(place))
    rows = rows.set_column(place, rows.schema.field(place), moved)
    path = f"{delete.path.rsplit('/', 1)[0]}/ducklake-{new_uuid()}-delete.parquet"
    footer, between = _stored(storage, path, rows), (min(first, snapshot), snapshot)
    return replace(delete, path=path, size=footer.size, footer_size=footer.length, snapshots=between)


def _inlined(placed: Placed, gone: DataFrame) -> tuple[InlinedRow, ...]:
    found = gone.where(F.col(FILE) == INLINED).select(POSITION).toArrow().column(0).to_pylist()
    return tuple(placed.of_table.inlined_rows[place] for place in sorted(found))


def _is_whole(placed: Placed, file: DataFile, count: int) -> bool:
    """Whether with these all rows of a file are gone, so that it ends."""
    if placed.of_table.inlined_deletes.get(file.id):
        # DuckDB ends no such file: its change feed would tell those rows once more.
        return False
    before = file.delete_file.delete_count if file.delete_file else 0
    return count + before == file.record_count


def _with_and_without(files: Mapping[int, DataFile]) -> Iterator[dict[int, DataFile]]:
    yield {number: file for number, file in files.items() if file.delete_file is None}
    yield {number: file for number, file in files.items() if file.delete_file is not None}


def _written(
    spark: SparkSession, storage: Storage, table: Table, placed: Placed, gone: DataFrame, files: Mapping[int, DataFile]
) -> list[DeletesToAdd]:
    """The delete files of data files that all have one already, or none of which has."""
    next_snapshot = placed.snapshot + 1
    numbers, paths = pa.array(list(files), pa.int64()), pa.array([file.path for file in files.values()])
    owners = keys_dataframe(spark, ["_ducklake_number", "file_path"], [numbers, paths])
    rows = gone.select(FILE, F.col(POSITION).alias("pos"), F.lit(next_snapshot).cast("bigint").alias(SNAPSHOT_COLUMN))
    for earlier in _earlier(spark, storage, files):
        rows = rows.unionAll(earlier)
    rows = rows.join(F.broadcast(owners), F.col(FILE) == F.col("_ducklake_number"))
    tells_deletes = placed.of_table.tells_deletes and any(file.delete_file for file in files.values())
    columns = [
        F.col("file_path").alias("file_path", metadata={FIELD_ID: _PATH_FIELD_ID}),
        F.col("pos").alias("pos", metadata={FIELD_ID: _POSITION_FIELD_ID}),
    ]
    if tells_deletes:
        columns.append(F.col(SNAPSHOT_COLUMN).alias(SNAPSHOT_COLUMN, metadata={FIELD_ID: SNAPSHOT_FIELD_ID}))
    ordered = rows.repartition(FILE).sortWithinPartitions(FILE, "pos").select(FILE, *columns)
    with own_folder(storage, table) as folder:
        writer = ordered.write.mode("append").partitionBy(FILE).option("compression", _COMPRESSION)
        writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        writer.option("maxRecordsPerFile", "0").parquet(spark_path(folder.path))
        return _described(folder, table, files, next_snapshot if tells_deletes else None)


def _earlier(spark: SparkSession, storage: Storage, files: Mapping[int, DataFile]) -> Iterator[DataFrame]:
    """The positions that are deleted already, each with its snapshot: that of its delete file where none says more."""
    owned = [(number, file.delete_file) for number, file in files.items() if file.delete_file is not None]
    parquet = [(number, delete) for number, delete in owned if delete.format == "parquet"]
    if parquet:
        uris = pa.array([file_uri(delete.path) for _, delete in parquet])
        numbers = pa.array([number for number, _ in parquet], pa.int64())
        begins = pa.array([int(delete.begin) for _, delete in parquet], pa.int64())
        owners = keys_dataframe(
            spark, ["_ducklake_uri", "_ducklake_number", "_ducklake_begin"], [uris, numbers, begins]
        )
        rows = delete_file_rows(spark, [delete for _, delete in parquet])
        joined = rows.join(F.broadcast(owners), F.col("_ducklake_delete_file") == F.col("_ducklake_uri"), "left")
        owner = F.coalesce("_ducklake_number", F.raise_error(F.lit("a delete file has no data file")).cast("bigint"))
        yield joined.select(
            owner, "_ducklake_pos", F.coalesce(SNAPSHOT_COLUMN, "_ducklake_begin").alias(SNAPSHOT_COLUMN)
        )
    for number, delete in owned:
        if delete.format == "puffin":
            snapshot = F.coalesce(SNAPSHOT_COLUMN, F.lit(int(delete.begin)).cast("bigint"))
            rows = positions_of(spark, storage, delete)
            yield rows.select(F.lit(number).cast("bigint"), "_ducklake_pos", snapshot)


def _described(
    folder: OwnFolder, table: Table, files: Mapping[int, DataFile], snapshot: int | None
) -> list[DeletesToAdd]:
    found = folder.parquet_files()
    by_number = {int(path.rsplit("/", 2)[1].removeprefix(f"{FILE}=")): (path, size) for path, size in found}
    if set(by_number) != set(files) or len(by_number) != len(found):
        raise FilesNotFound(str(table), folder.path)
    footers = read_footers(folder.storage, list(by_number.values()))
    pairs = zip(by_number, footers, strict=True)
    return [_kept(folder, table, files[number], footer, snapshot) for number, footer in pairs]


def _kept(folder: OwnFolder, table: Table, file: DataFile, footer: Footer, snapshot: int | None) -> DeletesToAdd:
    """Where the delete file stays, and what a commit is told of it."""
    return DeletesToAdd(
        data_file_id=file.id,
        path=folder.keep(footer.path, f"{table.location}ducklake-{new_uuid()}-delete.parquet"),
        delete_count=footer.metadata.num_rows,
        size=footer.size,
        footer_size=footer.length,
        replaces=file.delete_file.id if file.delete_file else None,
        snapshots=_snapshots(footer.metadata) if snapshot is not None else None,
        row_groups=footer.row_groups,
    )


def _snapshots(metadata: pq.FileMetaData) -> tuple[SnapshotId, SnapshotId]:
    """The first and the last snapshot in the third column."""
    groups = (metadata.row_group(place).column(2).statistics for place in range(metadata.num_row_groups))
    bounds = [(group.min, group.max) for group in groups]
    return SnapshotId(min(low for low, _ in bounds)), SnapshotId(max(high for _, high in bounds))
