"""Spark's expressions in DuckDB's SQL: a list of what is known to give the same value. What is not in it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol, TypeAlias

from sqlglot import exp

from dbt.adapters.ducklake.lake import Column, fold
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.casts import Zone, cast, widened
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable, text_literal
from dbt.adapters.ducklake.statements.types import read_type


class Names(Protocol):
    """What an expression may name, and the queries in it."""

    zone: Zone

    def column(self, node: exp.Column) -> Typed: ...

    def one_value(self, node: exp.Expr) -> Typed: ...

    def exists(self, node: exp.Expr) -> str: ...

    def rows_of(self, node: exp.Expr) -> tuple[str, list[Column]]: ...

    def is_filter(self, node: exp.Expr) -> bool: ...


Rule: TypeAlias = Callable[["Expressions", exp.Expr], Typed]
_RULES: dict[type[exp.Expr], tuple[Rule, frozenset[str]]] = {}
# By the names of functions that sqlglot has no class for.
_BY_NAME: dict[str, Rule] = {}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_SPACES = "".join(map(chr, (*range(1, 33), 127)))
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?)?")
_SPECIAL = {"nan": "nan", "infinity": "inf", "inf": "inf", "+infinity": "inf", "-infinity": "-inf", "-inf": "-inf"}
# What sqlglot notes of functions of Spark's that changes nothing here.
_NOTES = frozenset({"safe", "ignore_nulls", "coalesce", "flatten", "null_if_pos_overflow", "null_propagation"})


def rule(*kinds: type[exp.Expr], takes: str = "this expression expressions") -> Callable[[Rule], Rule]:
    """A rule for these kinds of nodes, as long as they have none but these parts."""

    def added(found: Rule) -> Rule:
        for kind in kinds:
            _RULES[kind] = found, frozenset(takes.split())
        return found

    return added


def by_name(*names: str) -> Callable[[Rule], Rule]:
    def added(found: Rule) -> Rule:
        _BY_NAME.update(dict.fromkeys(names, found))
        return found

    return added


@dataclass
class Expressions:
    names: Names

    @property
    def zone(self) -> Zone:
        return self.names.zone

    def of(self, node: exp.Expr | str | None) -> Typed:
        """The expression as one operand. Untranslatable."""
        if not isinstance(node, exp.Expr):
            raise Untranslatable(None, "a part of an expression is missing")
        if isinstance(node, exp.Anonymous):
            found = _BY_NAME.get(fold(str(node.this)))
            if found is None:
                raise Untranslatable(node, f"the function {node.this} is not known to give the same in DuckDB")
            return found(self, node)
        known = _RULES.get(type(node))
        if known is None:
            raise Untranslatable(node, f"{_title(node)} is not known to give the same in DuckDB")
        found, takes = known
        more = [key for key, value in node.args.items() if value not in (None, [], False) and key not in takes | _NOTES]
        if more:
            raise Untranslatable(node, f"{_title(node)} with {more[0]} is not known to give the same in DuckDB")
        return found(self, node)

    def all_of(self, nodes: Iterable[exp.Expr]) -> list[Typed]:
        return [self.of(node) for node in nodes]

    def alike(self, values: Sequence[Typed], node: exp.Expr) -> list[Typed]:
        """The values in the type that they have in common."""
        wanted: Column | None = t.VOID
        for value in values:
            wanted = t.common(wanted, value.type) if wanted is not None else None
        if wanted is None:
            kinds = ", ".join(dict.fromkeys(str(value.type.type) for value in values))
            raise Untranslatable(node, f"{kinds} have no type in common without a cast")
        if wanted.type.name == "unknown":
            return list(values)
        return [widened(value, wanted, self.zone, node) for value in values]

    def boolean(self, node: exp.Expr | None) -> str:
        return self.typed(node, "boolean").sql

    def typed(self, node: exp.Expr | str | None, *kinds: str) -> Typed:
        """The expression, which has to be of one of these types."""
        value = self.of(node)
        if value.kind == "unknown":
            return widened(value, t.plain(kinds[0]), self.zone, value_node(node))
        if value.kind not in kinds:
            raise Untranslatable(value_node(node), f"Spark would cast {value.type.type} to {kinds[0]} here")
        return value

    def text(self, node: exp.Expr | str | None) -> Typed:
        return self.typed(node, "varchar")

    def whole(self, node: exp.Expr | str | None) -> Typed:
        return self.typed(node, *t.WHOLE)


def value_node(node: exp.Expr | str | None) -> exp.Expr | None:
    return node if isinstance(node, exp.Expr) else None


def arguments(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions)


def _title(node: exp.Expr) -> str:
    return type(node).__name__ if isinstance(node, exp.Func) else node.sql(dialect="spark")[:60]


# Values.


@rule(exp.Column, takes="this table db catalog")
def _column(to: Expressions, node: exp.Expr) -> Typed:
    assert isinstance(node, exp.Column)
    return to.names.column(node)


@rule(exp.Dot)
def _field(to: Expressions, node: exp.Expr) -> Typed:
    return field_of(to.of(node.this), node.expression.name, node)


def field_of(value: Typed, name: str, node: exp.Expr) -> Typed:
    field = next((child for child in value.type.children if fold(child.name) == fold(name)), None)
    if value.kind != "struct" or field is None:
        raise Untranslatable(node, f"{name} is not known as a field here")
    return Typed(f"struct_extract({value.sql}, {text_literal(field.name)})", field)


@rule(exp.Paren)
def _paren(to: Expressions, node: exp.Expr) -> Typed:
    inner = to.of(node.this)
    return replace(inner, sql=f"({inner.sql})")


@rule(exp.Literal, takes="this is_string")
def _literal(to: Expressions, node: exp.Expr) -> Typed:
    if node.is_string:
        return Typed(text_literal(node.this), t.STRING, text=node.this)
    return number_literal(node.this, node)


def number_literal(text: str, node: exp.Expr) -> Typed:
    if _WHOLE.fullmatch(text):
        value = int(text)
        for kind, bits in ((t.INT, 31), (t.BIGINT, 63)):
            if -(2**bits) <= value < 2**bits:
                return Typed(f"CAST({value} AS {t.duckdb_type(kind)})", kind, number=value, is_literal=True)
        return _decimal(Decimal(text), node)
    if set("eE") & set(text):
        return Typed(f"CAST('{float(text)!r}' AS DOUBLE)", t.DOUBLE)
    return _decimal(Decimal(text), node)


def _decimal(value: Decimal, node: exp.Expr) -> Typed:
    parts = value.as_tuple()
    scale = max(0, -int(parts.exponent))
    kind = t.decimal_of(max(len(parts.digits), scale), scale)
    if kind is None:
        raise Untranslatable(node, "it has more than 38 digits")
    return Typed(f"CAST('{value:f}' AS {t.duckdb_type(kind)})", kind)


@rule(exp.Neg, exp.Negative)
def _negative(to: Expressions, node: exp.Expr) -> Typed:
    if isinstance(node.this, exp.Literal) and not node.this.is_string and _WHOLE.fullmatch(node.this.this):
        return number_literal(f"-{node.this.this}", node)
    value = to.of(node.this)
    if not t.is_number(value.type):
        raise Untranslatable(node, f"Spark would cast {value.type.type} to a number here")
    refuse_all_digits(value, node)
    if value.number is not None and t.is_whole(value.type) and not t.holds(value.type, value.number):
        raise Untranslatable(node, "only below zero its type has this number")
    number = None if value.number is None else -value.number
    return Typed(f"(-{value.sql})", value.type, number=number)


def refuse_all_digits(value: Typed, node: exp.Expr) -> None:
    """Spark fails to change the sign of a decimal whose 38 digits are all there, DuckDB does not."""
    if t.is_decimal(value.type) and not t.decimal_of(t.digits(value.type)[0] + 1, 0):
        raise Untranslatable(node, "Spark fails for numbers of 38 digits")


@rule(exp.Boolean)
def _boolean(to: Expressions, node: exp.Expr) -> Typed:
    return Typed("TRUE" if node.this else "FALSE", t.BOOLEAN)


@rule(exp.Null, takes="")
def _null(to: Expressions, node: exp.Expr) -> Typed:
    return Typed("NULL", t.VOID)


@rule(exp.HexString)
def _bytes(to: Expressions, node: exp.Expr) -> Typed:
    digits = str(node.this)
    digits = digits if len(digits) % 2 == 0 else f"0{digits}"
    escaped = "".join(f"\\x{digits[at : at + 2]}" for at in range(0, len(digits), 2))
    return Typed(f"CAST('{escaped}' AS BLOB)", t.BINARY)


@rule(exp.Cast, exp.TryCast, takes="this to")
def _cast(to: Expressions, node: exp.Expr) -> Typed:
    is_try = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
    try:
        wanted = read_type(node.args["to"].sql(dialect="spark"), Reader("").place)
    except StatementError as refused:
        raise Untranslatable(node, f"DuckDB has no such type: {node.args['to'].sql(dialect='spark')}") from refused
    value = to.of(node.this)
    if value.text is not None and value.number is None and (known := _of_literal(to, value.text, wanted, node)):
        return known
    found = cast(value, wanted, to.zone, node, is_try)
    return replace(found, number=value.number if t.is_whole(wanted) else None, is_literal=False)


def _of_literal(to: Expressions, text: str, wanted: Column, node: exp.Expr) -> Typed | None:
    """A literal with its type before it, or a cast of one: read now, as Spark does."""
    plain = text.strip(_SPACES)
    name = wanted.type.name
    if name == "date" and len(plain) == 10:
        return Typed(f"CAST({text_literal(plain)} AS DATE)", wanted) if _DAY.fullmatch(plain) else None
    if name in ("timestamp", "timestamptz") and _MOMENT.fullmatch(plain):
        naive = f"CAST({text_literal(plain.replace('T', ' '))} AS TIMESTAMP)"
        return Typed(naive if name == "timestamp" else to.zone.moment_of(naive, node), wanted)
    if name == "float64" and plain.lower() in _SPECIAL:
        return Typed(f"CAST('{_SPECIAL[plain.lower()]}' AS DOUBLE)", wanted)
    if t.is_whole(wanted) and _WHOLE.fullmatch(plain):
        return Typed(f"CAST({text_literal(plain)} AS {t.duckdb_type(wanted)})", wanted, number=int(plain))
    return None


# Comparisons and logic.

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip


@rule(*_OPERATORS)
def _comparison(to: Expressions, node: exp.Expr) -> Typed:
    one, other = compared(to, to.of(node.this), to.of(node.expression), node)
    return Typed(f"({one.sql} {_OPERATORS[type(node)]} {other.sql})", t.BOOLEAN)


def compared(to: Expressions, one: Typed, other: Typed, node: exp.Expr) -> tuple[Typed, Typed]:
    """Two values that are compared, in one type; a literal of text beside another type is read as that, as in Spark."""
    for value, beside in ((one, other), (other, one)):
        if value.text is not None and beside.kind not in ("varchar", "unknown"):
            wanted = t.BIGINT if t.is_whole(beside.type) else beside.type
            read = _of_literal(to, value.text, wanted, node)
            if read is None:
                raise Untranslatable(node, f"Spark would cast a text to {beside.type.type} here")
            one, other = (read, other) if value is one else (one, read)
    if one.type.children or other.type.children:
        raise Untranslatable(node, "nested values are compared in another way if they hold NULLs")
    one, other = to.alike([one, other], node)
    return one, other


@rule(exp.And, exp.Or)
def _logic(to: Expressions, node: exp.Expr) -> Typed:
    word = "AND" if isinstance(node, exp.And) else "OR"
    return Typed(f"({to.boolean(node.this)} {word} {to.boolean(node.expression)})", t.BOOLEAN)


@rule(exp.Not)
def _not(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"(NOT {to.boolean(node.this)})", t.BOOLEAN)


@rule(exp.Is)
def _is(to: Expressions, node: exp.Expr) -> Typed:
    value, what = to.of(node.this), node.expression
    if isinstance(what, exp.Null):
        return Typed(f"({value.sql} IS NULL)", t.BOOLEAN)
    if isinstance(what, exp.Boolean):
        word = "TRUE" if what.this else "FALSE"
        return Typed(f"({to.boolean(node.this)} IS NOT DISTINCT FROM {word})", t.BOOLEAN)
    raise Untranslatable(node, "IS stands before something unknown")


@by_name("isnull")
def _isnull(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"({to.of(node.expressions[0]).sql} IS NULL)", t.BOOLEAN)


@by_name("isnotnull")
def _isnotnull(to: Expressions, node: exp.Expr) -> Typed:
    return Typed(f"({to.of(node.expressions[0]).sql} IS NOT NULL)", t.BOOLEAN)


@rule(exp.IsNan)
def _isnan(to: Expressions, node: exp.Expr) -> Typed:
    value = to.typed(node.this, "float64", "float32")
    return Typed(f"coalesce(isnan({value.sql}), FALSE)", t.BOOLEAN)


@rule(exp.Between, takes="this low high")
def _between(to: Expressions, node: exp.Expr) -> Typed:
    value = to.of(node.this)
    above, low = compared(to, value, to.of(node.args["low"]), node)
    below, high = compared(to, value, to.of(node.args["high"]), node)
    return Typed(f"({above.sql} >= {low.sql} AND {below.sql} <= {high.sql})", t.BOOLEAN)


@rule(exp.In, takes="this expressions query")
def _in(to: Expressions, node: exp.Expr) -> Typed:
    value, query = to.of(node.this), node.args.get("query")
    if query is not None:
        if not to.names.is_filter(node):
            raise Untranslatable(node, "as a value, IN over a query is false in Spark if a NULL decides")
        sql, columns = to.names.rows_of(query)
        if len(columns) != 1 or not t.same(columns[0], value.type):
            raise Untranslatable(node, "IN compares values of different types")
        return Typed(f"({value.sql} IN {sql})", t.BOOLEAN)
    pairs = [compared(to, value, to.of(one), node) for one in node.expressions]
    first = pairs[0][0]
    if any(pair[0].sql != first.sql for pair in pairs):
        raise Untranslatable(node, "IN compares values of different types")
    return Typed(f"({first.sql} IN ({', '.join(other.sql for _, other in pairs)}))", t.BOOLEAN)


@rule(exp.Exists)
def _exists(to: Expressions, node: exp.Expr) -> Typed:
    if node.args.get("expression") is not None:
        raise Untranslatable(node, "exists over a list is not known to give the same in DuckDB")
    return Typed(to.names.exists(node.this), t.BOOLEAN)


@rule(exp.Subquery, takes="this")
def _subquery(to: Expressions, node: exp.Expr) -> Typed:
    return to.names.one_value(node)


# Conditions.


@rule(exp.Case, takes="this ifs default")
def _case(to: Expressions, node: exp.Expr) -> Typed:
    given = node.args.get("this")
    branches: Sequence[exp.If] = node.args["ifs"]
    default = node.args.get("default")
    values = to.all_of(branch.args["true"] for branch in branches)
    values.append(to.of(default) if default is not None else Typed("NULL", t.VOID))
    *values, last = to.alike(values, node)
    conditions = []
    for branch in branches:
        if given is None:
            conditions.append(to.boolean(branch.this))
        else:
            one, other = compared(to, to.of(given), to.of(branch.this), node)
            conditions.append(f"{one.sql} = {other.sql}")
    whens = " ".join(f"WHEN {c} THEN {v.sql}" for c, v in zip(conditions, values, strict=True))
    return Typed(f"CASE {whens} ELSE {last.sql} END", last.type)


@rule(exp.If, takes="this true false")
def _if(to: Expressions, node: exp.Expr) -> Typed:
    return _chosen(to, node, node.this, node.args.get("true"), node.args.get("false"))


@by_name("iff")
def _iff(to: Expressions, node: exp.Expr) -> Typed:
    return _chosen(to, node, *arguments(node))


def _chosen(to: Expressions, node: exp.Expr, condition: exp.Expr, yes: exp.Expr | None, no: exp.Expr | None) -> Typed:
    given = [to.of(yes), to.of(no) if no is not None else Typed("NULL", t.VOID)]
    one, other = to.alike(given, node)
    return Typed(f"CASE WHEN {to.boolean(condition)} THEN {one.sql} ELSE {other.sql} END", one.type)


@rule(exp.Coalesce)
def _coalesce(to: Expressions, node: exp.Expr) -> Typed:
    values = to.alike(to.all_of([node.this, *node.expressions]), node)
    return Typed(f"coalesce({', '.join(value.sql for value in values)})", values[0].type)


@rule(exp.Nvl2, takes="this true false")
def _nvl2(to: Expressions, node: exp.Expr) -> Typed:
    one, other = to.alike([to.of(node.args["true"]), to.of(node.args["false"])], node)
    return Typed(f"CASE WHEN {to.of(node.this).sql} IS NOT NULL THEN {one.sql} ELSE {other.sql} END", one.type)


@rule(exp.Nullif)
def _nullif(to: Expressions, node: exp.Expr) -> Typed:
    value = to.of(node.this)
    one, other = compared(to, value, to.of(node.expression), node)
    return Typed(f"CASE WHEN {one.sql} = {other.sql} THEN NULL ELSE {value.sql} END", value.type)


@rule(exp.Greatest, exp.Least)
def _extreme(to: Expressions, node: exp.Expr) -> Typed:
    values = to.alike(to.all_of([node.this, *node.expressions]), node)
    if values[0].type.children:
        raise Untranslatable(node, "nested values are compared in another way")
    word = "greatest" if isinstance(node, exp.Greatest) else "least"
    return Typed(f"{word}({', '.join(value.sql for value in values)})", values[0].type)
