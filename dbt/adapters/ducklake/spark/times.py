"""Times with and without a zone, and the count of microseconds that each is. No cast: that would use the session's
zone."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql import types as T

MICROS_PER_DAY = 86400 * 10**6


def _epoch() -> Expression:
    return F.expr("timestamp'1970-01-01 00:00:00+00:00'")


def _naive_epoch() -> Expression:
    return F.expr("timestamp_ntz'1970-01-01 00:00:00'")


def naive_in_utc(zoned: Expression) -> Expression:
    """The UTC clock of a timestamp."""
    return _naive_epoch() + (zoned - _epoch())


def zoned_from_utc(naive: Expression) -> Expression:
    """The timestamp whose UTC clock this is."""
    return _epoch() + (naive - _naive_epoch())


def naive_from_micros(micros: Expression) -> Expression:
    days = divided(micros, MICROS_PER_DAY)
    seconds = (micros - days * F.lit(MICROS_PER_DAY)).cast(T.DecimalType(18, 0)) / F.lit(Decimal(10**6))
    since = F.make_dt_interval(days.cast("int"), F.lit(0), F.lit(0), seconds.cast(T.DecimalType(18, 6)))
    return _naive_epoch() + since


def micros_of_naive(naive: Expression) -> Expression:
    return F.unix_micros(zoned_from_utc(naive))


def divided(whole: Expression, by: int) -> Expression:
    """Whole division that goes down below zero too. `/` would go through a double."""
    return F.call_function("div", whole - F.pmod(whole, F.lit(by)), F.lit(by).cast("bigint"))
