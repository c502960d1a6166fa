"""The hash of DuckLake's bucket partitions, as a Spark expression: MurmurHash3 x86 32 bit with seed 0.

Spark's own `hash` has another seed and treats the last bytes in another way. The hash is SQL text,
because Spark Connect refuses columns that are nested so deeply.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.spark.errors import UnsupportedType
from dbt.adapters.ducklake.spark.times import micros_of_naive

_MASK = 0xFFFFFFFF
_BYTES = 4
_AS_LONG = frozenset({"int8", "int16", "int32", "int64", "boolean"})


def bucket_of(value: Expression, column: Column, buckets: int) -> Expression:
    """The bucket of a value, NULL for NULL."""
    if _is_long(column):
        given, hashed = _as_long(value, column), _long_hash("v")
    else:
        given, hashed = _as_bytes(value, column), _bytes_hash()
    bucket = F.expr(f"v -> pmod({hashed} & {0x7FFFFFFF}L, {buckets})")
    return F.when(value.isNotNull(), F.element_at(F.call_function("transform", F.array(given), bucket), 1))


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


def _long_hash(value: str) -> str:
    low, high = f"({value} & {_MASK}L)", f"shiftrightunsigned({value}, 32)"
    return _finished(_block(_block("0L", low), high), "8L")


def _bytes_hash() -> str:
    """The hash of the bytes v, block by block over their hexadecimal digits: Spark has no function for the bytes."""
    length = "cast(octet_length(v) AS bigint)"
    whole = f"({length} div {_BYTES}L)"
    places = f"CASE WHEN {whole} > 0 THEN sequence(0L, {whole} - 1L) ELSE cast(array() AS array<bigint>) END"
    block = _block("hashed", _little_endian(f"place * {2 * _BYTES}L", _BYTES))
    hashed = f"aggregate({places}, 0L, (hashed, place) -> {block})"
    rests = " ".join(
        f"WHEN {size} THEN {_mixed(_little_endian(f'{whole} * {2 * _BYTES}L', size))}" for size in range(1, _BYTES)
    )
    last = f"CASE {length} % {_BYTES} {rests} ELSE 0L END"
    return _finished(f"({hashed} ^ {last})", length)


def _little_endian(start: str, size: int) -> str:
    """The number of `size` bytes from a place in the digits of v on, lowest byte first."""
    parts = (f"substr(hex(v), cast({start} + {1 + 2 * byte} AS int), 2)" for byte in reversed(range(size)))
    return f"cast(conv(concat({', '.join(parts)}), 16, 10) AS bigint)"


def _block(hashed: str, block: str) -> str:
    turned = _rotated(f"({hashed} ^ {_mixed(block)})", 13)
    return f"(({turned} * 5L + {0xE6546B64}L) & {_MASK}L)"


def _mixed(block: str) -> str:
    return _times(_rotated(_times(block, 0xCC9E2D51), 15), 0x1B873593)


def _finished(hashed: str, length: str) -> str:
    hashed = _shifted(f"({hashed} ^ {length})", 16)
    hashed = _shifted(_times(hashed, 0x85EBCA6B), 13)
    return _shifted(_times(hashed, 0xC2B2AE35), 16)


def _shifted(hashed: str, by: int) -> str:
    return _once(hashed, f"x ^ shiftrightunsigned(x, {by})")


def _times(value: str, factor: int) -> str:
    """The product's lower 32 bits; by halves, as the whole would not fit 63."""
    high = f"((shiftrightunsigned(x, 16) * {factor}L) & {0xFFFF}L)"
    return _once(value, f"(shiftleft({high}, 16) + (x & {0xFFFF}L) * {factor}L) & {_MASK}L")


def _rotated(value: str, by: int) -> str:
    return _once(value, f"(shiftleft(x, {by}) & {_MASK}L) | shiftrightunsigned(x, {32 - by})")


def _once(value: str, body: str) -> str:
    """The body over x with the value computed once. SQL has no `let`: written out, each step would double the whole
    before it, and planning would take minutes."""
    return f"element_at(transform(array({value}), x -> {body}), 1)"
