"""VARIANT as Parquet has it: the bytes of its metadata, which name fields of objects, and behind them its value."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.types import INTEGERS, ColumnType

# Version 1, names in order, and none of them.
_NO_NAMES = b"\x11\x00\x00"
# What the lowest two bits of a value's first byte say that it is.
_PRIMITIVE, _SHORT_TEXT, _OBJECT, _ARRAY = range(4)
_LONGEST_SHORT_TEXT, _MOST_IN_A_BYTE = 63, 255
_TRUE, _FALSE, _DOUBLE, _DATE, _INSTANT, _MOMENT, _FLOAT, _BYTES, _TEXT = 1, 2, 7, 11, 12, 13, 14, 15, 16
# By the number of their bytes.
_INTEGERS, _DECIMALS = {1: 3, 2: 4, 4: 5, 8: 6}, {4: 8, 8: 9, 16: 10}
# A primitive of a type that there is not: whoever looks at such a value is told so.
OF_NO_TYPE = _NO_NAMES + b"\xfc"


def variant_of_text(text: str) -> bytes:
    """A VARIANT that is a text."""
    return _NO_NAMES + _of_text(text.encode())


def variant_of(kind: ColumnType, value: Any) -> bytes:
    """What a value of a plain type is when its column becomes one of VARIANT."""
    name = kind.name
    if name == "boolean":
        return _primitive(_TRUE if value else _FALSE)
    if name in INTEGERS and -(1 << 63) <= value < 1 << 63:
        size = next(size for size in _INTEGERS if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1)
        return _primitive(_INTEGERS[size], value.to_bytes(size, "little", signed=True))
    if name == "decimal":
        return _of_decimal(kind, value)
    if name in ("float32", "float64"):
        is_single = name == "float32"
        return _primitive(_FLOAT if is_single else _DOUBLE, struct.pack("<f" if is_single else "<d", value))
    if name == "date":
        return _primitive(_DATE, value.to_bytes(4, "little", signed=True))
    if name in ("timestamp", "timestamptz"):
        return _primitive(_MOMENT if name == "timestamp" else _INSTANT, value.to_bytes(8, "little", signed=True))
    if name == "blob":
        return _primitive(_BYTES, len(value).to_bytes(4, "little") + value)
    return variant_of_text(value) if name == "varchar" else OF_NO_TYPE


def _primitive(kind: int, held: bytes = b"") -> bytes:
    return _NO_NAMES + bytes([kind << 2 | _PRIMITIVE]) + held


def _of_decimal(kind: ColumnType, value: Decimal) -> bytes:
    # Through text: the usual context has fewer digits.
    unscaled = int(f"{value:.{kind.scale}f}".replace(".", ""))
    size = 4 if kind.precision <= 9 else 8 if kind.precision <= 18 else 16
    return _primitive(_DECIMALS[size], bytes([kind.scale]) + unscaled.to_bytes(size, "little", signed=True))


def _of_text(held: bytes) -> bytes:
    if len(held) <= _LONGEST_SHORT_TEXT:
        return bytes([len(held) << 2 | _SHORT_TEXT]) + held
    return bytes([_TEXT << 2 | _PRIMITIVE]) + len(held).to_bytes(4, "little") + held


def variant_parts(variant: bytes) -> tuple[bytes, bytes]:
    """The metadata and the value, as Parquet wants them. UnreadableValue.

    DuckDB leaves the fields of objects in the order in which they came, and readers look for them in that of their
    names. DuckDB 1.5 says of a text of 64 bytes that it has none.
    """
    try:
        names, end = _names(variant)
        return variant[:end], _mended(names, variant[end:])
    except (IndexError, ValueError) as error:
        raise UnreadableValue("variant", variant.hex()) from error


def _names(variant: bytes) -> tuple[list[bytes], int]:
    """The names of fields, and where they end."""
    width = (variant[0] >> 6) + 1
    count = _number(variant, 1, width)
    starts = [_number(variant, 1 + width * (1 + place), width) for place in range(count + 1)]
    first = 1 + width * (count + 2)
    if first + starts[-1] >= len(variant):
        raise ValueError
    return [variant[first + start : first + end] for start, end in pairwise(starts)], first + starts[-1]


def _mended(names: Sequence[bytes], value: bytes) -> bytes:
    kind = value[0] & 3
    if kind == _SHORT_TEXT and value[0] == _SHORT_TEXT and len(value) > 1:
        return _of_text(value[1:])
    if kind not in (_OBJECT, _ARRAY):
        return value
    held = _held(value)
    mended = [_mended(names, child) for child in held.values]
    if kind == _ARRAY:
        return _container(_ARRAY, [], 0, mended)
    fields = sorted(zip(held.fields, mended, strict=True), key=lambda field: names[field[0]])
    return _container(_OBJECT, [field for field, _ in fields], held.width, [child for _, child in fields])


class _Held(NamedTuple):
    """What an object or an array holds, and by which numbers an object names it, each of so many bytes."""

    fields: list[int]
    width: int
    values: list[bytes]


def _held(value: bytes) -> _Held:
    is_object, said = value[0] & 3 == _OBJECT, value[0] >> 2
    width = (said & 3) + 1
    of_field = (said >> 2 & 3) + 1 if is_object else 0
    of_count = 4 if said >> (4 if is_object else 2) & 1 else 1
    count, at = _number(value, 1, of_count), 1 + of_count
    fields = [_number(value, at + place * of_field, of_field) for place in range(count)] if is_object else []
    at += count * of_field
    starts = [_number(value, at + place * width, width) for place in range(count + 1)]
    at += (count + 1) * width
    if at + starts[-1] > len(value):
        raise ValueError
    # The values of an object need not lie in the order of its fields.
    ends = dict(pairwise(sorted({*starts})))
    return _Held(fields, of_field, [value[at + start : at + ends[start]] for start in starts[:-1]])


def _container(kind: int, fields: Sequence[int], of_field: int, values: Sequence[bytes]) -> bytes:
    starts = [0]
    for value in values:
        starts.append(starts[-1] + len(value))
    width = max(1, (starts[-1].bit_length() + 7) // 8)
    is_large = len(values) > _MOST_IN_A_BYTE
    said = width - 1 | (of_field - 1 << 2 | is_large << 4 if kind == _OBJECT else is_large << 2)
    count = len(values).to_bytes(4 if is_large else 1, "little")
    numbers = [field.to_bytes(of_field, "little") for field in fields] + [at.to_bytes(width, "little") for at in starts]
    return b"".join([bytes([said << 2 | kind]), count, *numbers, *values])


def _number(held: bytes, at: int, width: int) -> int:
    if at + width > len(held):
        raise ValueError
    return int.from_bytes(held[at : at + width], "little")
