"""What a condition says of a table's columns beside constants, and what is left to Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import Between, ColumnType, Compare, IsIn, Predicate, Table
from dbt.adapters.ducklake.lake.columns import Column, numbered_all
from dbt.adapters.ducklake.statements.conditions import Side, comparisons

_TYPES = {"n": "int32", "u": "uint64", "s": "varchar", "d": "date", "ts": "timestamp", "tz": "timestamptz",
          "ms": "timestamp_ms", "f": "float64", "b": "boolean"}  # fmt: skip
COLUMNS, _ = numbered_all([Column(name, ColumnType(kind)) for name, kind in _TYPES.items()])
ID = {column.name: column.id for column in COLUMNS}
NEW_YEAR = 20454
MICROS = NEW_YEAR * 86400 * 10**6


def said(condition: str | None, given: tuple[str, ...] = (), zone: str = "UTC") -> tuple[Predicate, ...]:
    side = Side(("lake", "main", "t"), [column.name for column in COLUMNS], "`t`")
    spark: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: zone))
    table: Any = SimpleNamespace(columns=COLUMNS, __class__=Table)
    return comparisons(spark, condition, side, table, Side(("o",), given, "`o`"))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n = 1", [Compare(ID["n"], "=", 1)]),
        ("t.N <=> -1", [Compare(ID["n"], "=", -1)]),
        ("`T`.`n` > 5L", [Compare(ID["n"], ">", 5)]),
        ("main.t.n > 5 and lake.main.t.n < 9", [Compare(ID["n"], ">", 5), Compare(ID["n"], "<", 9)]),
        ("5 > n and 3 <= n", [Compare(ID["n"], "<", 5), Compare(ID["n"], ">=", 3)]),
        ("(n < (2)\n)", [Compare(ID["n"], "<", 2)]),
        ("n in (1, 2, -3)", [IsIn(ID["n"], (1, 2, -3))]),
        ("u between 1 and 18446744073709551615", []),
        ("u between 1 and 9", [Between(ID["u"], 1, 9)]),
        ("s = 'a' and lower(s) = 'b' and n = 1", [Compare(ID["s"], "=", "a"), Compare(ID["n"], "=", 1)]),
        ("s > 'a'", [Compare(ID["s"], ">", "a")]),
        ("d >= '2026-01-01'", [Compare(ID["d"], ">=", NEW_YEAR)]),
        ("d >= date '2026-01-01'", [Compare(ID["d"], ">=", NEW_YEAR)]),
        ("d < '2026-01-01 10:00:00+00:00'", [Compare(ID["d"], "<", NEW_YEAR)]),
        ("ts >= '2026-01-01 00:00:00+00:00'", [Compare(ID["ts"], ">=", MICROS)]),
        ("ts < timestamp '2026-01-01T00:00:00.5'", [Compare(ID["ts"], "<", MICROS + 500_000)]),
        ("tz < timestamp_ntz '2026-01-01 00:00:01'", [Compare(ID["tz"], "<", MICROS + 10**6)]),
        ("tz = cast('2026-01-01' as timestamp)", [Compare(ID["tz"], "=", MICROS)]),
        ("tz > date '2026-01-01'", [Compare(ID["tz"], ">", MICROS)]),
    ],
)  # fmt: skip
def test_constants(condition: str, expected: list[Predicate]) -> None:
    assert said(condition) == tuple(expected)


@pytest.mark.parametrize(
    "condition",
    [
        None, "true", "not n = 1", "n = 1 or n = 2", "n <> 1", "n not in (1)", "n not between 1 and 2", "n is null",
        "n = 1.5", "n = '1'", "n = null", "n in (1, null)", "n in (select 1)", "n = 1e3", "n = n", "n + 1 = 2",
        "n between symmetric 3 and 1", "n = cast(300 as tinyint)", "f = 1", "b = true", "x = 1", "o.n = 1", "t.n.x = 1",
        "a.t.n = 1", "other.t.n = 1", "exists (select 1 where n = 1)", "s = r'a'", "s = 'a\\'b'", "s = 'a' 'b'",
        "s = cast('a' as char(9))",
        "s = 1", "d = '2026-1-1'", "d = '2026-02-30'", "d = timestamp '2026-01-01 00:00:00'", "d = current_date()",
        "d = date '2026-01-01' + interval 1 day", "date(ts) = '2026-01-01'", "ts = 'today'", "ms = '2026-01-01'",
        "ts > '2026-01-01 00:00:00+02:00'", "ts > '2026-01-01 25:00:00'", "ts > '2026-01-01 00:00:00 Europe/Berlin'",
        "n = ", "n = 1 and", "s = '${x}'", 's = "a"', "-'a' = s", "n > ?", "case when n = 1 then true end",
    ],
)  # fmt: skip
def test_what_is_not_certain_says_nothing(condition: str | None) -> None:
    assert said(condition) == ()


def test_moments_of_another_zone_say_nothing() -> None:
    assert said("ts > '2026-01-01' and d > '2026-01-01'", zone="Europe/Berlin") == (Compare(ID["d"], ">", NEW_YEAR),)


def test_names_of_two_sides_say_nothing() -> None:
    assert said("n = 1 and t.s = 'a'", given=("N",)) == (Compare(ID["s"], "=", "a"),)
