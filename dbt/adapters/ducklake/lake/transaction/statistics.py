"""Table statistics: what the lake counts, and how new rows widen it. Pure.

DuckDB folds filters and computes MIN, MAX and sort keys from these rows, so a bound that is too narrow changes
results. Where a column's statistics are not known, it must have no row at all: a row with NULL bounds means "no value
seen yet".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.names import ColumnId
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.transaction.changes import ColumnStatistics
from dbt.adapters.ducklake.lake.types import FLOATS
from dbt.adapters.ducklake.lake.values import Value, bound_text, has_bounds, is_less, parse_bound

_LOW, _HIGH = ("min_value", "min_is_exact"), ("max_value", "max_is_exact")


@dataclass(frozen=True, slots=True)
class Totals:
    """The rows of one table in the two statistics tables; `stats` None before its first insert."""

    stats: tables.TableStats | None
    columns: Mapping[ColumnId, tables.TableColumnStats]


def bounds_of(column: Column, statistics: ColumnStatistics) -> tuple[str | None, str | None]:
    """The texts of a file's bounds. NaN is no bound: `contains_nan` tells of it. A NUL character cannot be stored."""
    if not has_bounds(column.type):
        return None, None
    low, high = (_text(column, value) for value in (statistics.minimum, statistics.maximum))
    return low, high


def _text(column: Column, value: Value) -> str | None:
    if value is None:
        return None
    text = bound_text(column.type, value)
    return None if "\0" in text else text


def file_row(file_id: int, table_id: int, column: Column, statistics: ColumnStatistics) -> tables.FileColumnStats:
    low, high = bounds_of(column, statistics)
    return tables.FileColumnStats(
        data_file_id=file_id,
        table_id=table_id,
        column_id=column.id,
        column_size_bytes=statistics.size,
        value_count=statistics.value_count,
        null_count=statistics.null_count,
        min_value=low,
        max_value=high,
        contains_nan=statistics.contains_nan if column.type.name in FLOATS else None,
        extra_stats=statistics.extra,
        min_is_exact=None if low is None else statistics.min_is_exact,
        max_is_exact=None if high is None else statistics.max_is_exact,
    )


def widen(
    totals: Totals,
    table_id: int,
    leaves: Iterable[Column],
    rows: int,
    row_ids: int,
    size: int,
    parts: Iterable[Mapping[ColumnId, ColumnStatistics]],
) -> Totals:
    """Totals after `rows` rows that take `row_ids` new row ids; `parts` are the statistics of files or inlined rows."""
    before = totals.stats or tables.TableStats(table_id, 0, 0, 0)
    stats = tables.TableStats(
        table_id, _plus(before.record_count, rows), before.next_row_id + row_ids, _plus(before.file_size_bytes, size)
    )
    columns = {column.id: column for column in leaves}
    # DuckDB adds rows for columns only with the first insert; a column that came later stays without.
    is_first = totals.stats is None
    found: dict[ColumnId, tables.TableColumnStats | None] = dict(totals.columns)
    for part in parts:
        for column_id, column in columns.items():
            earlier = found.get(column_id)
            if column_id not in part:
                found[column_id] = None
            elif earlier is not None:
                found[column_id] = _merged(column, earlier, part[column_id])
            elif is_first and column_id not in found:
                found[column_id] = _first(table_id, column, part[column_id])
    return Totals(stats, {column_id: row for column_id, row in found.items() if row is not None})


def _plus(count: int | None, more: int) -> int | None:
    """What is unknown stays so."""
    return None if count is None else count + more


def _first(table_id: int, column: Column, statistics: ColumnStatistics) -> tables.TableColumnStats | None:
    low, high = bounds_of(column, statistics)
    row = tables.TableColumnStats(
        table_id=table_id,
        column_id=column.id,
        contains_null=statistics.null_count > 0,
        contains_nan=statistics.contains_nan if column.type.name in FLOATS else None,
        min_value=low,
        max_value=high,
        extra_stats=statistics.extra,
        min_is_exact=None if low is None else statistics.min_is_exact,
        max_is_exact=None if high is None else statistics.max_is_exact,
    )
    return None if _says_too_little(column, statistics, row) else row


