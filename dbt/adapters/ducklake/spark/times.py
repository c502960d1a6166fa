"""Timestamps with and without a zone, and the count of microseconds that each is: the same in every session.

Spark goes by the session's time zone when it casts between the two kinds of timestamp, takes a part of one with a zone,
or adds an interval to it or subtracts another from it. So nothing here does. Timestamps without a zone are counted in
UTC by Spark, whatever the session.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

MICROS_PER_DAY = 86400 * 10**6
_MICROS_PER_HOUR = 3600 * 10**6


def zoned_from_micros(micros: Expression) -> Expression:
    return F.timestamp_micros(micros)


def naive_from_micros(micros: Expression) -> Expression:
    # Towards zero, so that the days of the outermost microseconds do not overflow.
    days = F.call_function("div", micros, F.lit(MICROS_PER_DAY))
    seconds = (micros % F.lit(MICROS_PER_DAY)).cast(T.DecimalType(18, 0)) / F.lit(Decimal(10**6))
    since = F.make_dt_interval(days.cast("int"), F.lit(0), F.lit(0), seconds.cast(T.DecimalType(18, 6)))
    return F.expr("timestamp_ntz'1970-01-01 00:00:00'") + since


def micros_of_naive(naive: Expression) -> Expression:
    days = F.unix_date(naive.cast("date")).cast("bigint")
    # A decimal with six digits behind the point.
    seconds = F.extract(F.lit("SECOND"), naive)
    minutes = F.hour(naive) * F.lit(60) + F.minute(naive)
    clock = minutes.cast("bigint") * F.lit(60 * 10**6) + (seconds * F.lit(10**6)).cast("bigint")
    # The first day that a timestamp has begins before the first microsecond.
    is_first = days < F.lit(-(2**63) // MICROS_PER_DAY + 1)
    before = (days + 1) * F.lit(MICROS_PER_DAY) + (clock - F.lit(MICROS_PER_DAY))
    return F.when(is_first, before).otherwise(days * F.lit(MICROS_PER_DAY) + clock)


def date_in_utc(zoned: Expression) -> Expression:
    return F.date_from_unix_date(divided(F.unix_micros(zoned), MICROS_PER_DAY).cast("int"))


def hours_in_utc(zoned: Expression) -> Expression:
    """The hours since 1970."""
    return divided(F.unix_micros(zoned), _MICROS_PER_HOUR)


def hour_in_utc(zoned: Expression) -> Expression:
    return F.pmod(hours_in_utc(zoned), F.lit(24)).cast("int")


def divided(whole: Expression, by: int) -> Expression:
    """Whole division that rounds down below zero too, without an overflow at the outermost numbers."""
    is_cut = (whole % F.lit(by)) < 0
    return F.call_function("div", whole, F.lit(by).cast("bigint")) - F.when(is_cut, F.lit(1)).otherwise(F.lit(0))
