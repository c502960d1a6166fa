"""The keys that some rows have, as values of a table's columns: all of them where they are few, else their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import Column, Value
from dbt.adapters.ducklake.spark.pinned import total_size

# Up to so many keys, each is looked for in the statistics of each file.
_FEW = 1000
WHOLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


@dataclass(frozen=True)
class Keys:
    has_nulls: bool
    all_of_them: tuple[Value, ...] | None = None
    least: Value = None
    greatest: Value = None


def keys_of(rows: DataFrame, wanted: Sequence[tuple[Column, str]]) -> tuple[list[Keys | None], int]:
    """Return which keys the rows have for each pair (column of a table, column of the rows), and the rows' size.

    None for a pair whose two types do not compare as the lake's values do.
    """
    # By place: a source may have columns of one name, or with dots in them.
    names = rows.columns
    rows = rows.toDF(*(f"_ducklake_{place}" for place in range(len(names))))
    shown = {place: _value(rows, column, names.index(name)) for place, (column, name) in enumerate(wanted)}
    asked = {place: value for place, value in shown.items() if value is not None}
    bounds = [
        one
        for value in asked.values()
        for one in (F.min(value), F.max(value), F.count(F.lit(1)) - F.count(value), F.approx_count_distinct(value))
    ]
    size, *found = [column.to_pylist()[0] for column in rows.agg(total_size(rows), *bounds).toArrow().columns]
    answers: list[Keys | None] = [None] * len(wanted)
    for at, (place, value) in enumerate(asked.items()):
        least, greatest, nulls, distinct = found[at * 4 : at * 4 + 4]
        few = _distinct(rows, value) if distinct <= _FEW else None
        answers[place] = Keys(bool(nulls), few, least, greatest)
    return answers, size


def _distinct(rows: DataFrame, value: Expression) -> tuple[Value, ...] | None:
    found = rows.where(value.isNotNull()).select(value).distinct().limit(_FEW + 1).toArrow().column(0).to_pylist()
    return tuple(found) if len(found) <= _FEW else None


def _value(rows: DataFrame, column: Column, place: int) -> Expression | None:
    """The rows' column as the lake's value of the table's column."""
    given, value, kind = rows.schema[place].dataType, F.col(rows.columns[place]), column.type.name
    is_whole = isinstance(given, T.ByteType | T.ShortType | T.IntegerType | T.LongType)
    if kind in WHOLE and is_whole:
        return value.cast("bigint")
    if kind == "varchar" and given == T.StringType():
        return value
    if kind == "date" and isinstance(given, T.DateType):
        return F.unix_date(value)
    return None
