from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import (
    Between,
    Column,
    ColumnId,
    ColumnType,
    Compare,
    IsIn,
    IsNotNull,
    IsNull,
    Predicate,
)
from dbt.adapters.ducklake.lake.calendar import days_from_date
from dbt.adapters.ducklake.lake.partitioning import EPOCH_PARTS, bucket, calendar_part, partition_text, partition_value
from dbt.adapters.ducklake.lake.snapshot.pruning import FileFacts, FileStatistics, may_match
from dbt.adapters.ducklake.lake.types import decimal
from dbt.adapters.ducklake.lake.values import Value, bound_text, is_less, is_nan

ID = ColumnId(1)
NAN = float("nan")


def column(type_: ColumnType | str, since: int = 0) -> Column:
    return Column("c", ColumnType(type_) if isinstance(type_, str) else type_, id=ID, since=since)


def facts(of: Column, values: Sequence[Value], transform: str | None = None, begin: int = 5) -> FileFacts:
    """What a writer says of a file with these values; with a transform they are all of one partition."""
    present = [value for value in values if value is not None and not is_nan(value)]
    low, high = (bound_text(of.type, f(present)) if present else None for f in (min, max))
    statistics = FileStatistics(
        value_count=sum(value is not None for value in values),
        null_count=sum(value is None for value in values),
        minimum=low,
        maximum=high,
        contains_nan=any(map(is_nan, values)) if of.type.name.startswith("float") else None,
    )
    keys: list[tuple[ColumnId, str, str | None]] = []
    if transform:
        key = partition_value(transform, of.type, values[0])
        keys.append((ID, transform, partition_text(transform, of.type, key)))
    return FileFacts(begin, {ID: statistics}, keys)


def holds(predicate: Predicate, value: Value) -> bool:
    """The predicate as SQL means it, in DuckDB's order."""
    match predicate:
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case Between(_, low, high):
            return holds(Compare(ID, ">=", low), value) and holds(Compare(ID, "<=", high), value)
        case IsIn(_, values):
            return any(holds(Compare(ID, "=", one), value) for one in values)
        case Compare(_, operator, other):
            if value is None or other is None:
                return False
            less, greater = is_less(value, other), is_less(other, value)
            return {"=": not less and not greater, "<": less, ">": greater, "<=": not greater, ">=": not less}[operator]
    raise AssertionError(predicate)


def random_predicate(chosen: random.Random, values: Sequence[Value]) -> Predicate:
    def one() -> Value:
        return chosen.choice(values)

    operator: Any = chosen.choice(["=", "<", "<=", ">", ">="])
    predicates: list[Predicate] = [
        Compare(ID, operator, one()),
        Compare(ID, operator, one()),
        IsIn(ID, (one(), one())),
        Between(ID, one(), one()),
        IsNull(ID),
        IsNotNull(ID),
    ]
    return chosen.choice(predicates)


DAY = 86_400_000_000
VALUES: dict[str, tuple[ColumnType, Sequence[Value], Sequence[str]]] = {
    "int64": (ColumnType("int64"), [*range(-5, 15), 2**62], ["identity", "bucket(3)"]),
    "decimal": (decimal(9, 2), [Decimal(n) / 4 for n in range(-8, 40)], ["identity", "bucket(4)"]),
    "float64": (
        ColumnType("float64"),
        [-math.inf, -1.5, -0.0, 0.0, 2.5, 1e300, math.inf, NAN],
        ["identity", "bucket(2)"],
    ),
    "varchar": (ColumnType("varchar"), ["", "B", "a", "aa", "ab", "é", "z", "10", "9"], ["identity", "bucket(3)"]),
    "date": (
        ColumnType("date"),
        [days_from_date(2023, 12, 30) + n for n in range(0, 800, 13)],
        ["identity", "year", "month", "day", "epoch_year", "epoch_month", "epoch_day", "bucket(3)"],
    ),
    "timestamp": (
        ColumnType("timestamp"),
        [-DAY * 400 + n * 9_000_000_000 for n in range(0, 9000, 97)],
        ["identity", "year", "month", "day", "hour", *EPOCH_PARTS, "bucket(5)"],
    ),
    "boolean": (ColumnType("boolean"), [True, False], ["identity"]),
    "blob": (ColumnType("blob"), [b"", b"\x00", b"\xff", b"a"], ["identity"]),
}


@pytest.mark.parametrize("kind", VALUES)
def test_no_file_with_a_matching_row_is_pruned(kind: str) -> None:
    type_, pool, transforms = VALUES[kind]
    chosen, of, pruned = random.Random(kind), column(type_), 0
    for _ in range(4000):
        transform = chosen.choice([None, *transforms])
        values: list[Value] = chosen.sample(pool, min(len(pool), chosen.randint(1, 4)))
        if transform:
            key = partition_value(transform, type_, values[0])
            values = [v for v in pool if repr(partition_value(transform, type_, v)) == repr(key)][:4]
        elif chosen.random() < 0.3:
            values.append(None)
        predicates = [random_predicate(chosen, pool) for _ in range(chosen.randint(1, 2))]
        kept = may_match(predicates, {ID: of}, facts(of, values, transform))
        if any(all(holds(predicate, value) for predicate in predicates) for value in values):
            assert kept, (predicates, values, transform)
        pruned += not kept
    assert pruned > 400, "a pruning that keeps everything would pass as well"


