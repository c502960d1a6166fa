"""What a Python model returns, as Spark's rows: DataFrames of Spark, pandas and Arrow, and what speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.spark.errors import FrameRefused
from dbt.adapters.ducklake.spark.footers import is_list
from dbt.adapters.ducklake.spark.schema import quoted

_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def as_rows(spark: SparkSession, returned: Any) -> DataFrame | None:
    """What a Python model returned as rows of Spark; None if it is no table. FrameRefused."""
    if hasattr(returned, "createOrReplaceTempView"):
        # Classic Spark and Connect have a class each.
        return returned  # type: ignore[no-any-return]
    if hasattr(returned, "to_spark"):
        return returned.to_spark()  # type: ignore[no-any-return]
    table = _arrow_table(returned)
    if table is None:
        return None
    if not table.num_columns:
        raise FrameRefused("it has no columns")
    return spark.createDataFrame(_for_spark(table))


def without_void(rows: DataFrame) -> DataFrame:
    """The rows of a new table: of columns that are NULL in all rows, a frame of pandas does not know the type."""
    return rows.select(
        *(
            F.col(quoted(field.name)).cast("string").alias(field.name)
            if isinstance(field.dataType, T.NullType)
            else F.col(quoted(field.name))
            for field in rows.schema
        )
    )


def _arrow_table(returned: Any) -> pa.Table | None:
    if isinstance(returned, pa.Table):
        return returned
    if type(returned).__module__.split(".")[0] == "pandas" and hasattr(returned, "columns"):
        return _of_pandas(returned)
    return pa.table(returned) if hasattr(returned, "__arrow_c_stream__") else None


def _of_pandas(frame: Any) -> pa.Table:
    """By Arrow, for which a missing value is NULL, whatever pandas has in its place."""
    columns = []
    for place, name in enumerate(frame.columns):
        try:
            columns.append(pa.Array.from_pandas(frame.iloc[:, place]))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise FrameRefused(f"its column {name} cannot be taken for one type: {error}") from error
    return pa.table([_whole(column) for column in columns], names=[str(name) for name in frame.columns])


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _for_spark(table: pa.Table) -> pa.Table:
    """The table with types that Spark has, which hold the same values."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        wanted = _type(column.type)
        try:
            columns.append(_as_text(column) if pa.types.is_time(column.type) else column.cast(wanted))
        except pa.ArrowException as error:
            raise FrameRefused(f"its column {name} is {column.type}, which Spark does not have: {error}") from error
    return pa.table(columns, names=table.column_names)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(column, pa.string())


def _type(kind: pa.DataType) -> pa.DataType:
    if kind in _UNSIGNED:
        return _UNSIGNED[kind]
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct(_fields(kind))
    if pa.types.is_map(kind):
        return pa.map_(_type(kind.key_type), _type(kind.item_type))
    if is_list(kind):
        return pa.list_(_type(kind.value_type))
    return kind


def _fields(kind: Iterable[pa.Field]) -> list[pa.Field]:
    return [pa.field(field.name, _type(field.type), field.nullable) for field in kind]