def _merged(
    column: Column, earlier: tables.TableColumnStats, statistics: ColumnStatistics
) -> tables.TableColumnStats | None:
    new = _first(earlier.table_id, column, statistics)
    if new is None:
        return None
    merged = earlier._replace(
        contains_null=_either(earlier.contains_null, new.contains_null),
        contains_nan=_either(earlier.contains_nan, new.contains_nan),
    )
    if statistics.value_count == 0:
        return merged
    if earlier.min_value is None and earlier.max_value is None and earlier.extra_stats is None:
        # Either no value was seen yet, or a NaN was: then DuckDB does not look at the bounds.
        seen = {name: getattr(new, name) for name in (*_LOW, *_HIGH, "extra_stats")}
        return merged._replace(**seen)
    try:
        low = _outer(column, _LOW, earlier, new, take_less=True)
        high = _outer(column, _HIGH, earlier, new, take_less=False)
    except UnreadableValue:
        # Bounds from before a change of type that do not read as the new type.
        return None
    return merged._replace(**low, **high, extra_stats=_merged_extra(earlier, new))


def _says_too_little(column: Column, statistics: ColumnStatistics, row: tables.TableColumnStats) -> bool:
    """Whether the column has values that the row would deny."""
    if statistics.value_count == 0 or not has_bounds(column.type) or row.contains_nan:
        return False
    return row.min_value is None or row.max_value is None


def _merged_extra(earlier: tables.TableColumnStats, new: tables.TableColumnStats) -> str | None:
    return earlier.extra_stats if earlier.extra_stats == new.extra_stats else None


def _either(one: bool | None, other: bool | None) -> bool | None:
    return None if one is None or other is None else one or other


def _outer(
    column: Column,
    bound: tuple[str, str],
    earlier: tables.TableColumnStats,
    new: tables.TableColumnStats,
    take_less: bool,
) -> dict[str, Any]:
    """The bound of both, which is as exact as the one it is; of two equal ones both must be."""
    (old_text, old_exact), (new_text, new_exact) = ([getattr(row, name) for name in bound] for row in (earlier, new))
    if old_text is None or new_text is None:
        return dict.fromkeys(bound)
    old_value, new_value = parse_bound(column.type, old_text), parse_bound(column.type, new_text)
    is_above, is_below = is_less(old_value, new_value), is_less(new_value, old_value)
    if is_below if take_less else is_above:
        return dict(zip(bound, (new_text, new_exact), strict=True))
    is_exact = old_exact if is_above or is_below else old_exact and new_exact
    return dict(zip(bound, (old_text, is_exact), strict=True))


def statistics_of_values(
    column: Column, values: Iterable[Value], looks_for_nan: bool = False
) -> dict[ColumnId, ColumnStatistics]:
    """Statistics of the leaves of a column over inlined rows. DuckDB looks for NaN in them from 2.0 on; before, whether
    there is one is not known."""
    found: dict[ColumnId, ColumnStatistics] = {}
    _collect(column, list(values), found)
    if not looks_for_nan:
        return found
    return {
        id: replace(
            one,
            contains_nan=any(isinstance(bound, float) and math.isnan(bound) for bound in (one.minimum, one.maximum)),
        )
        for id, one in found.items()
    }


def _collect(column: Column, values: list[Value], found: dict[ColumnId, ColumnStatistics]) -> None:
    name = column.type.name
    present = [value for value in values if value is not None]
    if name == "struct":
        for child in column.children:
            _collect(child, [None if value is None else value[child.name] for value in values], found)
    elif name == "list":
        _collect(column.children[0], [element for value in present for element in value], found)
    elif name == "map":
        for place, child in enumerate(column.children):
            _collect(child, [entry[place] for value in present for entry in value], found)
    else:
        found[column.id] = _of_leaf(column, present, len(values) - len(present))


def _of_leaf(column: Column, present: list[Value], nulls: int) -> ColumnStatistics:
    statistics = ColumnStatistics(value_count=len(present), null_count=nulls)
    if present and has_bounds(column.type):
        low, high = min(present, key=_NanLast), max(present, key=_NanLast)
        statistics = replace(statistics, minimum=low, maximum=high)
    return statistics


class _NanLast:
    """A key under which min and max order values as DuckDB does."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __lt__(self, other: _NanLast) -> bool:
        return is_less(self.value, other.value)
