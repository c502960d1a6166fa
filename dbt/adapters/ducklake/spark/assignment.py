"""A query's column as a value of a table's column: exactly, or the write fails and says which column and value.

Spark's settings decide neither: a cast that loses something fails with ANSI mode off too, at every depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import Column, Table, fold
from dbt.adapters.ducklake.spark.errors import WriteRefused
from dbt.adapters.ducklake.spark.schema import REFUSED, spark_type
from dbt.adapters.ducklake.spark.texts import is_json, is_utf8

_MOST = {"uint8": 2**8 - 1, "uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1, "uint128": 10**38 - 1}
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_TIME = r"^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?$"
# What Parquet files by Spark cannot hold in a way that DuckDB reads back.
_NEVER = REFUSED | {"variant", "interval", "timetz", "time_ns", "timestamp_s", "timestamp_ms"}
_CHECKED = frozenset({*_MOST, "uuid", "time", "json"})
_NESTED = (T.StructType, T.ArrayType, T.MapType)
_SAMPLE = 100


def assigned(
    value: Expression, given: T.DataType, column: Column, table: Table | str, has_valid_text: bool = False
) -> Expression:
    """A value of the type `given` as one of the column. With `has_valid_text` all text in it is known to be UTF-8."""
    refuse_types(column, table)
    wanted = spark_type(column)
    if isinstance(given, T.NullType):
        return value.cast(wanted)
    if not _has_room(wanted, given):
        raise _other_type(given, wanted, column, table)
    found = _Assignment(column, table).fitted(value, given, column, column.name)
    if not has_valid_text and (is_right := is_utf8(found, wanted)) is not None:
        found = _refusing(found, is_right, column, _not_utf8(found, column, table))
    if not column.children:
        return _checked(found, column, table)
    # A cast to fields with column ids: their names and types are the same, and the ids reach Parquet only so.
    return found.cast(wanted)


def stored(value: Expression, column: Column, table: Table | str) -> Expression:
    """A value that the column holds already, in a row that is written again for others."""
    refuse_types(column, table)
    return value.cast(spark_type(column)) if column.children else value


def refuse_types(column: Column, table: Table | str) -> None:
    for part in column.walk():
        refused = part.type.name in _NEVER or (part is not column and part.type.name in _CHECKED)
        if refused:
            found = f"column {column.name} holds the type {part.type.text}, which Spark cannot write for DuckDB to read"
            raise WriteRefused(str(table), found, "Change the column's type, or write with DuckDB.")


def _has_room(wanted: T.DataType, given: T.DataType) -> bool:
    """Whether the value is nested as the column is, and every field of it has its place in the column's type."""
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        by_name = {fold(field.name): field.dataType for field in wanted}
        kinds = [(by_name.get(fold(field.name)), field.dataType) for field in given]
        return all(kind is not None and _has_room(kind, own) for kind, own in kinds)
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _has_room(wanted.elementType, given.elementType)
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        return _has_room(wanted.keyType, given.keyType) and _has_room(wanted.valueType, given.valueType)
    return isinstance(given, T.NullType) or not (isinstance(given, _NESTED) or isinstance(wanted, _NESTED))


