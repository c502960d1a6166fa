from __future__ import annotations

import math
import random
import struct
from decimal import Decimal
from uuid import UUID

import duckdb
import pytest

from dbt.adapters.ducklake.lake import ColumnType, decimal
from dbt.adapters.ducklake.lake.calendar import Interval, TimeWithOffset, date_from_days, days_from_date
from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.values import bound_text, is_less, parse_bound, parse_value, value_text, widened

# (type, value, text): DuckDB's casts to VARCHAR and what the value is counted as.
SAME_BOTH_WAYS = [
    ("boolean", True, "true"),
    ("int8", -128, "-128"),
    ("uint64", 2**64 - 1, "18446744073709551615"),
    ("int128", -(2**127), str(-(2**127))),
    ("float64", 0.1, "0.1"),
    ("float64", 1e300, "1e+300"),
    ("float64", -0.0, "-0.0"),
    ("float64", math.inf, "inf"),
    ("float32", struct.unpack("f", struct.pack("f", 0.1))[0], "0.1"),
    ("date", 0, "1970-01-01"),
    ("date", -1, "1969-12-31"),
    ("date", 2**31 - 1, "infinity"),
    ("date", -(2**31 - 1), "-infinity"),
    ("date", days_from_date(-43, 3, 15), "0044-03-15 (BC)"),
    ("date", days_from_date(12345, 6, 7), "12345-06-07"),
    ("timestamp", 0, "1970-01-01 00:00:00"),
    ("timestamp", -1, "1969-12-31 23:59:59.999999"),
    ("timestamp", 1_500_000, "1970-01-01 00:00:01.5"),
    ("timestamp", 2**63 - 1, "infinity"),
    ("timestamp_s", 86_399, "1970-01-01 23:59:59"),
    ("timestamp_ms", 1_001, "1970-01-01 00:00:01.001"),
    ("timestamp_ns", 1_000_000_001, "1970-01-01 00:00:01.000000001"),
    ("timestamptz", 1_500_000, "1970-01-01 00:00:01.5+00"),
    ("time", 86_399_999_999, "23:59:59.999999"),
    ("time", 86_400_000_000, "24:00:00"),
    ("timetz", TimeWithOffset(3_600_000_000, -5400), "01:00:00-01:30"),
    ("uuid", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ("varchar", "it's", "it's"),
    ("blob", b"\x00a\xff'\\", "\\x00a\\xFF\\x27\\x5C"),
]


@pytest.mark.parametrize(("name", "value", "text"), SAME_BOTH_WAYS)
def test_values_have_duckdbs_text(name: str, value: object, text: str) -> None:
    assert value_text(ColumnType(name), value) == text
    assert parse_value(ColumnType(name), text) == value


def test_decimals_keep_their_scale_and_all_their_digits() -> None:
    assert value_text(decimal(9, 2), Decimal("-1")) == "-1.00"
    widest = "1234567890123456789012345678901234.5678"
    assert value_text(decimal(38, 4), parse_value(decimal(38, 4), widest)) == widest
    assert parse_value(decimal(38, 4), widest) == Decimal(widest)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 year 2 months 3 days 04:05:06.789", Interval(14, 3, 14_706_789_000)),
        ("1 year 2 mons -3 days -04:05:06.789", Interval(14, -3, -14_706_789_000)),
        ("-1 mons +2 days +00:00:00.5", Interval(-1, 2, 500_000)),
        ("00:00:00", Interval(0, 0, 0)),
        ("14 months 0 days 5 microseconds", Interval(14, 0, 5)),
    ],
)
def test_intervals_are_read_as_duckdb_and_postgres_spell_them(text: str, value: Interval) -> None:
    assert parse_value(ColumnType("interval"), text) == value
    assert parse_value(ColumnType("interval"), value_text(ColumnType("interval"), value)) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("int8", "128"), ("uint8", "-1"), ("int32", "x"), ("boolean", "yes"), ("date", "2023-02-30"),
        ("date", "2023-13-01"),
        ("date", "2023-01-01x"), ("timestamp", "2023-01-01 25:00:00"), ("timestamp", "2023-01-01 00:00:00.0000001"),
        ("time", "12:60:00"), ("uuid", "f79c"), ("blob", "\\xZZ"), ("blob", "é"), ("interval", "1 fortnight"),
        ("interval", ""), ("struct", "{}"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_value_is_an_error(name: str, text: str) -> None:
    with pytest.raises(UnreadableValue):
        parse_value(ColumnType(name), text)


@pytest.mark.parametrize("text", ["1.005", "1000.00", "NaN", "x"])
def test_a_decimal_that_does_not_fit_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableValue):
        parse_value(decimal(5, 2), text)


def test_bounds_of_booleans_and_blobs_are_spelled_apart() -> None:
    assert bound_text(ColumnType("boolean"), True) == "1"
    assert parse_bound(ColumnType("boolean"), "0") is False
    assert bound_text(ColumnType("blob"), b"\x00\xaa") == "00AA"
    assert parse_bound(ColumnType("blob"), "00AA") == b"\x00\xaa"


def test_timestamps_are_read_with_their_offset() -> None:
    assert parse_value(ColumnType("timestamptz"), "1970-01-01 02:00:00+02") == 0
    assert parse_value(ColumnType("timestamptz"), "1970-01-01T00:00:00Z") == 0


def test_days_and_dates_are_each_others_inverse() -> None:
    for days in [*range(-800_000, 800_000, 997), 2_000_000_000, -2_000_000_000]:
        assert days_from_date(*date_from_days(days)) == days


def test_random_values_are_spelled_as_duckdb_spells_them() -> None:
    chosen = random.Random(3)
    with duckdb.connect() as judge:
        for _ in range(500):
            micros = chosen.randint(-(2**61), 2**61)
            text = judge.execute("SELECT CAST(make_timestamp($1) AS VARCHAR)", [micros]).fetchall()[0][0]
            assert value_text(ColumnType("timestamp"), micros) == text
            assert parse_value(ColumnType("timestamp"), text) == micros
            number = struct.unpack("d", chosen.randbytes(8))[0]
            if not math.isnan(number):
                text = judge.execute("SELECT CAST($1::DOUBLE AS VARCHAR)", [number]).fetchall()[0][0]
                assert value_text(ColumnType("float64"), number) == text
            blob = chosen.randbytes(6)
            text = judge.execute("SELECT CAST($1::BLOB AS VARCHAR)", [blob]).fetchall()[0][0]
            assert value_text(ColumnType("blob"), blob) == text
            assert parse_value(ColumnType("blob"), text) == blob


def test_nan_is_greatest_and_equal_to_itself() -> None:
    nan = float("nan")
    assert is_less(math.inf, nan)
    assert not is_less(nan, math.inf)
    assert not is_less(nan, nan)


@pytest.mark.parametrize(
    ("old", "new", "value", "wider"),
    [
        ("boolean", "int32", True, 1),
        ("int32", "float64", 7, 7.0),
        ("date", "timestamp", 1, 86_400_000_000),
        ("date", "timestamp_s", 2**31 - 1, 2**63 - 1),
        ("timestamp_ms", "timestamp", 1_001, 1_001_000),
        ("timestamp", "timestamp_ns", -(2**63 - 1), -(2**63 - 1)),
        ("int64", "json", 5, "5"),
    ],
)
def test_values_widen_with_their_type(old: str, new: str, value: object, wider: object) -> None:
    assert widened(ColumnType(old), ColumnType(new), value) == wider


def test_an_integer_widens_to_a_decimal() -> None:
    assert widened(ColumnType("int32"), decimal(12, 2), 7) == Decimal("7.00")