def test_unknown_statistics_keep_the_file() -> None:
    of = column("int64")
    equals = [Compare(ID, "=", 5)]
    assert may_match(equals, {ID: of}, FileFacts(1, {}))
    assert may_match(equals, {ID: of}, FileFacts(1, {ID: FileStatistics(3, 0, None, None, None)}))
    assert may_match(equals, {ID: of}, FileFacts(1, {ID: FileStatistics(3, 0, "not a number", "?", None)}))
    assert may_match([Compare(ColumnId(99), "=", 5)], {ID: of}, facts(of, [1]))


def test_a_file_of_nulls_is_pruned_but_for_is_null() -> None:
    of = column("int64")
    nulls = facts(of, [None, None])
    assert not may_match([Compare(ID, "=", 5)], {ID: of}, nulls)
    assert not may_match([IsNotNull(ID)], {ID: of}, nulls)
    assert may_match([IsNull(ID)], {ID: of}, nulls)
    assert not may_match([IsNull(ID)], {ID: of}, facts(of, [1]))


@pytest.mark.parametrize("type_", ["timetz", "interval"])
def test_types_without_statistics_are_never_pruned(type_: str) -> None:
    # DuckDB writes 0 values and 0 NULLs for these, whatever the file holds.
    of = column(type_)
    empty = FileFacts(1, {ID: FileStatistics(0, 0, None, None, None)})
    assert may_match([IsNull(ID)], {ID: of}, empty)
    assert may_match([IsNotNull(ID)], {ID: of}, empty)
    assert may_match([Compare(ID, "=", None)], {ID: of}, empty)


def test_values_are_compared_by_type_and_not_as_text() -> None:
    of = column("int64")
    assert may_match([Compare(ID, "=", 10)], {ID: of}, facts(of, [9, 11]))
    assert not may_match([Compare(ID, "=", 100)], {ID: of}, facts(of, [9, 11]))


def test_a_possible_nan_counts_as_greatest() -> None:
    of = column("float64")
    maybe = FileFacts(1, {ID: FileStatistics(2, 0, "1.0", "2.0", None)})
    assert may_match([Compare(ID, ">", 5.0)], {ID: of}, maybe)
    assert not may_match([Compare(ID, "<", 0.5)], {ID: of}, maybe)
    assert not may_match([Compare(ID, ">", 5.0)], {ID: of}, facts(of, [1.0, 2.0]))


@pytest.mark.parametrize("type_", ["float64", "timestamptz"])
def test_bounds_from_before_a_change_of_type_do_not_prune(type_: str) -> None:
    value: Value = 100.0 if type_ == "float64" else 10**15
    text = "0.1" if type_ == "float64" else "1970-01-01 00:00:00"
    old = FileFacts(5, {ID: FileStatistics(1, 0, text, text, False)})
    assert may_match([Compare(ID, "=", value)], {ID: column(type_, since=6)}, old)
    assert not may_match([Compare(ID, "=", value)], {ID: column(type_, since=4)}, old)


def test_partition_keys_from_before_a_change_of_type_do_not_prune() -> None:
    keys = [(ID, "bucket(16)", "3")]
    assert may_match([Compare(ID, "=", 8)], {ID: column("int64", since=6)}, FileFacts(5, {}, keys))


def test_calendar_parts_of_instants_do_not_prune() -> None:
    of = column("timestamptz")
    new_year = FileFacts(5, {}, [(ID, "year", "2023")])
    assert may_match([Compare(ID, "=", days_from_date(2024, 1, 1) * DAY)], {ID: of}, new_year)


def test_infinities_have_no_year_and_are_not_null() -> None:
    of = column("date")
    endless = FileFacts(5, {}, [(ID, "year", None)])
    assert may_match([Compare(ID, ">", 0)], {ID: of}, endless)
    assert may_match([IsNotNull(ID)], {ID: of}, endless)
    assert partition_value("year", of.type, 2**31 - 1) is None
    assert may_match([Compare(ID, "<", 2**31 - 1)], {ID: of}, FileFacts(5, {}, [(ID, "year", "2020")]))
    assert not may_match([Compare(ID, ">=", 2**31 - 1)], {ID: of}, FileFacts(5, {}, [(ID, "year", "2020")]))


@pytest.mark.parametrize(("type_", "transform"), [("time", "hour"), ("interval", "year")])
def test_parts_of_other_types_do_not_prune(type_: str, transform: str) -> None:
    assert may_match([Compare(ID, "=", 5)], {ID: column(type_)}, FileFacts(5, {}, [(ID, transform, "1")]))


@pytest.mark.parametrize(
    ("type_", "value", "buckets"),
    [("int32", 34, 2017239379 % 16), ("varchar", "iceberg", 1210000089 % 16), ("boolean", True, 1392991556 % 16)],
)
def test_buckets_are_duckdbs(type_: str, value: Value, buckets: int) -> None:
    assert bucket(ColumnType(type_), value, 16) == buckets


def test_calendar_parts_are_plain() -> None:
    moment = days_from_date(2024, 2, 29) * DAY + 13 * 3_600_000_000
    parts = [calendar_part(part, ColumnType("timestamp"), moment) for part in ("year", "month", "day", "hour")]
    assert parts == [2024, 2, 29, 13]
