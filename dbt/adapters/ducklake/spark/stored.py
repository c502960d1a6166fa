"""What a Parquet file holds, and how that becomes the table's column.

DuckDB and Spark do not store all types the same way, and a file keeps the types it was written with when its table is
altered. A file's leaf is read by the type it is stored as and then converted, exactly or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import INFINITE_DAYS, INFINITE_TICKS, Column, ColumnId, ColumnType
from dbt.adapters.ducklake.spark.errors import UnsupportedType
from dbt.adapters.ducklake.spark.schema import ABSENT_FIELD_ID, FIELD_ID, leaf_type, spark_type
from dbt.adapters.ducklake.spark.times import MICROS_PER_DAY, divided, naive_from_micros, zoned_from_micros

# Of a VARIANT that a file holds in a way in which Spark reads none of it.
NOT_IN_VARIANT = ColumnType("unknown")
StoredTypes = Mapping[ColumnId, ColumnType]

# Types whose Parquet form differs between the writers of a lake: only a file's footer tells.
AMBIGUOUS = frozenset({"int128", "uint128", "uuid", "time", "time_ns", "timetz", "interval", "timestamp_ms", "variant"})
_AS_DIGITS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "decimal", "boolean"})
_MOMENTS = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"})
_TEXTS = frozenset({"varchar", "json"})
# What DuckDB has in a VARIANT, and Spark has not.
NOT_OF_VARIANT = frozenset({"time", "time_ns", "timetz", "timestamp_ns", "uuid", "interval"})


def read_type(column: Column, stored: StoredTypes) -> T.DataType:
    """The Spark type by which a file's column is read. Fields that the file lacks are asked for too, and are NULL."""
    kind = column.type
    if kind.name == "struct":
        return T.StructType([read_field(child, stored) for child in column.children])
    if kind.name == "list":
        return T.ArrayType(read_type(column.children[0], stored))
    if kind.name == "map":
        key, held = (read_type(child, stored) for child in column.children)
        return T.MapType(key, held)
    return _read_leaf(column, stored.get(column.id, kind))


def read_field(column: Column, stored: StoredTypes) -> T.StructField:
    if stored.get(column.id) == NOT_IN_VARIANT:
        return T.StructField(column.name, spark_type(column), metadata={FIELD_ID: ABSENT_FIELD_ID})
    return T.StructField(column.name, read_type(column, stored), metadata={FIELD_ID: int(column.id)})


def _read_leaf(column: Column, stored: ColumnType) -> T.DataType:
    if stored == NOT_IN_VARIANT:
        return T.VariantType()
    # Spark would multiply milliseconds into a long, and fail at DuckDB's infinities.
    if stored.name in ("time", "time_ns", "timetz", "timestamp_ns", "timestamp_ms"):
        return T.LongType()
    # As microseconds: a cast would go by the session's zone.
    if stored.name == "timestamp" and column.type.name == "timestamptz":
        return T.LongType()
    if stored.name in ("uuid", "interval"):
        return T.BinaryType()
    return leaf_type(column.name, stored)


def needs_conversion(column: Column, stored: StoredTypes) -> bool:
    types = ((stored.get(leaf.id, leaf.type), leaf) for leaf in column.leaves())
    return any(
        leaf.type.name == "variant" or _read_leaf(leaf, held) != leaf_type(leaf.name, leaf.type) for held, leaf in types
    )


def converted(read: Expression, column: Column, stored: StoredTypes) -> Expression:
    """The column's value of what was read by `read_type`."""
    if not needs_conversion(column, stored):
        return read
    kind = column.type
    if kind.name == "struct":
        fields = [converted(read[child.name], child, stored).alias(child.name) for child in column.children]
        return F.when(read.isNotNull(), F.struct(*fields))
    if kind.name == "list":
        return F.transform(read, lambda element: converted(element, column.children[0], stored))
    if kind.name == "map":
        key, held = column.children
        return F.map_from_entries(
            F.transform(
                F.map_entries(read),
                lambda entry: F.struct(
                    converted(entry["key"], key, stored).alias("key"),
                    converted(entry["value"], held, stored).alias("value"),
                ),
            )
        )
    return _converted_leaf(read, column, stored.get(column.id, kind))


def _converted_leaf(read: Expression, column: Column, stored: ColumnType) -> Expression:
    wanted = column.type
    if wanted.name in ("int128", "uint128"):
        return _whole_decimal(read) if stored.name in ("float32", "float64") else read.cast(T.DecimalType(38, 0))
    if wanted.name in ("uuid", "time", "time_ns", "timetz", "interval", "json"):
        return _as_text(read, column, stored)
    if wanted.name == "variant":
        return _as_variant(read, column, stored)
    if stored.name in _TEXTS:
        raise _no_way(column, stored)
    if wanted.name in _MOMENTS and (stored.name in _MOMENTS or stored.name == "date"):
        # DuckDB takes a time without a zone for one in UTC here, and the other way round.
        micros = _micros(read, column, stored)
        return zoned_from_micros(micros) if wanted.name == "timestamptz" else naive_from_micros(micros)
    return read.cast(spark_type(column))


