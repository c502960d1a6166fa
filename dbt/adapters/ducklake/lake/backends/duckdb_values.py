"""What a DuckDB file holds for values: the types of inlined rows, and how these are read and written exactly."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from dbt.adapters.ducklake.lake.backends.base import Storage
from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.lake.types import TIMESTAMPS, ColumnType
from dbt.adapters.ducklake.lake.values import Value, parse_value, value_text
from dbt.adapters.ducklake.lake.variant import OF_NO_TYPE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_DUCKDB_TYPES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "int128": "HUGEINT",
    "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT", "uint128": "UHUGEINT",
    "float32": "FLOAT", "float64": "DOUBLE", "timestamptz": "TIMESTAMP WITH TIME ZONE", "timetz": "TIME WITH TIME ZONE",
    "null": '"NULL"',
}  # fmt: skip
# Read as text: Python's own types for these have no infinity, no year 10000 and no months.
_AS_TEXT = TIMESTAMPS | {"date", "time", "time_ns", "timetz", "timestamptz", "timestamptz_ns", "interval"}


def duckdb_type(column: Column) -> str:
    """The type of a column in DuckDB's SQL."""
    name = column.type.name
    if name == "struct":
        return "STRUCT(" + ", ".join(f"{quoted(child.name)} {duckdb_type(child)}" for child in column.children) + ")"
    if name == "list":
        return duckdb_type(column.children[0]) + "[]"
    if name == "map":
        return f"MAP({duckdb_type(column.children[0])}, {duckdb_type(column.children[1])})"
    return _DUCKDB_TYPES.get(name, column.type.text.upper())


class DuckDbStorage(Storage):
    physical_types: ClassVar = {
        "BIGINT": "BIGINT",
        "VARCHAR": "VARCHAR",
        "BOOLEAN": "BOOLEAN",
        "UUID": "UUID",
        "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
    }
    decode: ClassVar = {"TIMESTAMPTZ": lambda micros: EPOCH + timedelta(microseconds=micros)}

    def selected(self, logical_type: str, column: str) -> str:
        return f"epoch_us({column})" if logical_type == "TIMESTAMPTZ" else column

    def inlined_type(self, column: Column) -> str:
        return duckdb_type(column)

    def can_inline(self, column: Column) -> bool:
        return column.type.name != "geometry"

    def inlined_selected(self, column: Column, name: str) -> str:
        return _read(column, name, 0)

    def inlined_value(self, column: Column, stored: Any) -> Value:
        if stored is None:
            return None
        name = column.type.name
        if name == "list":
            return [self.inlined_value(column.children[0], element) for element in stored]
        if name == "map":
            key, held = column.children
            return [(self.inlined_value(key, e["key"]), self.inlined_value(held, e["value"])) for e in stored]
        if name == "struct":
            return {
                child.name: self.inlined_value(child, part)
                for child, part in zip(column.children, stored.values(), strict=True)
            }
        if name == "geometry":
            raise UnreadableValue(name, str(stored), f"An inlined row of column {column.name}")
        return parse_value(column.type, stored) if name in _AS_TEXT else stored

    def inlined_bound(self, column: Column, value: Value) -> object:
        if value is None or column.type.name in ("varchar", "json", "blob", "variant", "boolean"):
            return value
        if column.type.is_container:
            return json.dumps({"v": _texts(column, value)}, ensure_ascii=False)
        return value_text(column.type, value)

    def inlined_inserted(self, column: Column, placeholder: str) -> str:
        if not column.type.is_container:
            return _cast(column, placeholder)
        # DuckDB's cast of a nested value's text misreads brackets within strings; JSON it reads exactly.
        structure = json.dumps({"v": _structure(column)}).replace("'", "''")
        return _assembled(column, f"(from_json({placeholder}, '{structure}')).v", 0)


def _read(column: Column, expression: str, depth: int) -> str:
    """An expression of Python-readable parts: text where Python's types fall short, maps as lists of entries."""
    name, item = column.type.name, f"x{depth}"
    if name in _AS_TEXT:
        return f"CAST({expression} AS VARCHAR)"
    if name == "variant":
        held = f"CAST(variant_to_parquet_variant({expression}) AS STRUCT(metadata BLOB, value BLOB))"
        whole = f"TRY(({held}).metadata || ({held}).value)"
        # Intervals and some others Parquet's VARIANT does not have.
        no_type = value_text(ColumnType("blob"), OF_NO_TYPE)
        return f"CASE WHEN {expression} IS NOT NULL THEN coalesce({whole}, '{no_type}'::BLOB) END"
    if name == "list":
        return f"list_transform({expression}, lambda {item}: {_read(column.children[0], item, depth + 1)})"
    if name == "map":
        key, held = (_read(child, f"{item}.{child.name}", depth + 1) for child in column.children)
        entry = f"struct_pack(key := {key}, value := {held})"
        return f"list_transform(map_entries({expression}), lambda {item}: {entry})"
    if name == "struct":
        parts = (
            f"f{place} := {_read(child, f'({expression}).{quoted(child.name)}', depth)}"
            for place, child in enumerate(column.children)
        )
        return f"CASE WHEN {expression} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"
    return expression


def _texts(column: Column, value: Value) -> object:
    """A nested value with the texts of its leaves: structs by place of their fields, maps as lists of entries."""
    if value is None:
        return None
    name = column.type.name
    if name == "struct":
        return {f"f{place}": _texts(child, value[child.name]) for place, child in enumerate(column.children)}
    if name == "list":
        return [_texts(column.children[0], element) for element in value]
    if name == "map":
        key, held = column.children
        return [{"key": _texts(key, k), "value": _texts(held, v)} for k, v in value]
    return value_text(column.type, value)


def _structure(column: Column) -> object:
    """The shape of what `_texts` makes, as from_json wants it."""
    name = column.type.name
    if name == "struct":
        return {f"f{place}": _structure(child) for place, child in enumerate(column.children)}
    if name == "list":
        return [_structure(column.children[0])]
    if name == "map":
        return [{"key": _structure(column.children[0]), "value": _structure(column.children[1])}]
    return "VARCHAR"


def _assembled(column: Column, expression: str, depth: int) -> str:
    """An expression of the column's type over what from_json made of `_texts`."""
    name, item = column.type.name, f"x{depth}"
    if name == "list":
        return f"list_transform({expression}, lambda {item}: {_assembled(column.children[0], item, depth + 1)})"
    if name == "map":
        key, held = (_assembled(child, f"{item}.{child.name}", depth + 1) for child in column.children)
        entry = f"struct_pack(key := {key}, value := {held})"
        return f"map_from_entries(list_transform({expression}, lambda {item}: {entry}))"
    if name == "struct":
        parts = (
            f"{quoted(child.name)} := {_assembled(child, f'({expression}).f{place}', depth)}"
            for place, child in enumerate(column.children)
        )
        return f"CASE WHEN {expression} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"
    return _cast(column, expression)


def _cast(column: Column, expression: str) -> str:
    if column.type.name == "variant":
        return f"variant_bytes_to_variant(CAST({expression} AS BLOB))"
    return f"CAST({expression} AS {duckdb_type(column)})"
