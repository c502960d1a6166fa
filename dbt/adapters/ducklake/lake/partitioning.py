"""Partition transforms: which partition a value belongs to, exactly as DuckDB computes it."""

from __future__ import annotations

import re
import struct

from dbt.adapters.ducklake.lake import calendar
from dbt.adapters.ducklake.lake.types import SIGNED, ColumnType
from dbt.adapters.ducklake.lake.values import Value, value_text

_BUCKET = re.compile(r"bucket\(\s*([1-9]\d*)\s*\)")
CALENDAR_PARTS = ("year", "month", "day", "hour")
# Whole units since 1970, which DuckLake has from 1.1 on.
EPOCH_PARTS = tuple(f"epoch_{part}" for part in CALENDAR_PARTS)
_MASK = 0xFFFFFFFF


def bucket_count(transform: str) -> int | None:
    """N of `bucket(N)`, None for another transform."""
    match = _BUCKET.fullmatch(transform.lower())
    return int(match[1]) if match else None


def is_transform(transform: str) -> bool:
    return transform.lower() in ("identity", *CALENDAR_PARTS, *EPOCH_PARTS) or bucket_count(transform) is not None


def partition_value(transform: str, column_type: ColumnType, value: Value) -> Value:
    """The partition value of a column's value: itself, or a number. NULL stays NULL."""
    if value is None or transform == "identity":
        return value
    if buckets := bucket_count(transform):
        return bucket(column_type, value, buckets)
    if is_endless(column_type, value):
        return None
    return (epoch_part if transform in EPOCH_PARTS else calendar_part)(transform, column_type, value)


def partition_text(transform: str, column_type: ColumnType, value: Value) -> str | None:
    """What `ducklake_file_partition_value` holds for it."""
    if value is None:
        return None
    return value_text(column_type, value) if transform == "identity" else str(value)


def is_endless(column_type: ColumnType, value: int) -> bool:
    """Whether a date or timestamp is an infinity, which has no year."""
    most = calendar.INFINITE_DAYS if column_type.name == "date" else calendar.INFINITE_TICKS
    return abs(value) == most


def calendar_part(part: str, column_type: ColumnType, value: int) -> int:
    """A plain part of the calendar: the month is 1 to 12, not months since 1970."""
    days, seconds = _days_and_seconds(column_type, value)
    if part == "hour":
        return seconds // 3600
    return calendar.date_from_days(days)[("year", "month", "day").index(part)]


def epoch_part(part: str, column_type: ColumnType, value: int) -> int:
    """How many of the units have gone by since 1970, of a time with a zone in UTC; before 1970 it is below zero."""
    days, seconds = _days_and_seconds(column_type, value)
    year, month, _ = calendar.date_from_days(days)
    match part:
        case "epoch_year":
            return year - 1970
        case "epoch_month":
            return (year - 1970) * 12 + month - 1
        case "epoch_day":
            return days
    return days * 24 + seconds // 3600


def _days_and_seconds(column_type: ColumnType, value: int) -> tuple[int, int]:
    if column_type.name == "date":
        return value, 0
    return divmod(value // calendar.TICKS_PER_SECOND[column_type.name], 86400)


def bucket(column_type: ColumnType, value: Value, buckets: int) -> int:
    return (_murmur3(_hashed_bytes(column_type, value)) & 0x7FFFFFFF) % buckets


def _hashed_bytes(column_type: ColumnType, value: Value) -> bytes:
    name = column_type.name
    if name == "decimal" and column_type.precision <= 18:
        return struct.pack("<q", int(value.scaleb(column_type.scale)))
    if name in ("float32", "float64"):
        return struct.pack("<d", value + 0.0)  # -0.0 becomes 0.0
    if (name in SIGNED and name != "int128") or name in ("boolean", "date", "time", *calendar.TICKS_PER_SECOND):
        return struct.pack("<q", int(value))
    return bytes(value) if name == "blob" else value_text(column_type, value).encode()


def _murmur3(data: bytes) -> int:
    """MurmurHash3 x86 32 bit with seed 0."""
    hashed, whole = 0, len(data) // 4 * 4
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        hashed = (_rotated(hashed ^ _mixed(block), 13) * 5 + 0xE6546B64) & _MASK
    if rest := data[whole:]:
        hashed ^= _mixed(int.from_bytes(rest, "little"))
    hashed ^= len(data)
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _MASK
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _MASK
    return hashed ^ hashed >> 16


def _mixed(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & _MASK
