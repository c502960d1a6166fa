"""The hash of DuckLake's bucket partitions, as a Spark expression: MurmurHash3 x86 32 bit with seed 0.

Spark's own `hash` has another seed, and another way with the last bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.spark.errors import UnsupportedType
from dbt.adapters.ducklake.spark.times import micros_of_naive

_MASK = 0xFFFFFFFF
_AS_LONG = frozenset({"int8", "int16", "int32", "int64", "boolean"})


def bucket_of(value: Expression, column: Column, buckets: int) -> Expression:
    """The bucket of a value, NULL for NULL."""
    hashed = _long_hash(_as_long(value, column)) if _is_long(column) else _bytes_hash(_as_bytes(value, column))
    return F.when(value.isNotNull(), F.pmod(hashed.bitwiseAND(F.lit(0x7FFFFFFF)), F.lit(buckets)))


def _is_long(column: Column) -> bool:
    name = column.type.name
    is_short_decimal = name == "decimal" and column.type.precision <= 18
    return is_short_decimal or name in _AS_LONG or name in ("date", "timestamp", "timestamptz", "float32", "float64")


def _as_long(value: Expression, column: Column) -> Expression:
    name = column.type.name
    if name == "date":
        return F.unix_date(value).cast("bigint")
    if name == "timestamptz":
        return F.unix_micros(value)
    if name == "timestamp":
        return micros_of_naive(value)
    if name == "decimal":
        return (value.cast(f"decimal(38,{column.type.scale})") * F.lit(10**column.type.scale)).cast("bigint")
    if name in ("float32", "float64"):
        raise UnsupportedType(column.name, column.type.text, "cannot be bucketed by Spark. Choose another column.")
    return value.cast("bigint")


def _as_bytes(value: Expression, column: Column) -> Expression:
    name = column.type.name
    if name == "blob":
        return value
    if name == "decimal":
        # A plain cast would write small numbers with an exponent if ANSI mode is off.
        return F.encode(value.try_cast("string"), "UTF-8")
    if name in ("varchar", "json", "uint8", "uint16", "uint32", "uint64", "int128", "uint128"):
        return F.encode(value.cast("string"), "UTF-8")
    raise UnsupportedType(column.name, column.type.text, "cannot be bucketed by Spark. Choose another column.")


def _long_hash(value: Expression) -> Expression:
    low = value.bitwiseAND(F.lit(_MASK))
    high = F.shiftrightunsigned(value, 32)
    return _finished(_block(_block(F.lit(0).cast("bigint"), low), high), F.lit(8).cast("bigint"))


def _bytes_hash(value: Expression) -> Expression:
    """Block by block over the bytes' hexadecimal digits, as Spark has no function for the bytes themselves."""
    digits, length = F.hex(value), F.octet_length(value).cast("bigint")
    whole = F.call_function("div", length, F.lit(4).cast("bigint"))
    places = F.when(whole > 0, F.sequence(F.lit(0).cast("bigint"), whole - 1)).otherwise(
        F.array().cast("array<bigint>")
    )
    hashed = F.aggregate(
        places, F.lit(0).cast("bigint"), lambda hashed, place: _block(hashed, _little_endian(digits, place * 8, 4))
    )
    rest = F.pmod(length, F.lit(4))
    start = whole * 8
    last = F.when(rest == 0, F.lit(0).cast("bigint"))
    for size in (1, 2, 3):
        last = last.when(rest == size, _mixed(_little_endian(digits, start, size)))
    return _finished(hashed.bitwiseXOR(last), length)


def _little_endian(digits: Expression, start: Expression, size: int) -> Expression:
    """The number of `size` bytes from a place in the digits on, lowest byte first."""
    parts = (F.substr(digits, (start + 1 + 2 * byte).cast("int"), F.lit(2)) for byte in reversed(range(size)))
    return F.conv(F.concat(*parts), 16, 10).cast("bigint")


def _block(hashed: Expression, block: Expression) -> Expression:
    turned = _rotated(hashed.bitwiseXOR(_mixed(block)), 13)
    return (turned * 5 + F.lit(0xE6546B64)).bitwiseAND(F.lit(_MASK))


def _mixed(block: Expression) -> Expression:
    return _times(_rotated(_times(block, 0xCC9E2D51), 15), 0x1B873593)


def _finished(hashed: Expression, length: Expression) -> Expression:
    hashed = _shifted(hashed.bitwiseXOR(length), 16)
    hashed = _shifted(_times(hashed, 0x85EBCA6B), 13)
    return _shifted(_times(hashed, 0xC2B2AE35), 16)


def _shifted(hashed: Expression, by: int) -> Expression:
    return _once(hashed, lambda value: value.bitwiseXOR(F.shiftrightunsigned(value, by)))


def _times(value: Expression, factor: int) -> Expression:
    """The product's lower 32 bits; by halves, as the whole would not fit 63."""

    def product(value: Expression) -> Expression:
        high = (F.shiftrightunsigned(value, 16) * F.lit(factor)).bitwiseAND(F.lit(0xFFFF))
        return (F.shiftleft(high, 16) + value.bitwiseAND(F.lit(0xFFFF)) * F.lit(factor)).bitwiseAND(F.lit(_MASK))

    return _once(value, product)


def _rotated(value: Expression, by: int) -> Expression:
    def rotated(value: Expression) -> Expression:
        left = F.shiftleft(value, by).bitwiseAND(F.lit(_MASK))
        return left.bitwiseOR(F.shiftrightunsigned(value, 32 - by))

    return _once(value, rotated)


def _once(value: Expression, body: Callable[[Expression], Expression]) -> Expression:
    """The body with its value computed once. SQL has no `let`: written out, each step would double the whole before
    it, and planning would take minutes."""
    return F.element_at(F.transform(F.array(value), body), 1)
