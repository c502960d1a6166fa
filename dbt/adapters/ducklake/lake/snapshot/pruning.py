"""Which data files can hold rows that satisfy simple predicates. Pure; in doubt a file is kept.

Bounds and values are compared as values of the column's type, in DuckDB's and Spark's order: NaN is equal to itself
and greater than every number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.names import ColumnId
from dbt.adapters.ducklake.lake.partitioning import CALENDAR_PARTS, EPOCH_PARTS, is_endless, partition_value
from dbt.adapters.ducklake.lake.types import FLOATS, TIMESTAMPS, ColumnType
from dbt.adapters.ducklake.lake.values import Value, has_bounds, is_less, is_nan, parse_bound, parse_value

_CALENDAR_TYPES = TIMESTAMPS | {"date"}
# A later value is of no earlier partition.
_ASCENDING = ("year", *EPOCH_PARTS)


@dataclass(frozen=True, slots=True)
class Compare:
    """`column <operator> value`; the value is one of the column's type, as `lake.values` describes."""

    column_id: ColumnId
    operator: Literal["=", "<", "<=", ">", ">="]
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    column_id: ColumnId
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    column_id: ColumnId


@dataclass(frozen=True, slots=True)
class IsNotNull:
    column_id: ColumnId


@dataclass(frozen=True, slots=True)
class Between:
    column_id: ColumnId
    low: Value
    high: Value


