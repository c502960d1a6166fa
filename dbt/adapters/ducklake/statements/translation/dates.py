"""Functions of dates and times. A timestamp with a zone is taken by the clock of the session that makes the view."""

from __future__ import annotations

from sqlglot import exp

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.casts import cast
from dbt.adapters.ducklake.statements.translation.expressions import Expressions, arguments, by_name, rule
from dbt.adapters.ducklake.statements.translation.texts import literal_text
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable

# Of each part of a date its function in DuckDB, and what has to be added.
_PARTS: dict[type[exp.Expr], tuple[str, int]] = {
    exp.Year: ("year", 0), exp.Month: ("month", 0), exp.Day: ("day", 0), exp.DayOfMonth: ("day", 0),
    exp.Quarter: ("quarter", 0), exp.DayOfYear: ("dayofyear", 0), exp.WeekOfYear: ("week", 0),
    exp.DayOfWeek: ("dayofweek", 1),
}  # fmt: skip
_OF_CLOCK: dict[type[exp.Expr], str] = {exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second"}
_NAMED = {"year": "year", "month": "month", "day": "day", "quarter": "quarter", "hour": "hour", "minute": "minute"}
UNITS = {"year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month",
          "mm": "month", "week": "week"}  # fmt: skip
UNITS_OF_TIME = UNITS | {"day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
                           "millisecond": "millisecond", "microsecond": "microsecond"}  # fmt: skip


def date_of(to: Expressions, node: exp.Expr | None) -> Typed:
    """A date, or a timestamp as one."""
    value = to.typed(node, *t.MOMENTS)
    return cast(value, t.DATE, to.zone, node)


def clock_of(to: Expressions, node: exp.Expr | None) -> Typed:
    """A timestamp as its clock shows it, or a date at midnight."""
    value = to.typed(node, *t.MOMENTS)
    return cast(value, t.NAIVE, to.zone, node)


@rule(exp.TsOrDsToDate, takes="this")
def _to_date(to: Expressions, node: exp.Expr) -> Typed:
    return cast(to.of(node.this), t.DATE, to.zone, node)


@rule(*_PARTS, takes="this")
def _part(to: Expressions, node: exp.Expr) -> Typed:
    function, more = _PARTS[type(node)]
    given = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
    found = f"{function}({date_of(to, given).sql})"
    return Typed(f"CAST({found} + {more} AS INTEGER)" if more else f"CAST({found} AS INTEGER)", t.INT)


@by_name("weekday")
def _weekday(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"CAST(isodow({date_of(to, node.expressions[0]).sql}) - 1 AS INTEGER)", t.INT)


@rule(*_OF_CLOCK, takes="this")
def _of_clock(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"CAST({_OF_CLOCK[type(node)]}({clock_of(to, node.this).sql}) AS INTEGER)", t.INT)


@rule(exp.Extract)
def _extract(to: Expressions, node: exp.Expr) -> Typed:
    return _named_part(to, str(node.name or node.this), node.expression, node)


@by_name("date_part")
def _date_part(to: Expressions, node: exp.Expr) -> Typed:
    part, value = arguments(node)
    return _named_part(to, literal_text(to, part), value, node)


def _named_part(to: Expressions, part: str, value: exp.Expr, node: exp.Expr) -> Typed:
    name = _NAMED.get(fold(part))
    if name is None:
        raise Untranslatable(node, f"{part} is another number in DuckDB")
    return Typed(f"CAST({name}({clock_of(to, value).sql}) AS INTEGER)", t.INT)


@rule(exp.TsOrDsAdd, takes="this expression unit")
def _date_add(to: Expressions, node: exp.Expr) -> Typed:
    if fold(str(node.args["unit"])) != "day":
        raise Untranslatable(node, "days are added to a date here")
    days = node.expression
    # How sqlglot reads date_sub.
    if isinstance(days, exp.Mul) and days.expression.sql() == "-1":
        count = f"-{to.typed(days.this, 'int8', 'int16', 'int32').sql}"
    else:
        count = to.typed(days, "int8", "int16", "int32").sql
    return Typed(f"({date_of(to, node.this).sql} + CAST({count} AS INTEGER))", t.DATE)


@rule(exp.AddMonths)
def _add_months(to: Expressions, node: exp.Expr) -> Typed:
    count = to.typed(node.expression, "int8", "int16", "int32").sql
    return Typed(f"CAST({date_of(to, node.this).sql} + to_months({count}) AS DATE)", t.DATE)


@rule(exp.LastDay, takes="this")
def _last_day(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"last_day({date_of(to, node.this).sql})", t.DATE)


@rule(exp.DateDiff)
def _date_diff(to: Expressions, node: exp.Expr) -> Typed:
    one, other = (part.this if isinstance(part, exp.TsOrDsToDate) else part for part in (node.this, node.expression))
    return Typed(f"CAST({date_of(to, one).sql} - {date_of(to, other).sql} AS INTEGER)", t.INT)


@rule(exp.DateTrunc, takes="this unit")
def _trunc(to: Expressions, node: exp.Expr) -> Typed:
    unit = UNITS.get(fold(literal_text(to, node.args["unit"])))
    if unit is None:
        raise Untranslatable(node, "Spark gives NULL for this unit")
    return Typed(f"CAST(date_trunc('{unit}', {date_of(to, node.this).sql}) AS DATE)", t.DATE)


@rule(exp.TimestampTrunc, takes="this unit")
def _date_trunc(to: Expressions, node: exp.Expr) -> Typed:
    unit = UNITS_OF_TIME.get(fold(str(node.args["unit"])))
    if unit is None:
        raise Untranslatable(node, "Spark gives NULL for this unit")
    return Typed(to.zone.moment_of(f"date_trunc('{unit}', {clock_of(to, node.this).sql})", node), t.TIMESTAMP)


@rule(exp.UnixDate, takes="this")
def _unix_date(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, "date").sql
    return Typed(f"CAST({value} - DATE '1970-01-01' AS INTEGER)", t.INT)


@rule(exp.DateFromUnixDate, takes="this")
def _date_from_unix_date(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, "int8", "int16", "int32").sql
    return Typed(f"(DATE '1970-01-01' + CAST({value} AS INTEGER))", t.DATE)


@rule(exp.UnixMicros, takes="this")
def _unix_micros(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"epoch_us({to.typed(node.this, 'timestamptz').sql})", t.BIGINT)


@rule(exp.CurrentDate, takes="")
def _current_date(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"CAST({to.zone.clock_of('now()')} AS DATE)", t.DATE)


@rule(exp.CurrentTimestamp, takes="")
def _current_timestamp(to: Expressions, node: exp.Expr) -> Typed:
    return Typed("now()", t.TIMESTAMP)


@by_name("now")
def _now(to: Expressions, node: exp.Expr) -> Typed:
    return Typed("now()", t.TIMESTAMP)
