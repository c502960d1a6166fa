"""Columns: a tree per top-level column, as the metadata numbers it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from dbt.adapters.ducklake.lake.names import ColumnId, fold
from dbt.adapters.ducklake.lake.types import ColumnType

UNNUMBERED = ColumnId(0)


@dataclass(frozen=True, slots=True)
class Default:
    """What INSERT puts where no value is given: a value's text (`literal`), or SQL text (`expression`)."""

    text: str | None = None
    kind: str = "literal"
    dialect: str | None = "duckdb"


NO_DEFAULT = Default()
# What the rows of containers say.
NESTED_DEFAULT = Default(kind="")


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a part of a nested one: list has one child `element`, map has `key` and `value`, struct its fields.

    `id` is the Parquet field id, unique in its table for ever. A caller that makes columns leaves it out; the
    transaction numbers them. `initial_default` is what rows of files that lack the column hold; it never changes.
    `since` is the snapshot that last altered it.
    """

    name: str
    type: ColumnType
    children: tuple[Column, ...] = ()
    nullable: bool = True
    default: Default = NO_DEFAULT
    initial_default: str | None = None
    comment: str | None = None
    id: ColumnId = UNNUMBERED
    order: int = 0
    since: int = field(default=0, compare=False)

    def walk(self) -> Iterator[Column]:
        """This column and all below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Column]:
        return (column for column in self.walk() if not column.type.is_container)

    def child(self, name: str) -> Column | None:
        return find(self.children, name)


def scalar(name: str, type_name: str, **more: object) -> Column:
    return Column(name, ColumnType(type_name), **more)  # type: ignore[arg-type]


def find(columns: Iterable[Column], name: str) -> Column | None:
    folded = fold(name)
    return next((column for column in columns if fold(column.name) == folded), None)


def walk(columns: Iterable[Column]) -> Iterator[Column]:
    for column in columns:
        yield from column.walk()


def numbered(column: Column, first: int) -> tuple[Column, int]:
    """The column with ids given depth first from `first`, and the next free id."""
    children, next_id = [], first + 1
    for child in column.children:
        numbered_child, next_id = numbered(child, next_id)
        children.append(numbered_child)
    return replace(column, id=ColumnId(first), order=first, children=tuple(children)), next_id


def numbered_all(columns: Iterable[Column], first: int = 1) -> tuple[tuple[Column, ...], int]:
    result = []
    for column in columns:
        done, first = numbered(column, first)
        result.append(done)
    return tuple(result), first
