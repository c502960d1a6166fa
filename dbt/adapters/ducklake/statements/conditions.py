"""What a condition says of single columns: which files of a table can hold rows that satisfy it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt.adapters.ducklake.lake import (
    Between,
    Column,
    Compare,
    IsIn,
    LakeError,
    Predicate,
    Table,
    Value,
    fold,
    parse_value,
)
from dbt.adapters.ducklake.spark.keys import WHOLE, keys_of
from dbt.adapters.ducklake.spark.pinned import broadcast_if_small
from dbt.adapters.ducklake.spark.query import Rows, Spark, setting
from dbt.adapters.ducklake.statements.reader import syntax_tree

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UTC = {"utc", "etc/utc", "gmt", "z", "+00:00"}
_DAY = r"\d{4}-\d\d-\d\d"
_MOMENT = re.compile(rf"{_DAY}(?:[ T]\d\d:\d\d:\d\d(?:\.\d{{1,6}})?(?:Z|\+00:00)?)?")
_OF_MOMENTS = {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ}


@dataclass(frozen=True)
class Equality:
    """A column of the table that a condition wants equal to a column of the source."""

    column: Column
    source: str
    is_null_safe: bool


@dataclass(frozen=True)
class Side:
    """A table in a condition, or one side of a merge: what names it (its alias, or a table's whole name), the names of
    its columns, and what stands before them in a text of ours."""

    name: tuple[str, ...]
    columns: Sequence[str]
    qualifier: str

    def is_called(self, qualifier: Sequence[str]) -> bool:
        parts = tuple(map(fold, qualifier))
        return tuple(map(fold, self.name))[-len(parts) :] == parts

    def own(self, text: str) -> str:
        """Return an expression with the qualifier before the side's columns that are named without a table."""
        try:
            parsed = syntax_tree(text)
        except (SqlglotError, RecursionError):
            return text
        known = set(map(fold, self.columns))
        found = (
            # `s.x` may be a field of the side's column s.
            column.args.get("table") or column.this
            for column in parsed.find_all(exp.Column)
            # A name within a subquery is the subquery's first of all.
            if not column.args.get("db") and column.find_ancestor(exp.Query) is None
        )
        starts = {
            name.meta["start"]
            for name in found
            if fold(name.name) in known and not self.is_called([name.name]) and "start" in name.meta
        }
        for start in sorted(starts, reverse=True):
            text = f"{text[:start]}{self.qualifier}.{text[start:]}"
        return text


def equalities(condition: str, target: Side, source: Side, table: Table) -> list[Equality]:
    """Return equalities that hold for every pair of rows that satisfies the condition; none if it cannot be read."""
    try:
        parsed = syntax_tree(condition)
    except (SqlglotError, RecursionError):
        return []
    columns = {fold(column.name): column for column in table.columns}
    others = {fold(name): name for name in source.columns}
    found = []
    for part in _conjuncts(parsed):
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            continue
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            mine, theirs = _column(one, target, source), _column(other, source, target)
            if mine is not None and theirs is not None:
                found.append(Equality(columns[mine], others[theirs], isinstance(part, exp.NullSafeEQ)))
                break
    return found


def matched_by(spark: Spark, source: Rows, keys: Sequence[Equality]) -> tuple[tuple[Predicate, ...], Rows]:
    """Return what is true of every row of the table that matches a row of the source, and the source for a join with
    them. The source must be pinned: other rows of it would match other rows."""
    answers, size = keys_of(source, [(key.column, key.source) for key in keys])
    found: list[Predicate] = []
    for key, values in zip(keys, answers, strict=True):
        if values is None or (key.is_null_safe and values.has_nulls):
            continue
        if values.all_of_them is not None:
            found.append(IsIn(key.column.id, values.all_of_them))
        elif values.least is not None:
            found.append(Between(key.column.id, values.least, values.greatest))
    return tuple(found), broadcast_if_small(spark, source, size)


def comparisons(
    spark: Spark, condition: str | None, side: Side, table: Table, other: Side | None = None
) -> tuple[Predicate, ...]:
    """Return the comparisons of the table's columns with constants that the condition requires. `other` is what else
    it may name.

    Only constants that Spark cannot take for anything else: what is not certain is left to Spark, which then looks into
    more files.
    """
    try:
        parsed = syntax_tree(condition) if condition else None
    except (SqlglotError, RecursionError):
        return ()
    # What Spark may read otherwise: escapes, variables, and texts that a setting makes names.
    if parsed is None or any(sign in (condition or "") for sign in ("\\", "${", '"')):
        return ()
    is_utc = setting(spark, "spark.sql.session.timeZone", "").lower() in _UTC
    columns = {fold(column.name): column for column in table.columns}

    def column_of(node: exp.Expr) -> Column | None:
        name = _column(node, side, other)
        return None if name is None else columns[name]

    found = (_comparison(part, column_of, is_utc) for part in _conjuncts(parsed))
    return tuple(predicate for predicate in found if predicate is not None)


def _comparison(part: exp.Expr, column_of: Callable[[exp.Expr], Column | None], is_utc: bool) -> Predicate | None:
    operator = _OPERATORS.get(type(part))
    if operator is not None:
        for one, other, said in ((part.this, part.expression, operator),
                                 (part.expression, part.this, _TURNED[operator])):  # fmt: skip
            column = column_of(one)
            value = None if column is None else _constant(other, column, is_utc)
            if column is not None and value is not None:
                return Compare(column.id, said, value)  # type: ignore[arg-type]
        return None
    column = column_of(part.this) if isinstance(part, exp.Between | exp.In) else None
    if column is None:
        return None
    if isinstance(part, exp.Between):
        low, high = (_constant(part.args[side], column, is_utc) for side in ("low", "high"))
        is_plain = low is not None and high is not None and not part.args.get("symmetric")
        return Between(column.id, low, high) if is_plain else None
    values = tuple(_constant(one, column, is_utc) for one in part.expressions)
    return None if not values or None in values else IsIn(column.id, values)


def _constant(node: exp.Expr, column: Column, is_utc: bool) -> Value:
    """The value that a constant has beside the column; None where that is not certain."""
    node, kind, to = node.unnest(), column.type.name, None
    if isinstance(node, exp.Cast):
        to, node = node.to.this, node.this.unnest()
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        sign, node = -1, node.this
    else:
        sign = 1
    if not isinstance(node, exp.Literal):
        return None
    text = node.this
    if kind in WHOLE:
        is_whole = not node.is_string and text.isascii() and text.isdigit() and to in (None, exp.DType.BIGINT)
        return sign * int(text) if is_whole and int(text) < 2**63 else None
    if not node.is_string or sign < 0:
        return None
    if kind == "varchar":
        return text if to is None else None
    if not _MOMENT.fullmatch(text):
        return None
    if kind == "date":
        # Of a text, Spark takes the day and leaves the rest.
        return _value(column, text[:10]) if to in (None, exp.DType.DATE) else None
    if kind in ("timestamp", "timestamptz") and is_utc:
        text = text[:10] if to == exp.DType.DATE else text
        return _value(column, text) if to is None or to == exp.DType.DATE or to in _OF_MOMENTS else None
    return None


def _value(column: Column, text: str) -> Value:
    try:
        return parse_value(column.type, text)
    except LakeError:
        return None


def _conjuncts(parsed: exp.Expr) -> Iterator[exp.Expr]:
    parsed = parsed.unnest()
    if isinstance(parsed, exp.And):
        yield from _conjuncts(parsed.this)
        yield from _conjuncts(parsed.expression)
    else:
        yield parsed


def _column(node: exp.Expr, side: Side, other: Side | None) -> str | None:
    """The folded name of a column that certainly belongs to the side."""
    node = node.unnest()
    if not isinstance(node, exp.Column):
        return None
    name, qualifier = fold(node.name), [part.name for part in node.parts[:-1]]
    if name not in map(fold, side.columns):
        return None
    if qualifier:
        return name if side.is_called(qualifier) and not (other and other.is_called(qualifier)) else None
    is_others = other is not None and (name in map(fold, other.columns) or other.is_called([name]))
    return None if is_others else name
