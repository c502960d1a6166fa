"""Values out of Spark's Arrow as Python's own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dbt.adapters.ducklake.lake import ColumnType, value_text


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column. Dates and moments beyond Python's years, and infinite ones, are DuckDB's text."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        counted = column.cast(_counted(column.type)).to_pylist()
        return [_restored(value, column.type) for value in counted]


def _counted(kind: pa.DataType) -> pa.DataType:
    """The type with days and ticks in place of dates and moments."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _counted(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_counted(kind.key_type), _counted(kind.item_type))
    return pa.list_(_counted(kind.value_type)) if pa.types.is_list(kind) else kind


def _restored(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _restored(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(_restored(key, kind.key_type), _restored(held, kind.item_type)) for key, held in value]
    if pa.types.is_list(kind):
        return [_restored(element, kind.value_type) for element in value]
    if not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return value
    try:
        return pa.scalar(value, kind).as_py()
    except (OverflowError, ValueError):
        name = "date" if pa.types.is_date32(kind) else "timestamptz" if kind.tz else "timestamp"
        return value_text(ColumnType(name), value)
