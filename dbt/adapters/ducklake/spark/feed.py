"""The change feed of a table as DataFrames: the rows that came, and those that went, each with its snapshot and row
id. Every file that has a part in it is read by itself, as each has its own first row id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnType,
    DataFile,
    DeletedRows,
    DeleteFile,
    EndedFile,
    InlinedRow,
    Table,
    TableChanges,
    fold,
)
from dbt.adapters.ducklake.spark.deleted import SNAPSHOT_COLUMN, positions_of
from dbt.adapters.ducklake.spark.local_rows import dataframe_of, keys_dataframe
from dbt.adapters.ducklake.spark.scan import POSITION, ROW_ID, ROW_SNAPSHOT, rows_of_file
from dbt.adapters.ducklake.spark.schema import is_readable, quoted
from dbt.adapters.ducklake.spark.storage import Storage

_LEADING = ("snapshot_id", "rowid")
# Their names, and one for each column of the table, until all are put together: a table may have columns called so.
_OWN = ("_ducklake_snapshot_id", "_ducklake_rowid")


class Feed:
    def __init__(self, spark: SparkSession, storage: Storage, table: Table, changes: TableChanges) -> None:
        self._spark, self._storage, self._table, self._changes = spark, storage, table, changes
        self._columns = [column for column in table.columns if is_readable(column)]

    def insertions(self) -> DataFrame:
        """`snapshot_id`, `rowid` and the table's columns of all rows that came."""
        return self._named(self._came(), _LEADING)

    def deletions(self) -> DataFrame:
        """The same of all rows that went."""
        return self._named(self._went(), _LEADING)

    def changes(self) -> DataFrame:
        """Both, with `change_type`: an update is a row that went and came with the same row id in one snapshot."""
        came, went = self._came(), self._went()
        both = came.select(*_OWN).intersect(went.select(*_OWN)).withColumn("_ducklake_is_update", F.lit(True))

        def told(rows: DataFrame, alone: str, of_update: str) -> DataFrame:
            joined = rows.join(F.broadcast(both), list(_OWN), "left")
            kind = F.when(F.col("_ducklake_is_update"), F.lit(of_update)).otherwise(F.lit(alone))
            return joined.select(*_OWN, kind.alias("_ducklake_change_type"), *self._places)

        both_kinds = told(came, "insert", "update_postimage").unionAll(told(went, "delete", "update_preimage"))
        return self._named(both_kinds, (*_LEADING, "change_type"))

    @property
    def _places(self) -> list[str]:
        return [f"_ducklake_{place}" for place in range(len(self._columns))]

    def _named(self, rows: DataFrame, leading: Sequence[str]) -> DataFrame:
        """The rows under the names that DuckDB gives them: of two equal ones the second has a number."""
        taken = {fold(name) for name in leading}
        names = [f"{column.name}_1" if fold(column.name) in taken else column.name for column in self._columns]
        return rows.toDF(*leading, *names)

    def _came(self) -> DataFrame:
        parts = []
        for inserted in self._changes.inserted:
            rows = self._rows(inserted.file)
            if inserted.by_row:
                within = F.col(ROW_SNAPSHOT).between(F.lit(self._changes.first), F.lit(self._changes.last))
                parts.append(self._shown(rows.where(within), F.col(ROW_SNAPSHOT)))
            else:
                parts.append(self._shown(rows, F.lit(inserted.file.begin)))
        return self._together(parts, [(row.begin, row) for row in self._changes.inlined_inserted])

    def _went(self) -> DataFrame:
        parts = [self._at(one.file, self._deleted_positions(one)) for one in self._changes.deleted]
        parts += [self._ended(one) for one in self._changes.ended]
        for file_id, pairs in self._changes.inlined_deletes.items():
            parts.append(self._at(self._changes.files[file_id], self._positions(pairs)))
        return self._together(parts, [(row.end or 0, row) for row in self._changes.inlined_ended])

    def _rows(self, file: DataFile) -> DataFrame:
        mapping = self._changes.mappings[file.mapping_id] if file.mapping_id is not None else None
        return rows_of_file(self._spark, self._storage, self._table, file, mapping)

    def _shown(self, rows: DataFrame, snapshot: Expression) -> DataFrame:
        values = [
            F.col(quoted(column.name)).alias(name) for column, name in zip(self._columns, self._places, strict=True)
        ]
        return rows.select(snapshot.cast("bigint").alias(_OWN[0]), F.col(ROW_ID).alias(_OWN[1]), *values)

    def _at(self, file: DataFile, positions: DataFrame) -> DataFrame:
        """The rows of a file at positions, each with the snapshot that comes with its position."""
        joined = self._rows(file).join(F.broadcast(positions), F.col(POSITION) == F.col("_ducklake_pos"))
        return self._shown(joined, F.col("_ducklake_snapshot"))

    def _ended(self, ended: EndedFile) -> DataFrame:
        rows = self._rows(ended.file)
        earlier = self._positions([(position, ended.snapshot) for position in ended.inlined_before])
        if ended.before is not None:
            known = self._positions_of(ended.before)
            before = F.col(SNAPSHOT_COLUMN).isNull() | (F.col(SNAPSHOT_COLUMN) <= F.lit(ended.snapshot))
            earlier = earlier.unionAll(
                known.where(before).select("_ducklake_pos", F.lit(ended.snapshot).cast("bigint"))
            )
        left = rows.join(F.broadcast(earlier), F.col(POSITION) == F.col("_ducklake_pos"), "left_anti")
        return self._shown(left, F.lit(ended.snapshot))

    def _deleted_positions(self, deleted: DeletedRows) -> DataFrame:
        """The positions that a delete file added, with their snapshots: those in the file, or the file's own."""
        added = self._positions_of(deleted.added)
        first, last = F.lit(self._changes.first), F.lit(self._changes.last)
        told = added.where(F.col(SNAPSHOT_COLUMN).between(first, last)).withColumnRenamed(
            SNAPSHOT_COLUMN, "_ducklake_snapshot"
        )
        if deleted.added.begin < self._changes.first:
            return told
        untold = added.where(F.col(SNAPSHOT_COLUMN).isNull())
        if deleted.before is not None:
            untold = untold.join(
                F.broadcast(self._positions_of(deleted.before).select("_ducklake_pos")), "_ducklake_pos", "left_anti"
            )
        own = F.lit(deleted.snapshot).cast("bigint").alias("_ducklake_snapshot")
        return told.select("_ducklake_pos", "_ducklake_snapshot").unionAll(untold.select("_ducklake_pos", own))

    def _positions_of(self, delete: DeleteFile) -> DataFrame:
        return positions_of(self._spark, self._storage, delete)

    def _positions(self, pairs: Sequence[tuple[int, int]]) -> DataFrame:
        positions = pa.array([position for position, _ in pairs], pa.int64())
        return keys_dataframe(
            self._spark,
            ["_ducklake_pos", "_ducklake_snapshot"],
            [positions, pa.array([snapshot for _, snapshot in pairs], pa.int64())],
        )

    def _together(self, parts: list[DataFrame], inlined: Sequence[tuple[int, InlinedRow]]) -> DataFrame:
        if inlined or not parts:
            places = [place for place, column in enumerate(self._table.columns) if column in self._columns]
            leading = [Column(name, ColumnType("int64")) for name in _OWN]
            named = [replace(column, name=name) for column, name in zip(self._columns, self._places, strict=True)]
            rows = [[snapshot, row.row_id, *(row.values[place] for place in places)] for snapshot, row in inlined]
            parts.append(dataframe_of(self._spark, [*leading, *named], rows))
        return reduce(DataFrame.unionAll, parts)
