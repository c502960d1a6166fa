"""Statistics of written files, of their footers: exact, or left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnId,
    ColumnStatistics,
    ColumnType,
    Value,
    has_bounds,
)
from dbt.adapters.ducklake.spark.footers import Footer, stored_type

# Longer bounds are cut, and the upper one raised, as DuckDB does.
LONGEST_BOUND = 256
_FLOATS = frozenset({"float32", "float64"})
_UNSURE = _FLOATS | {"uint8", "uint16", "uint32", "uint64", "json"}


def statistics_of(footer: Footer, columns: Sequence[Column]) -> dict[ColumnId, ColumnStatistics]:
    """Statistics of the leaves of a file that we wrote, whose leaves are the columns' in their order.

    A leaf of which the footer says too little is left out: a guess would make readers skip its rows.
    """
    leaves = [leaf for column in columns for leaf in column.leaves()]
    found = {}
    for place, leaf in enumerate(leaves):
        statistics = _of_leaf(footer, place, leaf)
        if statistics is not None:
            low, high = _is_whole(statistics.minimum), _is_whole(statistics.maximum)
            found[leaf.id] = replace(statistics, min_is_exact=low, max_is_exact=high)
    return found


def foreign_statistics(footer: Footer, leaves: Mapping[int, Column]) -> dict[ColumnId, ColumnStatistics]:
    """Statistics of leaves, by their places, of a file that others wrote, where its footer says values of the column.

    Of floats none, as NaN may be left out, nor where the file has another type, or one that footers have no sign for.
    Whether a text was cut is not known.
    """
    schema = footer.metadata.schema
    alike = {place: leaf for place, leaf in leaves.items() if stored_type(schema.column(place)) == leaf.type}
    found = {}
    for place, leaf in alike.items():
        statistics = None if leaf.type.name in _UNSURE else _of_leaf(footer, place, leaf)
        if statistics is not None:
            is_exact = not isinstance(statistics.minimum, str | bytes)
            found[leaf.id] = replace(statistics, min_is_exact=is_exact, max_is_exact=is_exact)
    return found


def _is_whole(bound: Value) -> bool:
    """Whether a bound of a file of ours was not cut, which leaves up to three bytes less than the longest."""
    if not isinstance(bound, str | bytes):
        return True
    return len(bound.encode() if isinstance(bound, str) else bound) < LONGEST_BOUND - 3


def nulls_in(footer: Footer, columns: Sequence[Column]) -> dict[ColumnId, int]:
    """How many NULLs each top-level column without children has, where the footer says."""
    found, place = {}, 0
    for column in columns:
        chunks = _chunks(footer, place)
        if not column.children and all(chunk.statistics is not None for chunk in chunks):
            found[column.id] = sum(chunk.statistics.null_count for chunk in chunks)
        place += len(list(column.leaves()))
    return found


def column_without_utf8(footer: Footer, leaves: Mapping[int, Column]) -> str | None:
    """The name of a column of text, by the places of its leaves, of which a bound is not UTF-8."""
    texts = {place: leaf for place, leaf in leaves.items() if leaf.type.name in ("varchar", "json")}
    for place, leaf in texts.items():
        if stored_type(footer.metadata.schema.column(place)).name == "varchar":
            known = [chunk.statistics for chunk in _chunks(footer, place) if chunk.statistics is not None]
            bounds = [raw for one in known if one.has_min_max for raw in (one.min_raw, one.max_raw)]
            if any(_text(raw) is None for raw in bounds):
                return leaf.name
    return None


def _chunks(footer: Footer, place: int) -> list[Any]:
    return [footer.metadata.row_group(group).column(place) for group in range(footer.metadata.num_row_groups)]


def _of_leaf(footer: Footer, place: int, leaf: Column) -> ColumnStatistics | None:
    chunks = _chunks(footer, place)
    if any(chunk.statistics is None or not chunk.statistics.has_null_count for chunk in chunks):
        return None
    nulls = sum(chunk.statistics.null_count for chunk in chunks)
    values = sum(chunk.num_values for chunk in chunks) - nulls
    size = sum(chunk.total_compressed_size for chunk in chunks)
    if not has_bounds(leaf.type):
        return ColumnStatistics(values, nulls, size=size)
    with_values = [chunk.statistics for chunk in chunks if chunk.num_values > chunk.statistics.null_count]
    if not all(statistics.has_min_max for statistics in with_values):
        return None
    stored = stored_type(footer.metadata.schema.column(place))
    bounds = [
        (_value(statistics.min_raw, stored, leaf.type), _value(statistics.max_raw, stored, leaf.type))
        for statistics in with_values
    ]
    return _with_bounds(leaf, values, nulls, size, bounds)


def _with_bounds(
    leaf: Column, values: int, nulls: int, size: int, bounds: list[tuple[Value, Value]]
) -> ColumnStatistics | None:
    if leaf.type.name not in _FLOATS:
        if any(low is None or high is None for low, high in bounds):
            return None
        low = min((low for low, _ in bounds), default=None)
        return ColumnStatistics(values, nulls, low, max((high for _, high in bounds), default=None), size=size)
    # Parquet's Java writer takes NaN for the greatest number, so it shows in the maximum.
    has_nan = any(math.isnan(low) or math.isnan(high) for low, high in bounds)
    if has_nan:
        return ColumnStatistics(values, nulls, contains_nan=True, size=size)
    low = min((low for low, _ in bounds), default=None)
    high = max((high for _, high in bounds), default=None)
    return ColumnStatistics(values, nulls, low, high, contains_nan=False, size=size)


def _value(raw: Any, stored: ColumnType, wanted: ColumnType) -> Value:
    """A raw statistic as a value of the column, None where the column is stored as something else than it is."""
    name = wanted.name
    if name == "decimal" and stored.name == "decimal":
        whole = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        # Not scaleb: Python's usual context would round 38 digits.
        return Decimal(f"{whole}e-{stored.scale}")
    if name in ("varchar", "json") and stored.name == "varchar":
        return _text(raw)
    if name == "blob" and stored.name == "blob":
        return bytes(raw)
    if name == "uint64" and stored.name == "decimal":
        return int.from_bytes(raw, "big", signed=True)
    if name in ("timestamp_s", "timestamp_ms", "timestamp_ns", "time", "uuid") or isinstance(raw, bytes):
        return None
    return raw


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
