"""Values of the lake as Spark SQL that means the same in every session: whatever its time zone, its ANSI mode, and
however far in the past or the future a moment is."""

from __future__ import annotations

from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import INFINITE_TICKS, Column, Value, parse_value, value_text
from dbt.adapters.ducklake.spark.local_rows import MORE_DIGITS, TICKS, TOO_LONG
from dbt.adapters.ducklake.spark.schema import leaf_type, string_literal
from dbt.adapters.ducklake.spark.times import MICROS_PER_DAY


def literal_of_text(column: Column, text: str | None) -> str:
    """The SQL of a value of a plain column, from its DuckDB text as the metadata hold it; None is NULL.

    A value that Spark has no place for is an error of the rows that need it.
    """
    kind = leaf_type(column.name, column.type)
    if text is None:
        return f"CAST(NULL AS {kind.simpleString()})"
    if isinstance(kind, T.VariantType):
        return f"CAST({string_literal(text)} AS VARIANT)"
    value = parse_value(column.type, text)
    if isinstance(kind, T.DecimalType) and isinstance(value, int) and abs(value) >= TOO_LONG:
        said = f"Column {column.name} has the value {text}, which has {MORE_DIGITS}."
        return f"CAST(raise_error({string_literal(said)}) AS {kind.simpleString()})"
    return _sql(column, kind, value)


def _sql(column: Column, kind: T.DataType, value: Value) -> str:
    if isinstance(kind, T.DateType):
        return f"date_from_unix_date(CAST('{value}' AS INT))"
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        endless = abs(value) == INFINITE_TICKS
        micros = value if endless else value * 10**6 // TICKS[column.type.name]
        if isinstance(kind, T.TimestampType):
            return f"timestamp_micros(CAST('{micros}' AS BIGINT))"
        return _naive(micros)
    if isinstance(kind, T.BinaryType):
        return f"X'{bytes(value).hex()}'"
    text = value if isinstance(value, str) else value_text(column.type, value)
    return string_literal(text) if isinstance(kind, T.StringType) else f"CAST('{text}' AS {kind.simpleString()})"


def _naive(micros: int) -> str:
    days, rest = divmod(abs(micros), MICROS_PER_DAY)
    sign = "-" if micros < 0 else ""
    seconds = f"{sign}{rest // 10**6}.{rest % 10**6:06}"
    since = f"make_dt_interval({sign}{days}, 0, 0, CAST('{seconds}' AS DECIMAL(18,6)))"
    return f"(timestamp_ntz'1970-01-01 00:00:00' + {since})"
