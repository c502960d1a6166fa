"""Values of a column: what each type is in Python, and its text form in the metadata.

A value is what its Parquet file holds, not the nearest Python type: a date is its days since 1970, a timestamp its
ticks, a time its ticks of the day. So every value DuckDB can store can be said, and all but intervals compare as
DuckDB orders them.

    boolean bool · integers int · float32, float64 float · decimal Decimal · varchar, json str · blob bytes · uuid UUID
    variant bytes (`lake/variant.py`; its text is that of a blob, but for defaults, which are a text within a VARIANT)
    date int (days) · time, time_ns, timestamp* int (ticks of the type's unit) · timetz TimeWithOffset · interval
    Interval struct dict by field name · list list · map list of (key, value) pairs
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias
from uuid import UUID

from dbt.adapters.ducklake.lake import calendar
from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.types import FLOATS, INTEGERS, SIGNED, TIMESTAMPS, ColumnType
from dbt.adapters.ducklake.lake.variant import variant_of_text

Value: TypeAlias = Any

_BYTE = re.compile(r"\\x([0-9A-Fa-f]{2})")
_NO_BOUNDS = frozenset(
    {"int128", "uint128", "timetz", "interval", "variant", "geometry", "struct", "list", "map", "null"} | {"unknown"}
)


def has_bounds(column_type: ColumnType) -> bool:
    """Whether DuckLake keeps a minimum and a maximum for columns of this type."""
    return column_type.name not in _NO_BOUNDS


def parse_value(column_type: ColumnType, text: str) -> Value:
    """The value of its DuckDB text (a default, an inlined value, a partition value)."""
    try:
        return _parse(column_type, text)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise UnreadableValue(column_type.text, text) from error


def parse_bound(column_type: ColumnType, text: str) -> Value:
    """The value of a statistic's text. The same as a value's but for blobs, which are plain hexadecimal there."""
    if column_type.name != "blob":
        return parse_value(column_type, text)
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise UnreadableValue("blob", text) from error


def value_text(column_type: ColumnType, value: Value) -> str:
    """The DuckDB text of a value that is not None."""
    name = column_type.name
    if name == "boolean":
        return "true" if value else "false"
    if name in FLOATS:
        return float_text(value, name)
    if name == "decimal":
        return f"{value:.{column_type.scale}f}"
    if name in ("blob", "variant"):
        return "".join(chr(b) if 32 <= b < 127 and b not in b"\\'\"" else f"\\x{b:02X}" for b in value)
    if name == "date":
        return calendar.date_text(value)
    if name in calendar.TICKS_PER_SECOND:
        return calendar.timestamp_text(value, name)
    if name in ("time", "time_ns"):
        return calendar.time_text(value, name)
    if name == "timetz":
        return calendar.timetz_text(value)
    if name == "interval":
        return calendar.interval_text(value)
    return str(value)


def bound_text(column_type: ColumnType, value: Value) -> str:
    """The text of a statistic."""
    if column_type.name == "boolean":
        return "1" if value else "0"
    if column_type.name == "blob":
        return bytes(value).hex().upper()
    return value_text(column_type, value)


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def is_less(left: Value, right: Value) -> bool:
    """DuckDB's and Spark's order: NaN is equal to itself and greater than every number."""
    if is_nan(left) or is_nan(right):
        return is_nan(right) and not is_nan(left)
    return bool(left < right)


def fits(integer_type: str, value: int) -> bool:
    bits = int(integer_type.removeprefix("u").removeprefix("int"))
    low, high = (-(1 << bits - 1), 1 << bits - 1) if integer_type in SIGNED else (0, 1 << bits)
    return low <= value < high


def float_text(value: float, type_name: str) -> str:
    """The shortest text that reads back as the same float, spelled as DuckDB does: `0.1`, `1e+300`, `inf`, `-0.0`."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    text = repr(value) if type_name == "float64" else _float32_text(value)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{exponent}" if mark else text


def _float32_text(value: float) -> str:
    single = _as_float32(value)
    for digits in range(1, 10):
        shortest = float(f"{single:.{digits}g}")
        if _as_float32(shortest) == single:
            return repr(shortest)
    return repr(single)


def _as_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _parse(column_type: ColumnType, text: str) -> Value:
    name = column_type.name
    # Of the last its text tells people what it is; nothing is made of it.
    if name in ("varchar", "json", "timestamptz_ns"):
        return text
    if name == "variant":
        return variant_of_text(text)
    if name == "boolean":
        return _parse_boolean(text)
    if name in INTEGERS:
        return _parse_integer(name, text)
    if name in FLOATS:
        # 0.1 of a float32 is not the 0.1 of a float64; comparing them would make bounds too narrow.
        return float(text) if name == "float64" else _as_float32(float(text))
    if name == "decimal":
        return _parse_decimal(column_type, text)
    if name == "date":
        return calendar.parse_date(text)
    if name in TIMESTAMPS or name == "timestamptz":
        return calendar.parse_timestamp(text, name)
    if name in ("time", "time_ns"):
        return calendar.parse_time(text, name)
    if name == "timetz":
        return calendar.parse_timetz(text)
    if name == "interval":
        return calendar.parse_interval(text)
    if name == "uuid":
        return UUID(text)
    if name == "blob":
        return parse_blob(text)
    raise ValueError(text)


def _parse_boolean(text: str) -> bool:
    found = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(text.lower())
    if found is None:
        raise ValueError(text)
    return found


def _parse_integer(name: str, text: str) -> int:
    value = int(text)
    if not fits(name, value):
        raise ValueError(text)
    return value


def _parse_decimal(column_type: ColumnType, text: str) -> Decimal:
    value = Decimal(text)
    digits = value.as_tuple()
    if not isinstance(digits.exponent, int) or -digits.exponent > column_type.scale:
        raise ValueError(text)
    # A decimal of 38 digits does not fit the precision of Python's usual context, which would round it.
    sign = "-" if digits.sign else ""
    shifted = int("".join(map(str, digits.digits))) * 10 ** (column_type.scale + digits.exponent)
    if shifted >= 10**column_type.precision:
        raise ValueError(text)
    return Decimal(f"{sign}{shifted}e-{column_type.scale}")


def parse_blob(text: str) -> bytes:
    parts = _BYTE.split(text)
    # split() puts the pairs of hexadecimal digits at the odd places.
    pieces = (bytes.fromhex(part) if index % 2 else part.encode("ascii") for index, part in enumerate(parts))
    if any("\\" in part for part in parts[::2]):
        raise ValueError(text)
    return b"".join(pieces)


def widened(old: ColumnType, new: ColumnType, value: Value) -> Value:
    """A value of one type as a value of a wider one, as DuckDB casts it; `types.can_widen` says which are wider."""
    if new.name == "json":
        return value_text(old, value)
    if new.name in FLOATS:
        return float(value) if new.name == "float64" else _as_float32(float(value))
    if new.name == "decimal":
        return _parse_decimal(new, str(value))
    if new.name in INTEGERS:
        return int(value)
    ticks = calendar.TICKS_PER_SECOND[new.name]
    if old.name == "date":
        return value * 86400 * ticks if abs(value) != calendar.INFINITE_DAYS else _endless(value)
    return value * ticks // calendar.TICKS_PER_SECOND[old.name] if abs(value) != calendar.INFINITE_TICKS else value


def _endless(value: int) -> int:
    return calendar.INFINITE_TICKS if value > 0 else -calendar.INFINITE_TICKS
