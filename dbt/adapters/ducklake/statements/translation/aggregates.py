"""Aggregates and window functions."""

from __future__ import annotations

from sqlglot import exp

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.casts import widened
from dbt.adapters.ducklake.statements.translation.expressions import Expressions, by_name, rule
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable


def _over(to: Expressions, node: exp.Expr) -> tuple[str, Typed]:
    """`DISTINCT` or nothing, and the aggregated value."""
    if isinstance(node, exp.Distinct):
        if len(node.expressions) != 1:
            raise Untranslatable(node, "several values together are counted in another way if one is NULL")
        return "DISTINCT ", to.of(node.expressions[0])
    return "", to.of(node)


@rule(exp.Count, takes="this big_int")
def _count(to: Expressions, node: exp.Expr) -> Typed:
    if isinstance(node.this, exp.Star):
        return Typed("count(*)", t.BIGINT)
    distinct, value = _over(to, node.this)
    return Typed(f"count({distinct}{value.sql})", t.BIGINT)


@rule(exp.Sum, takes="this")
def _sum(to: Expressions, node: exp.Expr) -> Typed:
    distinct, value = _over(to, node.this)
    if not t.is_number(value.type):
        raise Untranslatable(node, f"Spark would cast {value.type.type} to a number here")
    wanted: Column | None = t.BIGINT if t.is_whole(value.type) else t.DOUBLE
    if t.is_decimal(value.type):
        precision, scale = t.digits(value.type)
        wanted = t.decimal_of(min(38, precision + 10), scale)
    assert wanted is not None
    given = value.sql if t.is_exact(value.type) else widened(value, t.DOUBLE, to.zone, node).sql
    return _called(f"sum({distinct}{given})", wanted)


@rule(exp.Avg, takes="this")
def _avg(to: Expressions, node: exp.Expr) -> Typed:
    distinct, value = _over(to, node.this)
    if t.is_decimal(value.type) or not t.is_number(value.type):
        raise Untranslatable(node, "the average of decimals is a double in DuckDB")
    return Typed(f"avg({distinct}{widened(value, t.DOUBLE, to.zone, node).sql})", t.DOUBLE)


@rule(exp.Min, exp.Max, takes="this")
def _bound(to: Expressions, node: exp.Expr) -> Typed:
    value = to.of(node.this)
    if value.type.children:
        raise Untranslatable(node, "nested values are compared in another way")
    return Typed(f"{'min' if isinstance(node, exp.Min) else 'max'}({value.sql})", value.type)


@rule(exp.CountIf, takes="this")
def _count_if(to: Expressions, node: exp.Expr) -> Typed:
    # DuckDB's count_if of no rows is NULL.
    return Typed(f"count(CASE WHEN {to.boolean(node.this)} THEN 1 END)", t.BIGINT)


@rule(exp.LogicalAnd, exp.LogicalOr, takes="this")
def _every(to: Expressions, node: exp.Expr) -> Typed:
    function = "bool_and" if isinstance(node, exp.LogicalAnd) else "bool_or"
    return Typed(f"{function}({to.boolean(node.this)})", t.BOOLEAN)


@rule(exp.AnyValue, exp.First, takes="this")
def _first(to: Expressions, node: exp.Expr) -> Typed:
    # DuckDB's any_value passes over NULLs.
    value = to.of(node.this)
    return Typed(f"first({value.sql})", value.type)


@rule(exp.Filter)
def _filter(to: Expressions, node: exp.Expr) -> Typed:
    value = to.of(node.this)
    return _called(f"{value.call or value.sql} FILTER (WHERE {to.boolean(node.expression.this)})", value.type)


def _called(call: str, kind: Column) -> Typed:
    """What a function returns, which DuckDB may give another type."""
    return Typed(f"CAST({call} AS {t.duckdb_type(kind)})", kind, call=call)


# Functions of windows.

_RANKS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank",
}  # fmt: skip


@rule(*_RANKS)
def _rank(to: Expressions, node: exp.Expr) -> Typed:
    return _called(f"{_RANKS[type(node)]}()", t.INT)


@by_name("row_number", "rank", "dense_rank")
def _rank_by_name(to: Expressions, node: exp.Expr) -> Typed:
    return _called(f"{str(node.this).lower()}()", t.INT)


@rule(exp.Lag, exp.Lead, takes="this offset default")
def _neighbour(to: Expressions, node: exp.Expr) -> Typed:
    value = to.of(node.this)
    default = Typed("NULL", t.VOID) if node.args.get("default") is None else to.of(node.args["default"])
    value, default = to.alike([value, default], node)
    offset = "1" if node.args.get("offset") is None else to.whole(node.args["offset"]).sql
    function = "lag" if isinstance(node, exp.Lag) else "lead"
    return Typed(f"{function}({value.sql}, {offset}, {default.sql})", value.type)


@rule(exp.FirstValue, exp.LastValue, takes="this")
def _edge(to: Expressions, node: exp.Expr) -> Typed:
    value = to.of(node.this)
    function = "first_value" if isinstance(node, exp.FirstValue) else "last_value"
    return Typed(f"{function}({value.sql})", value.type)


@rule(exp.Window, takes="this partition_by order spec over")
def _window(to: Expressions, node: exp.Expr) -> Typed:
    value = to.of(node.this)
    parts = []
    if keys := node.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(to.of(key).sql for key in keys)}")
    if (order := node.args.get("order")) is not None:
        parts.append(f"ORDER BY {', '.join(ordered(to, one) for one in order.expressions)}")
    if (spec := node.args.get("spec")) is not None:
        parts.append(_frame(to, spec))
    return _called(f"{value.call or value.sql} OVER ({' '.join(parts)})", value.type)


def ordered(to: Expressions, node: exp.Expr) -> str:
    """One key of ORDER BY."""
    value = to.of(node.this)
    if value.type.children:
        raise Untranslatable(node, "nested values are sorted in another way")
    return f"{value.sql} {direction(node)}"


def direction(node: exp.Expr) -> str:
    """The direction of a key, with the place of NULLs: first for Spark, unless the order goes down."""
    assert isinstance(node, exp.Ordered)
    is_down, first = bool(node.args.get("desc")), node.args.get("nulls_first")
    nulls = "FIRST" if (first if first is not None else not is_down) else "LAST"
    return f"{'DESC' if is_down else 'ASC'} NULLS {nulls}"


def _frame(to: Expressions, spec: exp.Expr) -> str:
    kind = str(spec.args.get("kind") or "RANGE").upper()
    if spec.args.get("exclude"):
        raise Untranslatable(spec, "EXCLUDE is not Spark's")
    edges = [_edge_of_frame(to, spec, side, kind) for side in ("start", "end")]
    return f"{kind} BETWEEN {edges[0]} AND {edges[1]}"


def _edge_of_frame(to: Expressions, spec: exp.Expr, side: str, kind: str) -> str:
    value, where = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if value is None or value == "CURRENT ROW":
        return "CURRENT ROW"
    if value == "UNBOUNDED":
        return f"UNBOUNDED {where}"
    found = to.of(value)
    if kind != "ROWS" or found.number is None:
        raise Untranslatable(spec, "a range of values is another thing in DuckDB")
    return f"{found.number} {where}"
