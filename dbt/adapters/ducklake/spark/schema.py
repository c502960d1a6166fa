"""Lake types as Spark types and back. A type without a counterpart is refused by name."""

from __future__ import annotations

import re

from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import Column, ColumnType, decimal
from dbt.adapters.ducklake.spark.errors import UnsupportedType

FIELD_ID = "parquet.field.id"
# DuckLake's own columns in files, which are known by these ids.
SNAPSHOT_FIELD_ID, ROW_ID_FIELD_ID = 2147483539, 2147483540
# No column has this id, so that which has it in a schema to read by is NULL.
ABSENT_FIELD_ID = -1
ROW_ID_COLUMN, SNAPSHOT_COLUMN = "_ducklake_internal_row_id", "_ducklake_internal_snapshot_id"
# Columns of DuckLake's own, behind those of a table, with their ids.
ROW_IDS = ((ROW_ID_COLUMN, ROW_ID_FIELD_ID),)
VERSIONS = (*ROW_IDS, (SNAPSHOT_COLUMN, SNAPSHOT_FIELD_ID))

_SPARK: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "int8": T.ByteType(),
    "int16": T.ShortType(),
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "uint8": T.ShortType(),
    "uint16": T.IntegerType(),
    "uint32": T.LongType(),
    "uint64": T.DecimalType(20, 0),
    "int128": T.DecimalType(38, 0),
    "uint128": T.DecimalType(38, 0),
    "float32": T.FloatType(),
    "float64": T.DoubleType(),
    "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
    "timestamp_s": T.TimestampNTZType(),
    "timestamp_ms": T.TimestampNTZType(),
    "timestamp_ns": T.TimestampNTZType(),
    "timestamptz": T.TimestampType(),
    "blob": T.BinaryType(),
    "variant": T.VariantType(),
}
# Types that Spark has no type for, as their DuckDB text.
_TEXT = frozenset({"varchar", "json", "uuid", "time", "time_ns", "timetz", "interval"})
# No released Spark reads these from DuckDB's files.
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Names that a reader of types takes for something else where they stand without quotes.
_WORDS_OF_TYPES = frozenset({"NOT", "SELECT", "FROM", "NULL", "CASE", "CAST", "WITH", "COMMENT", "DEFAULT", "END"})
REFUSED = frozenset({"geometry", "timestamptz_ns", "null", "unknown"})

_LAKE: dict[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.ByteType: "int8",
    T.ShortType: "int16",
    T.IntegerType: "int32",
    T.LongType: "int64",
    T.FloatType: "float32",
    T.DoubleType: "float64",
    T.StringType: "varchar",
    T.CharType: "varchar",
    T.VarcharType: "varchar",
    T.BinaryType: "blob",
    T.DateType: "date",
    T.TimestampType: "timestamptz",
    T.TimestampNTZType: "timestamp",
}


def spark_type(column: Column) -> T.DataType:
    """The type that a query sees. Fields of structs carry their column ids, so that Parquet gets them."""
    kind = column.type
    if kind.name == "struct":
        return T.StructType([field_of(child) for child in column.children])
    if kind.name == "list":
        return T.ArrayType(spark_type(column.children[0]))
    if kind.name == "map":
        key, held = map(spark_type, column.children)
        return T.MapType(key, held)
    return leaf_type(column.name, kind)


def leaf_type(name: str, kind: ColumnType) -> T.DataType:
    if kind.name == "decimal":
        return T.DecimalType(kind.precision, kind.scale)
    if kind.name in _TEXT:
        return T.StringType()
    if kind.name not in _SPARK:
        raise UnsupportedType(name, kind.text, "Spark cannot read. Leave the column out, or cast it with DuckDB.")
    return _SPARK[kind.name]


def field_of(column: Column) -> T.StructField:
    return T.StructField(column.name, spark_type(column), metadata={FIELD_ID: int(column.id)} if column.id else None)


def is_readable(column: Column) -> bool:
    return not any(part.type.name in REFUSED for part in column.walk())


def columns_from(schema: T.StructType) -> tuple[Column, ...]:
    """The columns of a new table for rows of this schema."""
    return tuple(_column(field.name, field.dataType, field.name) for field in schema.fields)


def _column(name: str, kind: T.DataType, path: str) -> Column:
    if isinstance(kind, T.StructType):
        children = tuple(_column(field.name, field.dataType, f"{path}.{field.name}") for field in kind.fields)
        return Column(name, ColumnType("struct"), children)
    if isinstance(kind, T.ArrayType):
        return Column(name, ColumnType("list"), (_column("element", kind.elementType, f"{path}.element"),))
    if isinstance(kind, T.MapType):
        parts = _column("key", kind.keyType, f"{path}.key"), _column("value", kind.valueType, f"{path}.value")
        return Column(name, ColumnType("map"), parts)
    return Column(name, lake_type(kind, path))


def lake_type(kind: T.DataType, path: str) -> ColumnType:
    if isinstance(kind, T.DecimalType):
        return decimal(kind.precision, kind.scale)
    if isinstance(kind, T.NullType):
        raise UnsupportedType(
            path, "void", "no table can have: it is NULL in every row. Cast it: cast(null as string)."
        )
    if type(kind) not in _LAKE:
        raise UnsupportedType(
            path, kind.simpleString(), "this adapter does not write. Cast it to another, such as string."
        )
    return ColumnType(_LAKE[type(kind)])


def type_text(kind: T.DataType) -> str:
    """A type as Spark SQL reads it back: with quotes about fields that need them, which Spark itself leaves out."""
    if isinstance(kind, T.StructType):
        fields = (f"{_field_name(field.name)}:{type_text(field.dataType)}" for field in kind.fields)
        return f"struct<{','.join(fields)}>"
    if isinstance(kind, T.ArrayType):
        return f"array<{type_text(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"map<{type_text(kind.keyType)},{type_text(kind.valueType)}>"
    return str(kind.simpleString())


def _field_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name.upper() not in _WORDS_OF_TYPES else quoted(name)


def quoted(name: str) -> str:
    """A name as Spark SQL takes it whatever is in it."""
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def string_literal(text: str) -> str:
    """A string as Spark SQL takes it whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
