"""Arithmetic: Spark's types of results, and its errors where DuckDB has none."""

from __future__ import annotations

from sqlglot import exp

from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.casts import widened
from dbt.adapters.ducklake.statements.translation.expressions import (
    Expressions,
    arguments,
    by_name,
    number_literal,
    rule,
)
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable, error

_SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_BY_ZERO = "Division by zero."


@rule(exp.Add, exp.Sub, exp.Mul)
def _arithmetic(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.of(node.this), to.of(node.expression)
    sign = _SIGNS[type(node)]
    if not (t.is_number(one.type) and t.is_number(other.type)):
        return _shifted_day(one, other, sign, node)
    if (t.is_decimal(one.type) or t.is_decimal(other.type)) and t.is_exact(one.type) and t.is_exact(other.type):
        return _exact(one, other, sign, node)
    one, other = to.alike([one, other], node)
    return Typed(f"({one.sql} {sign} {other.sql})", one.type)


def _shifted_day(one: Typed, other: Typed, sign: str, node: exp.Expr) -> Typed:
    """A date plus or minus days."""
    if sign == "+" and other.kind == "date":
        one, other = other, one
    if one.kind == "date" and other.kind in ("int8", "int16", "int32") and sign != "*":
        return Typed(f"({one.sql} {sign} CAST({other.sql} AS INTEGER))", t.DATE)
    raise Untranslatable(node, f"{one.type.type} {sign} {other.type.type} is another thing in DuckDB")


def _digits(value: Typed, node: exp.Expr) -> tuple[int, int]:
    """Precision and scale, of a whole literal those that it has, as in Spark."""
    if value.number is not None and not value.is_literal:
        # A literal with a suffix, such as 5L, looks like a cast here.
        raise Untranslatable(node, "it is not known whether this number is a literal to Spark")
    if value.number is not None:
        return max(1, len(str(abs(value.number)))), 0
    return t.digits(value.type)


def _exact(one: Typed, other: Typed, sign: str, node: exp.Expr) -> Typed:
    """With decimals: by 38 digits in DuckDB, as long as Spark does not round either."""
    (precision, scale), (more, further) = _digits(one, node), _digits(other, node)
    if sign == "*":
        wanted = t.decimal_of(precision + more + 1, scale + further)
        behind = scale
    else:
        behind = max(scale, further)
        wanted = t.decimal_of(max(precision - scale, more - further) + behind + 1, behind)
    if wanted is None:
        raise Untranslatable(node, "the result has more than 38 digits, which Spark rounds")
    first = f"CAST({one.sql} AS DECIMAL(38,{behind}))"
    second = other.sql if sign == "*" else f"CAST({other.sql} AS DECIMAL(38,{behind}))"
    if sign == "*":
        second = f"CAST({other.sql} AS DECIMAL({more},{further}))"
    return Typed(f"CAST({first} {sign} {second} AS {t.duckdb_type(wanted)})", wanted)


@rule(exp.Div, takes="this expression typed")
def _division(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.of(node.this), to.of(node.expression)
    if not (t.is_number(one.type) and t.is_number(other.type)):
        raise Untranslatable(node, f"Spark would cast {one.type.type} or {other.type.type} here")
    is_double = "float64" in (one.kind, other.kind) or "float32" in (one.kind, other.kind)
    if not is_double and (t.is_decimal(one.type) or t.is_decimal(other.type)):
        raise Untranslatable(node, "Spark divides decimals as decimals, DuckDB as doubles")
    one, other = (widened(value, t.DOUBLE, to.zone, node) for value in (one, other))
    return Typed(_unless_zero(one, other, f"{one.sql} / {other.sql}"), t.DOUBLE)


@rule(exp.SafeDivide)
def _try_divide(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.whole(node.this), to.whole(node.expression)
    one, other = (widened(value, t.DOUBLE, to.zone, node) for value in (one, other))
    return Typed(f"CASE WHEN {other.sql} <> 0 THEN {one.sql} / {other.sql} END", t.DOUBLE)


@rule(exp.Mod)
def _modulo(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.alike([to.whole(node.this), to.whole(node.expression)], node)
    return Typed(_unless_zero(one, other, f"{one.sql} % {other.sql}"), one.type)


@by_name("pmod")
def _pmod(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.alike([to.whole(value) for value in arguments(node)], node)
    rest = f"({one.sql} % {other.sql})"
    positive = f"CASE WHEN {rest} < 0 THEN ({rest} + {other.sql}) % {other.sql} ELSE {rest} END"
    return Typed(_unless_zero(one, other, positive), one.type)


@rule(exp.IntDiv)
def _whole_division(to: Expressions, node: exp.Expr) -> Typed:
    one, other = (widened(to.whole(value), t.BIGINT, to.zone, node) for value in (node.this, node.expression))
    return Typed(_unless_zero(one, other, f"{one.sql} // {other.sql}"), t.BIGINT)


def _unless_zero(dividend: Typed, divisor: Typed, sql: str) -> str:
    """Spark's error, if there is something to divide."""
    if divisor.number:
        return f"({sql})"
    return f"CASE WHEN {divisor.sql} = 0 AND {dividend.sql} IS NOT NULL THEN {error(_BY_ZERO)} ELSE {sql} END"


@by_name("nullifzero")
def _nullifzero(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.expressions[0], *t.WHOLE, "float64", "decimal")
    return Typed(f"CASE WHEN {value.sql} = 0 THEN NULL ELSE {value.sql} END", value.type)


@by_name("zeroifnull")
def _zeroifnull(to: Expressions, node: exp.Expr) -> Typed:
    value, zero = to.alike([to.typed(node.expressions[0], *t.WHOLE, "float64"), number_literal("0", node)], node)
    return Typed(f"coalesce({value.sql}, {zero.sql})", value.type)