def _as_variant(read: Expression, column: Column, stored: ColumnType) -> Expression:
    variant = spark_type(column)
    if stored.name == "variant":
        # DuckDB's files hold NULL as a VARIANT of null, which to Spark is a value.
        return F.when(~F.is_variant_null(read), read)
    if stored == NOT_IN_VARIANT or stored.name in NOT_OF_VARIANT:
        held = f"A file holds values of column {column.name} as UUID, TIME, INTERVAL or TIMESTAMP_NS"
        text = f"{held}, which Spark does not read in a VARIANT. Cast the column with DuckDB."
        return F.raise_error(F.lit(text)).cast(variant)
    # A column of another type became this one.
    if stored.name == "timestamp_ms":
        return naive_from_micros(_micros(read, column, stored)).cast(variant)
    return read.cast(variant)


def _micros(read: Expression, column: Column, stored: ColumnType) -> Expression:
    """The microseconds since 1970 of a date or a timestamp, which came as `_read_leaf` says; an infinity stays one."""
    if stored.name == "timestamp_ns":
        endless = F.abs(read) == F.lit(INFINITE_TICKS)
        return F.when(endless, read).otherwise(divided(read, 1000))
    if stored.name == "timestamp_ms":
        return _micros_of_ticks(read, INFINITE_TICKS, 1000, column)
    if stored.name == "date":
        return _micros_of_ticks(F.unix_date(read).cast("bigint"), INFINITE_DAYS, MICROS_PER_DAY, column)
    return F.unix_micros(read) if stored.name == "timestamptz" else read


def _as_text(read: Expression, column: Column, stored: ColumnType) -> Expression:
    if stored.name in ("uuid", "blob") and column.type.name == "uuid":
        return _uuid_text(read)
    if stored.name in ("time", "time_ns"):
        return _time_text(read, 1 if stored.name == "time" else 1000)
    if stored.name == "timetz":
        return F.concat(_time_text(read, 1), F.lit("+00"))
    if stored.name == "interval":
        return _interval_text(read)
    if stored.name in _TEXTS:
        return read
    if stored.name in _AS_DIGITS:
        # A plain cast would write small decimals with an exponent if ANSI mode is off.
        return read.try_cast("string")
    raise _no_way(column, stored)


def _no_way(column: Column, stored: ColumnType) -> UnsupportedType:
    return UnsupportedType(
        column.name, column.type.text, f"a file holds as {stored.text}; Spark has no exact way from one to the other."
    )


def _uuid_text(read: Expression) -> Expression:
    digits = F.lower(F.hex(read))
    parts = [F.substring(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return F.when(read.isNotNull(), F.concat_ws("-", *parts))


def _micros_of_ticks(ticks: Expression, endless: int, micros: int, column: Column) -> Expression:
    """Ticks of so many microseconds each as microseconds; `endless` is an infinity and stays one."""
    is_far = F.abs(ticks) > F.lit(INFINITE_TICKS // micros)
    text = F.concat(F.lit(f"Column {column.name} has a moment that Spark does not have. Its ticks since 1970: "),
                    ticks.cast("string"))  # fmt: skip
    return (
        F.when(ticks == F.lit(endless), F.lit(INFINITE_TICKS))
        .when(ticks == F.lit(-endless), F.lit(-INFINITE_TICKS))
        .when(is_far, F.raise_error(text).cast("bigint"))
        .otherwise(ticks * F.lit(micros))
    )


def _time_text(ticks: Expression, per_micro: int) -> Expression:
    per_second = per_micro * 10**6
    seconds, below = divided(ticks, per_second), F.pmod(ticks, F.lit(per_second))
    hours, minutes = divided(seconds, 3600), F.pmod(divided(seconds, 60), F.lit(60))
    digits = F.rtrim(F.lpad(below.cast("string"), len(str(per_second)) - 1, "0"), F.lit("0"))
    clock = F.format_string("%02d:%02d:%02d", hours, minutes, F.pmod(seconds, F.lit(60)))
    text = F.when(below == 0, clock).otherwise(F.concat(clock, F.lit("."), digits))
    return F.when(ticks.isNotNull(), text)


def _interval_text(read: Expression) -> Expression:
    """Parquet's twelve bytes: months, days and milliseconds, each with its lowest byte first."""
    digits = F.hex(read)
    months, days, millis = (_little_endian(digits, 1 + 8 * place) for place in range(3))
    texts = [months.cast("string"), F.lit(" months "), days.cast("string"), F.lit(" days ")]
    return F.concat(*texts, (millis * 1000).cast("string"), F.lit(" microseconds"))


def _little_endian(digits: Expression, start: int) -> Expression:
    turned = F.concat(*(F.substring(digits, start + offset, 2) for offset in (6, 4, 2, 0)))
    unsigned = F.conv(turned, 16, 10).cast("bigint")
    return F.when(unsigned >= 2**31, unsigned - 2**32).otherwise(unsigned)


def _whole_decimal(read: Expression) -> Expression:
    """The whole number that a double is, digit for digit. A cast would round to the shortest text of the double."""
    double = read.cast("double")
    high = F.floor(double / F.lit(2.0**64))
    rest = double - high.cast("double") * F.lit(2.0**64)
    middle = F.floor(rest / F.lit(2.0**32))
    low = rest - middle.cast("double") * F.lit(2.0**32)
    whole = (
        high.cast(T.DecimalType(19, 0)) * F.lit(Decimal(2**64))
        + middle.cast(T.DecimalType(10, 0)) * F.lit(Decimal(2**32))
        + low.cast(T.DecimalType(10, 0))
    )
    refusal = F.concat(double.cast("string"), F.lit(" has more than the 38 digits that Spark's decimals hold"))
    fits = F.abs(double) < F.lit(1e38)
    return F.when(fits, whole.cast(T.DecimalType(38, 0))).when(double.isNotNull(), F.raise_error(refusal))
