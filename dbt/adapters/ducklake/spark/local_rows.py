"""Rows that the driver holds, as DataFrames: inlined rows, seeds, positions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import INFINITE_TICKS, Column, ColumnType, value_text, variant_parts
from dbt.adapters.ducklake.spark.schema import leaf_type, spark_type

_ARROW: dict[type[T.DataType], pa.DataType] = {
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
    T.VariantType: pa.struct(
        [
            pa.field("value", pa.binary(), False),
            # By this Spark knows it for a VARIANT.
            pa.field("metadata", pa.binary(), False, {b"variant": b"true"}),
        ]
    ),
}
_TEXT = Column("", ColumnType("varchar"))
TOO_LONG = 10**38
MORE_DIGITS = "more than the 38 digits of Spark's decimals"
# What Spark keeps as microseconds, by its own ticks in a second.
TICKS = {"timestamp_s": 1, "timestamp_ms": 10**3, "timestamp": 10**6, "timestamptz": 10**6, "timestamp_ns": 10**9}


def dataframe_of(spark: SparkSession, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Rows of lake values, in the order of the columns. One that Spark has not is an error of those who read it."""
    by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
    too_long = {place for place, values in enumerate(by_column) if _has_too_long(columns[place], values)}
    # Names may repeat but for their case, and Arrow does not care.
    names = [f"_ducklake_{place}" if too_long else column.name for place, column in enumerate(columns)]
    given = [_TEXT if place in too_long else column for place, column in enumerate(columns)]
    arrays = [
        pa.array([_spark_value(column, value) for value in values], arrow_type(column))
        for column, values in zip(given, by_column, strict=True)
    ]
    schema = T.StructType([T.StructField(name, spark_type(one)) for name, one in zip(names, given, strict=True)])
    found = spark.createDataFrame(pa.Table.from_arrays(arrays, names=names), schema)
    if not too_long:
        return found
    values = [
        _number(F.col(name), column) if place in too_long else F.col(name)
        for place, (name, column) in enumerate(zip(names, columns, strict=True))
    ]
    # Behind the coalescing: of rows that it holds itself, the planner would compute columns that nobody asks for.
    named = (value.alias(column.name) for value, column in zip(values, columns, strict=True))
    return found.coalesce(1).select(*named)


def with_moments(rows: DataFrame, places: Collection[int]) -> DataFrame:
    """The rows with the texts at these places as moments, in the session's time zone if a text has none."""
    placed = rows.toDF(*(f"_ducklake_{place}" for place in range(len(rows.columns))))
    given = map(F.col, placed.columns)
    values = (value.cast("timestamp") if place in places else value for place, value in enumerate(given))
    return placed.select(*(value.alias(name) for value, name in zip(values, rows.columns, strict=True)))


def _has_too_long(column: Column, values: Iterable[Any]) -> bool:
    is_wide = column.type.name in ("int128", "uint128")
    return is_wide and any(value is not None and abs(value) >= TOO_LONG for value in values)


def _number(text: Expression, column: Column) -> Expression:
    kind = spark_type(column)
    said = F.concat(F.lit(f"Column {column.name} has the value "), text, F.lit(f", which has {MORE_DIGITS}."))
    return F.coalesce(text.try_cast(kind), F.when(text.isNotNull(), F.raise_error(said).cast(kind)))


def keys_dataframe(spark: SparkSession, names: Sequence[str], columns: Sequence[pa.Array]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_arrays(list(columns), names=list(names)))


def arrow_type(column: Column) -> pa.DataType:
    if column.type.name == "struct":
        return pa.struct([pa.field(child.name, arrow_type(child)) for child in column.children])
    if column.type.name == "list":
        return pa.list_(arrow_type(column.children[0]))
    if column.type.name == "map":
        return pa.map_(*map(arrow_type, column.children))
    return leaf_arrow_type(column)


def leaf_arrow_type(column: Column) -> pa.DataType:
    kind = leaf_type(column.name, column.type)
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return _ARROW[type(kind)]


def _spark_value(column: Column, value: Any) -> Any:
    """A lake value as Arrow takes it for Spark's type of the column."""
    if value is None:
        return None
    if column.type.name == "struct":
        return {child.name: _spark_value(child, value[child.name]) for child in column.children}
    if column.type.name == "list":
        return [_spark_value(column.children[0], element) for element in value]
    if column.type.name == "map":
        key, held = column.children
        return [(_spark_value(key, name), _spark_value(held, content)) for name, content in value]
    if column.type.name == "variant":
        metadata, content = variant_parts(value)
        return {"value": content, "metadata": metadata}
    if isinstance(leaf_type(column.name, column.type), T.StringType):
        return value if isinstance(value, str) else str(value) if column is _TEXT else value_text(column.type, value)
    if column.type.name in TICKS and abs(value) != INFINITE_TICKS:
        return value * 10**6 // TICKS[column.type.name]
    return value