@dataclass(frozen=True)
class _Assignment:
    """The whole column, which errors name beside the part of it that a value does not fit."""

    column: Column
    table: Table | str

    def fitted(self, value: Expression, given: T.DataType, part: Column, path: str) -> Expression:
        """The value as one of a part of the column, which `path` names; a field that it lacks is NULL."""
        wanted = spark_type(part)
        if _same(given, wanted):
            return value
        if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
            return self._struct(value, given, part, path)
        if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
            element = part.children[0]
            return F.transform(value, lambda item: self.fitted(item, given.elementType, element, f"{path}.element"))
        if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
            return self._map(value, given, part, path)
        return self._leaf(value, given, part, wanted, path)

    def _struct(self, value: Expression, given: T.StructType, part: Column, path: str) -> Expression:
        own = {fold(field.name): field for field in given}
        fields = []
        for child in part.children:
            field = own.get(fold(child.name))
            if field is None:
                fields.append(F.lit(None).cast(spark_type(child)).alias(child.name))
            else:
                held = self.fitted(value.getField(field.name), field.dataType, child, f"{path}.{child.name}")
                fields.append(held.alias(child.name))
        return F.when(value.isNotNull(), F.struct(*fields))

    def _map(self, value: Expression, given: T.MapType, part: Column, path: str) -> Expression:
        key, held = part.children

        def fitted_key(name: Expression) -> Expression:
            return self.fitted(name, given.keyType, key, f"{path}.key")

        # By a setting of Spark's, of two keys that become one the last would win.
        distinct = F.size(F.array_distinct(F.transform(F.map_keys(value), fitted_key)))
        text = f"Column {self.column.name} of {self.table}: keys of {path} become one in its type, in the value "
        refused = _raised(text, value, given)
        single = F.when(value.isNull() | (distinct == F.size(value)), value).otherwise(refused)
        keyed = F.transform_keys(single, lambda name, _: fitted_key(name))
        return F.transform_values(
            keyed, lambda _, content: self.fitted(content, given.valueType, held, f"{path}.value")
        )

    def _leaf(self, value: Expression, given: T.DataType, part: Column, wanted: T.DataType, path: str) -> Expression:
        if isinstance(given, T.NullType):
            return value.cast(wanted)
        if isinstance(given, T.BinaryType) != isinstance(wanted, T.BinaryType):
            raise _other_type(given, wanted, self.column, self.table)
        tried = value.try_cast(wanted)
        is_lost = tried.isNull()
        if isinstance(wanted, T.IntegralType) and isinstance(given, T.FractionalType):
            # A cast would cut off what stands behind the point.
            is_lost = is_lost | (tried.cast(given) != value)
            if isinstance(wanted, T.LongType) and not isinstance(given, T.DecimalType):
                # The greatest long becomes this number where it is compared.
                is_lost = is_lost | (value >= F.lit(2.0**63))
        named = f"Column {path} of {self.table} has type {part.type}"
        lost = F.concat(F.lit(f"{named}, and the value "), value.cast("string"), F.lit(" does not fit it"))
        return F.when(value.isNotNull() & is_lost, F.raise_error(lost).cast(wanted)).otherwise(tried)


def _same(given: T.DataType, wanted: T.DataType) -> bool:
    """Whether two types are equal but for the case of names, NULLs being allowed, and column ids."""
    if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
        pairs = list(zip(given, wanted, strict=False))
        same = all(fold(a.name) == fold(b.name) and _same(a.dataType, b.dataType) for a, b in pairs)
        return same and len(given) == len(wanted)
    if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return _same(given.elementType, wanted.elementType)
    if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
        return _same(given.keyType, wanted.keyType) and _same(given.valueType, wanted.valueType)
    return given == wanted


def _other_type(given: T.DataType, wanted: T.DataType, column: Column, table: Table | str) -> WriteRefused:
    found = f"column {column.name} is {wanted.simpleString()} and the query gives {given.simpleString()}"
    return WriteRefused(str(table), found, "Cast it in the query, or rebuild the table.")


def _checked(value: Expression, column: Column, table: Table | str) -> Expression:
    """The value, if Spark's type takes more than the column's."""
    name = column.type.name
    if name not in _CHECKED:
        return value
    if name in _MOST:
        is_right = (value >= 0) & (value <= F.lit(Decimal(_MOST[name])).cast("decimal(38,0)"))
    elif name == "json":
        is_right = is_json(value)
    else:
        is_right = value.rlike(_UUID if name == "uuid" else _TIME)
    text = f"Column {column.name} of {table} has type {column.type}, and this is no such value: "
    return _refusing(value, value.isNull() | is_right, column, F.concat(F.lit(text), value.cast("string")))


def _not_utf8(value: Expression, column: Column, table: Table | str) -> Expression:
    text = f"Column {column.name} of {table} holds text that is not UTF-8, which DuckDB cannot read. Decode it in the "
    text += "query, or make it BINARY. Found: "
    sample = F.to_json(F.struct(value.alias("value"))) if column.children else F.hex(value)
    return F.concat(F.lit(text), F.substring(sample, 1, _SAMPLE))


def _refusing(value: Expression, is_right: Expression, column: Column, text: Expression) -> Expression:
    return F.when(is_right, value).otherwise(F.raise_error(text).cast(spark_type(column)))


def _raised(text: str, value: Expression, kind: T.DataType) -> Expression:
    return F.raise_error(F.concat(F.lit(text), value.cast("string"))).cast(kind)
