"""What a condition says of single columns: which files of a table can hold rows that satisfy it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt.adapters.ducklake.lake import Between, Column, IsIn, Predicate, Table, fold
from dbt.adapters.ducklake.spark.keys import keys_of
from dbt.adapters.ducklake.spark.query import Rows, Spark
from dbt.adapters.ducklake.statements.changing import Target
from dbt.adapters.ducklake.statements.names import quoted


@dataclass(frozen=True)
class Equality:
    """A column of the table that a condition wants equal to a column of the source."""

    column: Column
    source: str
    is_null_safe: bool


@dataclass(frozen=True)
class Side:
    """One side of a merge: its alias and its columns."""

    alias: str
    columns: Sequence[str]

    def own(self, text: str) -> str:
        """An expression with the alias before the side's columns that are named without a table."""
        try:
            parsed = sqlglot.parse_one(text, dialect="spark")
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
            if fold(name.name) in known and fold(name.name) != fold(self.alias) and "start" in name.meta
        }
        for start in sorted(starts, reverse=True):
            text = f"{text[:start]}{quoted(self.alias)}.{text[start:]}"
        return text


def equalities(condition: str, target: Target, source: str, table: Table, given: Sequence[str]) -> list[Equality]:
    """The equalities that every pair of rows that satisfies the condition satisfies. Where it cannot be read, none."""
    try:
        parsed = sqlglot.parse_one(condition, dialect="spark")
    except (SqlglotError, RecursionError):
        return []
    columns = {fold(column.name): column for column in table.columns}
    others = {fold(name): name for name in given}
    found = []
    for part in _conjuncts(parsed):
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            continue
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            mine, theirs = _column(one, target.alias, columns, others), _column(other, source, others, columns)
            if mine is not None and theirs is not None:
                found.append(Equality(columns[mine], others[theirs], isinstance(part, exp.NullSafeEQ)))
                break
    return found


def files_with_keys(spark: Spark, source: Rows, keys: Sequence[Equality]) -> tuple[Predicate, ...]:
    """What must be true of the table's rows that match any row of the source."""
    wanted = [(key.column, key.source) for key in keys]
    found: list[Predicate] = []
    for key, values in zip(keys, keys_of(spark, source, wanted), strict=True):
        if values is None or (key.is_null_safe and values.has_nulls):
            continue
        if values.all_of_them is not None:
            found.append(IsIn(key.column.id, values.all_of_them))
        elif values.least is not None:
            found.append(Between(key.column.id, values.least, values.greatest))
    return tuple(found)


def _conjuncts(parsed: exp.Expr) -> Iterator[exp.Expr]:
    parsed = parsed.unnest()
    if isinstance(parsed, exp.And):
        yield from _conjuncts(parsed.this)
        yield from _conjuncts(parsed.expression)
    else:
        yield parsed


def _column(node: exp.Expr, alias: str, own: Mapping[str, object], other: Mapping[str, object]) -> str | None:
    """The folded name of a column that certainly belongs to the side with the alias."""
    node = node.unnest()
    if not isinstance(node, exp.Column) or node.args.get("db"):
        return None
    name = fold(node.name)
    if name not in own:
        return None
    if node.table:
        return name if fold(node.table) == fold(alias) else None
    return name if name not in other else None
