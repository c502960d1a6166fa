"""A query's column as a value of a table's column: exactly, or the write fails and says which column and value."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import Column, Table, fold
from dbt.adapters.ducklake.spark.errors import WriteRefused
from dbt.adapters.ducklake.spark.schema import spark_type

_MOST = {"uint8": 2**8 - 1, "uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1, "uint128": 10**38 - 1}
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_TIME = r"^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?$"
# What Parquet files by Spark cannot hold in a way that DuckDB reads back.
_NEVER = frozenset({"interval", "timetz", "time_ns", "timestamp_s", "timestamp_ms", "geometry", "variant", "unknown"})
_CHECKED = frozenset({*_MOST, "uuid", "time", "json"})


def assigned(value: Expression, given: T.DataType, column: Column, table: Table) -> Expression:
    refuse_types(column, table)
    wanted = spark_type(column)
    if column.children or isinstance(given, (T.ArrayType, T.MapType, T.StructType)):
        return _nested(value, given, wanted, column, table)
    if given != wanted:
        value = _cast(value, given, wanted, column, table)
    return _checked(value, column, table)


def refuse_types(column: Column, table: Table) -> None:
    for part in column.walk():
        refused = part.type.name in _NEVER or (part is not column and part.type.name in _CHECKED)
        if refused:
            found = f"column {column.name} holds the type {part.type.text}, which Spark cannot write for DuckDB to read"
            raise WriteRefused(str(table), found, "Change the column's type, or write with DuckDB.")


def _nested(value: Expression, given: T.DataType, wanted: T.DataType, column: Column, table: Table) -> Expression:
    if not isinstance(given, T.NullType):
        if not _has_room(wanted, given):
            raise _other_type(given, wanted, column, table)
        value = _arranged(value, given, wanted)
    # A cast to fields with column ids: their names and types may be the same, and the ids reach Parquet only so.
    return value.cast(wanted)


def _has_room(wanted: T.DataType, given: T.DataType) -> bool:
    """Whether every field of the value has its place in the column's type."""
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        by_name = {fold(field.name): field.dataType for field in wanted}
        kinds = [(by_name.get(fold(field.name)), field.dataType) for field in given]
        return all(kind is not None and _has_room(kind, own) for kind, own in kinds)
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _has_room(wanted.elementType, given.elementType)
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        return _has_room(wanted.keyType, given.keyType) and _has_room(wanted.valueType, given.valueType)
    nested = (T.StructType, T.ArrayType, T.MapType)
    return not isinstance(given, nested) and not isinstance(wanted, nested)


def _arranged(value: Expression, given: T.DataType, wanted: T.DataType) -> Expression:
    """The value with its fields in the order of the column's, as a cast goes by places; a field that it lacks is
    NULL."""
    if _names(given) == _names(wanted):
        return value
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        own = {fold(field.name): field for field in given}
        fields = [
            _arranged(value.getField(own[fold(field.name)].name), own[fold(field.name)].dataType, field.dataType)
            if fold(field.name) in own
            else F.lit(None).cast(field.dataType)
            for field in wanted
        ]
        named = [one.alias(field.name) for one, field in zip(fields, wanted, strict=True)]
        return F.when(value.isNotNull(), F.struct(*named))
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return F.transform(value, lambda item: _arranged(item, given.elementType, wanted.elementType))
    assert isinstance(given, T.MapType)
    assert isinstance(wanted, T.MapType)
    keyed = F.transform_keys(value, lambda key, _: _arranged(key, given.keyType, wanted.keyType))
    return F.transform_values(keyed, lambda _, held: _arranged(held, given.valueType, wanted.valueType))


def _names(kind: T.DataType) -> object:
    """All that a cast by places needs to be the same."""
    if isinstance(kind, T.StructType):
        return [(fold(field.name), _names(field.dataType)) for field in kind]
    if isinstance(kind, T.ArrayType):
        return [_names(kind.elementType)]
    return [_names(kind.keyType), _names(kind.valueType)] if isinstance(kind, T.MapType) else None


def _cast(value: Expression, given: T.DataType, wanted: T.DataType, column: Column, table: Table) -> Expression:
    if isinstance(given, T.NullType):
        return value.cast(wanted)
    if isinstance(given, T.BinaryType) != isinstance(wanted, T.BinaryType):
        raise _other_type(given, wanted, column, table)
    tried = value.try_cast(wanted)
    lost = F.raise_error(
        F.concat(F.lit(f"Column {column.name} of {table} has type {column.type}, and the value "), value.cast("string"),
                 F.lit(" does not fit it"))
    )  # fmt: skip
    is_lost = tried.isNull()
    if isinstance(wanted, T.IntegralType) and isinstance(given, T.FractionalType):
        # A cast would cut off what stands behind the point.
        is_lost = is_lost | (tried.cast(given) != value)
    return F.when(value.isNotNull() & is_lost, lost.cast(wanted)).otherwise(tried)


def _other_type(given: T.DataType, wanted: T.DataType, column: Column, table: Table) -> WriteRefused:
    found = f"column {column.name} is {wanted.simpleString()} and the query gives {given.simpleString()}"
    return WriteRefused(str(table), found, "Cast it in the query, or rebuild the table.")


def _checked(value: Expression, column: Column, table: Table) -> Expression:
    """The value, where Spark's type takes more than the column's."""
    name = column.type.name
    if name not in _CHECKED:
        return value
    if name in _MOST:
        is_right = (value >= 0) & (value <= F.lit(Decimal(_MOST[name])).cast("decimal(38,0)"))
    elif name == "json":
        is_right = F.try_parse_json(value).isNotNull()
    else:
        is_right = value.rlike(_UUID if name == "uuid" else _TIME)
    text = f"Column {column.name} of {table} has type {column.type}, and this is no such value: "
    refused = F.raise_error(F.concat(F.lit(text), value.cast("string"))).cast(spark_type(column))
    return F.when(value.isNull() | is_right, value).otherwise(refused)
