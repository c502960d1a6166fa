"""Alterations of a table's definition: a table in, the altered table out. Pure; what DuckLake does not allow is
refused.

A `path` names a column, or a field within structs, lists (`element`) and maps (`key`, `value`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from dbt.adapters.ducklake.lake.calendar import TICKS_PER_SECOND
from dbt.adapters.ducklake.lake.columns import NESTED_DEFAULT, Column, Default, find, numbered
from dbt.adapters.ducklake.lake.definitions import PartitionField, Partitioning, SortField, Table
from dbt.adapters.ducklake.lake.errors import ChangeRefused, NameTaken, UnreadableValue
from dbt.adapters.ducklake.lake.names import fold, quoted
from dbt.adapters.ducklake.lake.partitioning import CALENDAR_PARTS, EPOCH_PARTS, is_transform
from dbt.adapters.ducklake.lake.types import ColumnType, can_widen
from dbt.adapters.ducklake.lake.values import parse_value, value_text, widened

Path = tuple[str, ...]
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
# Words that DuckDB takes for no name of a column without quotes, in its newest version.
RESERVED = frozenset(
    [
        "all",
        "analyse",
        "analyze",
        "and",
        "anti",
        "any",
        "array",
        "as",
        "asc",
        "asof",
        "asymmetric",
        "at",
        "authorization",
        "binary",
        "both",
        "by",
        "case",
        "cast",
        "check",
        "collate",
        "collation",
        "column",
        "columns",
        "concurrently",
        "constraint",
        "create",
        "cross",
        "default",
        "deferrable",
        "desc",
        "describe",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "false",
        "fetch",
        "for",
        "foreign",
        "freeze",
        "from",
        "full",
        "generated",
        "glob",
        "group",
        "having",
        "ilike",
        "in",
        "initially",
        "inner",
        "intersect",
        "into",
        "is",
        "isnull",
        "join",
        "lambda",
        "lateral",
        "leading",
        "left",
        "like",
        "limit",
        "map",
        "natural",
        "not",
        "notnull",
        "null",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "outer",
        "overlaps",
        "pivot",
        "pivot_longer",
        "pivot_wider",
        "placing",
        "positional",
        "primary",
        "qualify",
        "references",
        "returning",
        "right",
        "select",
        "semi",
        "show",
        "similar",
        "some",
        "struct",
        "summarize",
        "symmetric",
        "table",
        "tablesample",
        "then",
        "to",
        "trailing",
        "true",
        "try_cast",
        "tuple",
        "union",
        "unique",
        "unpack",
        "unpivot",
        "using",
        "variadic",
        "verbose",
        "when",
        "where",
        "window",
        "with",
    ]
)
_NAMES_IN_SQL = re.compile(r'"((?:[^"]|"")*)"|(\w+)')


def add_column(table: Table, column: Column, parent: Path = ()) -> Table:
    asked = f"add column {'.'.join((*parent, column.name))} to {table}"
    check_column(asked, column)
    if parent:
        return _add_field(table, column, parent, asked)
    if not column.nullable:
        raise ChangeRefused(asked, "existing rows would break NOT NULL", "Add it nullable, fill it, then set NOT NULL.")
    if column.default.text is not None and column.default.kind == "expression":
        raise ChangeRefused(
            asked, "its default is an expression", "Add it with a literal default, then set the expression."
        )
    if find(table.columns, column.name):
        raise NameTaken("Column", column.name, str(table))
    added, next_id = numbered(_with_initial_default(column, asked), table.next_column_id)
    return replace(table, columns=(*table.columns, added), next_column_id=next_id)


def _add_field(table: Table, column: Column, parent: Path, asked: str) -> Table:
    struct = table.at(parent)
    if struct.type.name != "struct":
        raise ChangeRefused(asked, f"{'.'.join(parent)} is a {struct.type}, not a struct")
    if column.default.text is not None:
        raise ChangeRefused(asked, "a field of a struct takes no default")
    if find(struct.children, column.name):
        raise NameTaken("Field", column.name, f"{table}.{'.'.join(parent)}")
    added, next_id = numbered(_not_null(column), table.next_column_id)
    altered = _replaced(table, parent, lambda found: replace(found, children=(*found.children, added)))
    return replace(altered, next_column_id=next_id)


def _not_null(column: Column) -> Column:
    # DuckDB writes fields that are added or altered as NOT NULL, which nobody looks at below the top level.
    children = tuple(map(_not_null, column.children))
    return replace(column, nullable=False, initial_default=None, children=children)


def drop_column(table: Table, path: Path) -> Table:
    column = table.at(path)
    asked = f"drop column {'.'.join(path)} of {table}"
    if len(path) > 1:
        return _drop_field(table, path, asked)
    if table.partitioning and any(field.column_id == column.id for field in table.partitioning.fields):
        raise ChangeRefused(asked, "it is a partition key", "Change the partitioning first.")
    if any(_mentions(field, column.name) for field in table.sort):
        raise ChangeRefused(asked, "it is a sort key", "Change the sort keys first.")
    if len(table.columns) == 1:
        raise ChangeRefused(asked, "it is the only column", "Drop the table.")
    return replace(table, columns=tuple(other for other in table.columns if other.id != column.id))


def _drop_field(table: Table, path: Path, asked: str) -> Table:
    field, parent = table.at(path), table.at(path[:-1])
    if parent.type.name != "struct":
        raise ChangeRefused(asked, f"it is part of a {parent.type}")
    if len(parent.children) == 1:
        # DuckDB lets this pass and cannot open the lake any more.
        raise ChangeRefused(asked, "it is the only field of its struct", "Drop the struct.")
    rest = tuple(child for child in parent.children if child.id != field.id)
    return _replaced(table, path[:-1], lambda found: replace(found, children=rest))


def rename_column(table: Table, path: Path, name: str) -> Table:
    column = table.at(path)
    asked = f"rename column {'.'.join(path)} of {table} to {name}"
    _check_name(asked, name)
    if len(path) > 1:
        return _rename_field(table, path, name, asked)
    taken = find(table.columns, name)
    if taken and taken.id != column.id:
        raise NameTaken("Column", name, str(table))
    if any(_mentions(field, column.name) and not _is_column(field, column.name) for field in table.sort):
        raise ChangeRefused(asked, "an expression among the sort keys uses it", "Change the sort keys first.")
    sort = tuple(
        replace(field, expression=name if _is_plain(name) else quoted(name))
        if _is_column(field, column.name)
        else field
        for field in table.sort
    )
    return replace(_replaced(table, path, lambda found: replace(found, name=name)), sort=sort)


def _is_plain(name: str) -> bool:
    """Whether DuckDB takes the name for one without quotes."""
    return _PLAIN_NAME.fullmatch(name) is not None and name not in RESERVED


def _mentions(field: SortField, name: str) -> bool:
    found = (inner.replace('""', '"') or plain for inner, plain in _NAMES_IN_SQL.findall(field.expression))
    return fold(name) in map(fold, found)


def _is_column(field: SortField, name: str) -> bool:
    return fold(field.expression) in (fold(name), fold(quoted(name)))


def _rename_field(table: Table, path: Path, name: str, asked: str) -> Table:
    column, parent = table.at(path), table.at(path[:-1])
    if parent.type.name != "struct":
        raise ChangeRefused(asked, f"parts of a {parent.type} have fixed names")
    taken = find(parent.children, name)
    if taken and taken.id != column.id:
        raise NameTaken("Field", name, f"{table}.{'.'.join(path[:-1])}")
    return _replaced(table, path, lambda found: replace(found, name=name, nullable=False, default=NESTED_DEFAULT))


def change_type(table: Table, path: Path, new: ColumnType) -> Table:
    column = table.at(path)
    asked = f"change the type of {table}.{'.'.join(path)} from {column.type} to {new}"
    if column.type == new:
        return table
    if not can_widen(column.type, new):
        raise ChangeRefused(asked, "DuckLake only widens types", "Add a column of the new type and fill it.")
    if len(path) == 1:
        default = column.default
        if default.kind == "literal":
            default = replace(default, text=_as_type(asked, column, new, default.text))
        initial = _as_type(asked, column, new, column.initial_default)
        return _replaced(table, path, lambda found: replace(found, type=new, initial_default=initial, default=default))
    return _replaced(table, path, lambda found: replace(found, type=new, nullable=False, default=NESTED_DEFAULT))


def _as_type(asked: str, column: Column, new: ColumnType, text: str | None) -> str | None:
    """The text of a default as the new type reads it. One that it cannot read keeps DuckDB from loading the lake."""
    if text is None:
        return None
    try:
        parse_value(new, text)
        if new.name == "json":
            json.loads(text)
    except UnreadableValue:
        return value_text(new, widened(column.type, new, parse_value(column.type, text)))
    except ValueError as error:
        raise ChangeRefused(
            asked, f"its default {text!r} is no JSON", "Add a column of the new type and fill it."
        ) from error
    return text


def set_nullable(table: Table, path: Path, nullable: bool, has_nulls: bool) -> Table:
    """NOT NULL is only allowed to a column without NULLs, which the caller has looked for (`has_nulls`)."""
    asked = f"set NOT NULL on {table}.{'.'.join(path)}"
    if len(path) > 1:
        raise ChangeRefused(asked, "DuckLake knows NOT NULL for top-level columns only")
    if not nullable and has_nulls:
        raise ChangeRefused(asked, "the column has NULL values", "Fill them first.")
    return _replaced(table, path, lambda found: replace(found, nullable=nullable))


def set_default(table: Table, path: Path, default: Default) -> Table:
    """Only later rows take it: rows of files without the column hold the default it was added with."""
    column = table.at(path)
    if len(path) > 1 or column.type.is_container:
        raise ChangeRefused(f"set a default on {table}.{'.'.join(path)}", "nested columns take no defaults")
    return _replaced(table, path, lambda found: replace(found, default=default))


def set_partitioning(table: Table, fields: Sequence[PartitionField], partition_id: int) -> Table:
    """Partition new files by these keys; without keys, no more. Files that are there stay as they are."""
    asked = f"partition {table}"
    by_id = {column.id: column for column in table.columns}
    for field in fields:
        if field.column_id not in by_id:
            raise ChangeRefused(asked, f"column id {field.column_id} is not a top-level column")
        if not is_transform(field.transform):
            raise ChangeRefused(
                asked, f"{field.transform!r} is not a transform",
                f"Use identity, {', '.join((*CALENDAR_PARTS, *EPOCH_PARTS))} or bucket(N).",
            )  # fmt: skip
        column = by_id[field.column_id]
        if field.transform in EPOCH_PARTS and column.type.name not in ("date", *TICKS_PER_SECOND):
            found = f"column {column.name} is {column.type}, and {field.transform} is of dates and timestamps"
            raise ChangeRefused(asked, found)
    if table.partitioning and table.partitioning.fields == tuple(fields):
        return table
    return replace(table, partitioning=Partitioning(partition_id, tuple(fields)) if fields else None)


def set_sort(table: Table, fields: Sequence[SortField]) -> Table:
    return replace(table, sort=tuple(fields))


def comment_on_column(table: Table, path: Path, comment: str | None) -> Table:
    return _replaced(table, path, lambda found: replace(found, comment=comment))


def check_columns(asked: str, columns: Sequence[Column]) -> None:
    """Refuse what would make the lake unreadable for everybody."""
    if not columns:
        raise ChangeRefused(asked, "a table needs at least one column")
    names = [fold(column.name) for column in columns]
    if twice := next((column.name for column in columns if names.count(fold(column.name)) > 1), None):
        raise ChangeRefused(asked, f"column {twice} is there twice", "Names are compared without case.")
    for column in columns:
        check_column(asked, column)


def check_column(asked: str, column: Column) -> None:
    _check_name(asked, column.name)
    kind, count = column.type.name, len(column.children)
    expected = {"list": ("element",), "map": ("key", "value")}.get(kind)
    if kind in ("unknown", "null"):
        raise ChangeRefused(asked, f"column {column.name} has no type")
    if (kind == "struct" and not count) or (not column.type.is_container and count):
        raise ChangeRefused(asked, f"column {column.name} of type {kind} has {count} children")
    if expected is not None and tuple(child.name for child in column.children) != expected:
        raise ChangeRefused(asked, f"a {kind} needs the children {', '.join(expected)}")
    if kind == "struct":
        check_columns(asked, column.children)
    for child in column.children:
        check_column(asked, child)


def with_initial_defaults(columns: Sequence[Column], asked: str) -> tuple[Column, ...]:
    return tuple(_with_initial_default(column, asked) for column in columns)


def _with_initial_default(column: Column, asked: str) -> Column:
    """What rows written before the column existed will hold: its literal default, as a value of its type."""
    if column.type.is_container:
        if column.default.text is not None:
            raise ChangeRefused(asked, f"column {column.name} is nested and takes no default")
        children = tuple(_with_initial_default(child, asked) for child in column.children)
        return replace(column, default=NESTED_DEFAULT, children=children)
    if column.default.text is None or column.default.kind != "literal":
        return replace(column, initial_default=None)
    if column.type.name == "variant":
        return replace(column, initial_default=column.default.text)
    try:
        return replace(column, initial_default=value_text(column.type, parse_value(column.type, column.default.text)))
    except UnreadableValue as error:
        found = f"the default {column.default.text!r} is not a value of type {column.type}"
        raise ChangeRefused(asked, found, "Write the value as DuckDB casts it from text.") from error


def _check_name(asked: str, name: str) -> None:
    if not name or "\0" in name:
        raise ChangeRefused(asked, "a name may not be empty or hold a NUL character")


def _replaced(table: Table, path: Path, change: Callable[[Column], Column]) -> Table:
    target = table.at(path).id

    def rebuilt(column: Column) -> Column:
        if column.id == target:
            return change(column)
        return (
            replace(column, children=tuple(rebuilt(child) for child in column.children)) if column.children else column
        )

    return replace(table, columns=tuple(rebuilt(column) for column in table.columns))
