"""Rows that are deleted: their positions, and a scan without them.

A position is found by one whole number, made of its file and its place in it, so that Spark joins by a long and not by
the path of a file.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import DataFile, DeleteFile, FileId, SnapshotId
from dbt.adapters.ducklake.spark.errors import UnreadableFile
from dbt.adapters.ducklake.spark.local_rows import keys_dataframe
from dbt.adapters.ducklake.spark.puffin import positions_in
from dbt.adapters.ducklake.spark.schema import SNAPSHOT_COLUMN
from dbt.adapters.ducklake.spark.storage import WHOLE_FILES, Storage, file_uri, spark_path

_KEY = "_ducklake_internal_position"
# Where a scan has the file and the place of each row, beside its columns: a table may have a column of that name.
HIDDEN = "_metadata"
# Up to so many positions, every task gets all of them; beyond, both sides are sorted and merged.
_BROADCAST_MOST = 5_000_000
_POSITION_BITS = 31
_DELETE_SCHEMA = T.StructType([T.StructField("pos", T.LongType()), T.StructField(SNAPSHOT_COLUMN, T.LongType())])


def file_number(path: str) -> int:
    """32 bits that stand for a data file; two files of one join may not share them."""
    return zlib.crc32(file_uri(path).encode())


def position_key(rows: DataFrame) -> Expression:
    """The number of a scanned row's place, made of the scan's hidden columns."""
    hidden = rows.metadataColumn(HIDDEN)
    number = F.shiftleft(F.crc32(F.encode(hidden["file_path"], "UTF-8")), _POSITION_BITS)
    return number.bitwiseOR(hidden["row_index"])


def without_deleted(
    spark: SparkSession,
    storage: Storage,
    rows: DataFrame,
    files: Sequence[DataFile],
    inlined: Mapping[FileId, Sequence[int]],
    snapshot: SnapshotId,
) -> DataFrame:
    """The rows of a scan of `files` that are not deleted at a snapshot; `rows` still has the scan's hidden columns."""
    _check_spelling(rows, files)
    deleted = _deleted_keys(spark, storage, files, inlined, snapshot)
    count = sum(file.delete_file.delete_count if file.delete_file else 0 for file in files)
    if count <= _BROADCAST_MOST:
        deleted = F.broadcast(deleted)
    return rows.withColumn(_KEY, position_key(rows)).join(deleted, _KEY, "left_anti").drop(_KEY)


def _check_spelling(rows: DataFrame, files: Sequence[DataFile]) -> None:
    """Were one path spelled otherwise than Spark does, its deleted rows would come back."""
    expected = {file_uri(file.path) for file in files}
    found = {path.replace("file:///", "file:/", 1) for path in rows.inputFiles()}
    if not found <= expected:
        raise UnreadableFile(min(found - expected), "Spark spells its path in a way that was not foreseen")


def _deleted_keys(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[DataFile],
    inlined: Mapping[FileId, Sequence[int]],
    snapshot: SnapshotId,
) -> DataFrame:
    known = [_key(file, position) for file in files for position in inlined.get(file.id, ())]
    with_file = [(file, file.delete_file) for file in files if file.delete_file is not None]
    for file, delete in with_file:
        if delete.format == "puffin":
            # Positions that a later snapshot deleted do not count.
            positions = positions_in(delete.path, storage.read(delete.path))
            known += [_key(file, position) for position, at in positions if at is None or at <= snapshot]
    parts = []
    parquet = [(file, delete) for file, delete in with_file if delete.format == "parquet"]
    if parquet:
        parts.append(_keys_in_files(spark, parquet, snapshot))
    if known or not parts:
        parts.append(keys_dataframe(spark, [_KEY], [pa.array(known, pa.int64())]))
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])


def _keys_in_files(
    spark: SparkSession, files: Sequence[tuple[DataFile, DeleteFile]], snapshot: SnapshotId
) -> DataFrame:
    found = delete_file_rows(spark, [delete for _, delete in files])
    # Positions that a later snapshot deleted do not count; a file without the column has none of those.
    visible = F.col(SNAPSHOT_COLUMN).isNull() | (F.col(SNAPSHOT_COLUMN) <= F.lit(int(snapshot)))
    positions = found.where(visible)
    uris = pa.array([file_uri(delete.path) for _, delete in files])
    numbers = pa.array([_signed(file_number(file.path) << _POSITION_BITS) for file, _ in files], pa.int64())
    owners = keys_dataframe(spark, ["_ducklake_owned_file", "_ducklake_number"], [uris, numbers])
    owned = positions.join(F.broadcast(owners), F.col("_ducklake_delete_file") == F.col("_ducklake_owned_file"), "left")
    number = F.coalesce("_ducklake_number", F.raise_error(F.lit("a delete file has no data file")).cast("bigint"))
    return owned.select(number.bitwiseOR(F.col("_ducklake_pos")).alias(_KEY))


def delete_file_rows(spark: SparkSession, deletes: Sequence[DeleteFile]) -> DataFrame:
    """The positions of delete files in Parquet as `_pos`, the snapshot of each where its file says it, and the file."""
    reader = spark.read.schema(_DELETE_SCHEMA).options(**WHOLE_FILES)
    found = reader.parquet(*(spark_path(delete.path) for delete in deletes))
    position = F.coalesce("pos", F.raise_error(F.lit("a delete file has no column pos")).cast("bigint"))
    return found.select(
        position.alias("_ducklake_pos"),
        SNAPSHOT_COLUMN,
        found.metadataColumn(HIDDEN)["file_path"].alias("_ducklake_delete_file"),
    )  # fmt: skip


def positions_of(spark: SparkSession, storage: Storage, delete: DeleteFile) -> DataFrame:
    """The positions of one delete file as `_pos`, and the snapshot of each where the file says it."""
    if delete.format == "puffin":
        found = positions_in(delete.path, storage.read(delete.path))
        positions, snapshots = ([pair[place] for pair in found] for place in (0, 1))
        arrays = [pa.array(positions, pa.int64()), pa.array(snapshots, pa.int64())]
        return keys_dataframe(spark, ["_ducklake_pos", SNAPSHOT_COLUMN], arrays)
    return delete_file_rows(spark, [delete]).select("_ducklake_pos", SNAPSHOT_COLUMN)


def _key(file: DataFile, position: int) -> int:
    return _signed(file_number(file.path) << _POSITION_BITS | position)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