Predicate: TypeAlias = Compare | IsIn | IsNull | IsNotNull | Between


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """One column in one file. A count or bound that is None is unknown."""

    value_count: int | None
    null_count: int | None
    minimum: str | None
    maximum: str | None
    contains_nan: bool | None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What pruning looks at: statistics by column, and (column, transform, value) of each partition key."""

    begin: int
    statistics: Mapping[ColumnId, FileStatistics]
    partition: Sequence[tuple[ColumnId, str, str | None]] = ()


def may_match(predicates: Sequence[Predicate], columns: Mapping[ColumnId, Column], file: FileFacts) -> bool:
    """False only if no row of the file satisfies all predicates."""
    for predicate in predicates:
        column = columns.get(predicate.column_id)
        if column is None:
            continue
        if not _statistics_allow(predicate, column, file) or not _partition_allows(predicate, column, file):
            return False
    return True


def _statistics_allow(predicate: Predicate, column: Column, file: FileFacts) -> bool:
    found = file.statistics.get(column.id)
    if found is None:
        return True
    if isinstance(predicate, IsNull):
        # Of types without bounds DuckDB counts neither values nor NULLs, and NULLs of a VARIANT it takes for values.
        is_counted = (has_bounds(column.type) or bool(found.value_count)) and column.type.name != "variant"
        return found.null_count is None or found.null_count > 0 or not is_counted
    if isinstance(predicate, IsNotNull):
        return found.value_count is None or found.value_count > 0 or not has_bounds(column.type)
    if not has_bounds(column.type) or _bounds_may_mislead(column, file.begin):
        return True
    if found.value_count == 0 and found.null_count:
        return False
    low, high = _bound(column.type, found.minimum), _bound(column.type, found.maximum)
    if column.type.name in FLOATS and found.contains_nan is not False:
        high = None
    return _range_allows(predicate, low, high)


def _bounds_may_mislead(column: Column, begin: int) -> bool:
    """Whether the file's bounds are of a type from before an ALTER whose texts do not order as the new type's values.

    The 0.1 of a float32 reads back as another float64, and a timestamp becomes another instant in each time zone.
    """
    return column.since > begin and column.type.name in ("float64", "timestamptz", "json")


def _partition_allows(predicate: Predicate, column: Column, file: FileFacts) -> bool:
    keys = [(transform, text) for column_id, transform, text in file.partition if column_id == column.id]
    return all(_key_allows(predicate, column, transform.lower(), text, file.begin) for transform, text in keys)


def _key_allows(predicate: Predicate, column: Column, transform: str, text: str | None, begin: int) -> bool:
    if transform in CALENDAR_PARTS and (text is None or column.type.name not in _CALENDAR_TYPES):
        # An infinity has no year, so NULL is no sign of a NULL. In which year an instant falls depends on the time
        # zone of whoever wrote the file, and DuckDB also takes parts of times and intervals.
        return True
    if transform in EPOCH_PARTS and (text is None or column.type.name not in _CALENDAR_TYPES | {"timestamptz"}):
        return True
    if isinstance(predicate, IsNull):
        return text is None
    if text is None:
        return False
    if isinstance(predicate, IsNotNull) or column.since > begin:
        # An altered type hashes and spells its values otherwise.
        return True
    if transform == "identity":
        value = _value(column.type, text)
        return value is None or is_nan(value) or _range_allows(predicate, value, value)
    if transform in _ASCENDING:
        return _ascending_allows(predicate, column.type, transform, int(text))
    return _part_allows(predicate, column.type, transform, int(text))


def _ascending_allows(predicate: Predicate, column_type: ColumnType, transform: str, part: int) -> bool:
    def part_of(value: Value) -> Value:
        # Files of infinities are kept before it comes to this; beside finite years they lie outside all of them.
        if value is not None and is_endless(column_type, value):
            return math.copysign(math.inf, value)
        return partition_value(transform, column_type, value)

    if isinstance(predicate, Compare):
        # The part of a value says nothing of which side of it, within the part, a row lies on.
        operator = {"<": "<=", ">": ">="}.get(predicate.operator, predicate.operator)
        widened: Predicate = Compare(predicate.column_id, operator, part_of(predicate.value))  # type: ignore[arg-type]
    elif isinstance(predicate, Between):
        widened = Between(predicate.column_id, part_of(predicate.low), part_of(predicate.high))
    elif isinstance(predicate, IsIn):
        widened = IsIn(predicate.column_id, tuple(part_of(value) for value in predicate.values))
    else:
        return True
    return _range_allows(widened, part, part)


def _part_allows(predicate: Predicate, column_type: ColumnType, transform: str, part: int) -> bool:
    """Months, days, hours and buckets come round again: only equality says which one a row is in."""
    if isinstance(predicate, Compare) and predicate.operator == "=":
        values: tuple[Value, ...] = (predicate.value,)
    elif isinstance(predicate, IsIn):
        values = predicate.values
    else:
        return True
    return any(value is None or partition_value(transform, column_type, value) == part for value in values)


def _range_allows(predicate: Predicate, low: Value, high: Value) -> bool:
    """Whether a value between the bounds, None being no bound, can satisfy the predicate."""
    if isinstance(predicate, Compare):
        return _compare_allows(predicate.operator, predicate.value, low, high)
    if isinstance(predicate, IsIn):
        return any(_compare_allows("=", value, low, high) for value in predicate.values)
    if isinstance(predicate, Between):
        return _compare_allows(">=", predicate.low, low, high) and _compare_allows("<=", predicate.high, low, high)
    return True


def _compare_allows(operator: str, value: Value, low: Value, high: Value) -> bool:
    # A comparison with NULL holds for no row, but that is the query's to say, not a reason to skip a file here.
    if value is None:
        return True
    if high is not None and operator in ("=", ">=") and is_less(high, value):
        return False
    if high is not None and operator == ">" and not is_less(value, high):
        return False
    if low is not None and operator in ("=", "<=") and is_less(value, low):
        return False
    return not (low is not None and operator == "<" and not is_less(low, value))


def _bound(column_type: ColumnType, text: str | None) -> Value:
    try:
        return None if text is None else parse_bound(column_type, text)
    except UnreadableValue:
        return None


def _value(column_type: ColumnType, text: str) -> Value:
    try:
        return parse_value(column_type, text)
    except UnreadableValue:
        return None
