"""Functions of numbers. What goes through a library of floating point is refused: its last bit may differ."""

from __future__ import annotations

from sqlglot import exp

from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.casts import widened
from dbt.adapters.ducklake.statements.translation.expressions import Expressions, refuse_all_digits, rule
from dbt.adapters.ducklake.statements.translation.texts import literal_number
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable

_NUMBERS = (*t.WHOLE, "decimal", "float64")


@rule(exp.Abs, takes="this")
def _abs(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, *_NUMBERS)
    refuse_all_digits(value, node)
    return Typed(f"abs({value.sql})", value.type)


@rule(exp.Sign, takes="this")
def _sign(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, *t.WHOLE, "float64")
    double = widened(value, t.DOUBLE, to.zone, node).sql
    # Of zero the value itself, which may be -0.0, and of what is no number none.
    return Typed(f"CASE WHEN {double} = 0 OR isnan({double}) THEN {double} ELSE CAST(sign({double}) AS DOUBLE) END",
                 t.DOUBLE)  # fmt: skip


@rule(exp.Round, takes="this decimals")
def _round(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, *_NUMBERS)
    given = node.args.get("decimals")
    places = 0 if given is None else literal_number(to, given)
    if t.is_decimal(value.type) and places >= 0:
        precision, scale = t.digits(value.type)
        kept = min(places, scale)
        wanted = t.decimal_of(min(38, precision - scale + kept + 1), kept)
        assert wanted is not None
        return Typed(
            f"CAST(round(CAST({value.sql} AS DECIMAL(38,{scale})), {kept}) AS {t.duckdb_type(wanted)})", wanted
        )
    if t.is_whole(value.type) and places >= 0:
        return Typed(value.sql, value.type)
    if value.kind == "float64" and places == 0:
        # Plus zero, as Spark has no negative zero after rounding.
        return Typed(f"(round({value.sql}) + 0.0)", t.DOUBLE)
    raise Untranslatable(node, "DuckDB rounds the binary number, Spark its digits")


@rule(exp.Floor, exp.Ceil, takes="this")
def _whole_beside(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, *_NUMBERS)
    function = "floor" if isinstance(node, exp.Floor) else "ceil"
    if t.is_whole(value.type):
        return widened(value, t.BIGINT, to.zone, node)
    if value.kind == "float64":
        return Typed(f"CAST({function}({value.sql}) AS BIGINT)", t.BIGINT)
    precision, scale = t.digits(value.type)
    wanted = t.decimal_of(min(38, precision - scale + 1), 0)
    assert wanted is not None
    return Typed(f"CAST({function}({value.sql}) AS {t.duckdb_type(wanted)})", wanted)


_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|"}


@rule(*_BITS)
def _bits(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.alike([to.whole(node.this), to.whole(node.expression)], node)
    return Typed(f"({one.sql} {_BITS[type(node)]} {other.sql})", one.type)


@rule(exp.BitwiseXor)
def _xor(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.alike([to.whole(node.this), to.whole(node.expression)], node)
    return Typed(f"xor({one.sql}, {other.sql})", one.type)


@rule(exp.BitwiseNot, takes="this")
def _not(to: Expressions, node: exp.Expr) -> Typed:
    value = to.whole(node.this)
    return Typed(f"(~{value.sql})", value.type)


@rule(exp.Sqrt, takes="this")
def _sqrt(to: Expressions, node: exp.Expr) -> Typed:
    """The only root that IEEE rounds exactly. Of a negative number Spark has NaN, DuckDB an error."""
    value = widened(to.typed(node.this, *t.WHOLE, "float64"), t.DOUBLE, to.zone, node).sql
    return Typed(f"CASE WHEN {value} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({value}) END", t.DOUBLE)
