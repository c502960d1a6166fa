"""What a query reads: its relations with their columns, and which column a name means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dbt.adapters.ducklake.lake import Column, fold, quoted
from dbt.adapters.ducklake.statements.translation import types as t
from dbt.adapters.ducklake.statements.translation.expressions import field_of
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable

# Types of a lake that Spark has as another: what they are in an expression of DuckDB's.
_AS_SPARK = {
    "uint8": "int16", "uint16": "int32", "uint32": "int64", "timestamp_s": "timestamp", "timestamp_ms": "timestamp",
    "json": "varchar", "uuid": "varchar", "time": "varchar", "int128": "decimal", "uint64": "decimal",
}  # fmt: skip
_DIGITS = {"int128": 38, "uint64": 20}
_KNOWN = frozenset({*t.WHOLE, *t.FLOATS, *t.MOMENTS, "boolean", "decimal", "varchar", "blob", "struct", "list", "map"})


@dataclass(frozen=True)
class Output:
    name: str
    type: Column


@dataclass(frozen=True)
class Relation:
    """A relation in FROM: its alias, and its columns in their order."""

    alias: str
    columns: tuple[Output, ...]


@dataclass(frozen=True)
class ColumnOf:
    """A column of a relation."""

    relation: Relation
    output: Output

    @property
    def sql(self) -> str:
        own = quoted(self.output.name)
        return f"{quoted(self.relation.alias)}.{own}" if self.relation.alias else own

    @property
    def as_it_is(self) -> Typed:
        return Typed(self.sql, self.output.type)

    def value(self, node: exp.Expr | None) -> Typed:
        """The column as Spark has it."""
        kind = self.output.type
        name = kind.type.name
        if name in _AS_SPARK:
            wanted = t.decimal_of(_DIGITS[name], 0) if name in _DIGITS else t.plain(_AS_SPARK[name])
            assert wanted is not None
            return Typed(f"CAST({self.sql} AS {t.duckdb_type(wanted)})", wanted)
        if any(part.type.name not in _KNOWN for part in kind.walk()):
            raise Untranslatable(node, f"column {self.output.name} has the type {kind.type}")
        return self.as_it_is


@dataclass
class Scope:
    relations: list[Relation] = field(default_factory=list)
    outer: Scope | None = None
    # Of the select list: names that GROUP BY, HAVING and ORDER BY may use, and those after them in the list.
    aliases: dict[str, Typed] = field(default_factory=dict)
    # The columns that joins with USING made one, by their folded names.
    merged: dict[str, ColumnOf | Typed] = field(default_factory=dict)

    def find(self, parts: Sequence[str], node: exp.Column, as_it_is: bool) -> Typed | None:
        """The column by its relation's alias, or by itself, with fields behind it; `as_it_is` in the lake, if it has
        no fields behind it."""
        for taken in (1, 0):
            if len(parts) <= taken:
                continue
            found = [
                ColumnOf(relation, column)
                for relation in self.relations
                for column in relation.columns
                if fold(column.name) == fold(parts[taken])
                and (not taken or (relation.alias and fold(relation.alias) == fold(parts[0])))
            ]
            merged = self.merged.get(fold(parts[0])) if not taken else None
            if isinstance(merged, Typed):
                return _field_below(merged, parts[1:], node)
            found = found if merged is None else [merged]
            if len(found) > 1:
                raise Untranslatable(node, f"{'.'.join(parts)} may be of more than one table")
            if found:
                below = parts[taken + 1 :]
                return found[0].as_it_is if as_it_is and not below else _field_below(found[0].value(node), below, node)
        return None


def only_column(name: str, relations: Sequence[Relation], node: exp.Expr) -> ColumnOf:
    found = [ColumnOf(one, column) for one in relations for column in one.columns if fold(column.name) == fold(name)]
    if len(found) != 1 or not found[0].relation.alias:
        raise Untranslatable(node, f"{name} is not one column of a table with a name")
    return found[0]


def _field_below(value: Typed, names: Sequence[str], node: exp.Expr) -> Typed:
    for name in names:
        value = field_of(value, name, node)
    return value
