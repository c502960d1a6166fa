"""Nested values as text: how inlined rows hold structs, lists and maps in SQLite and PostgreSQL.

DuckDB writes two forms of it. Lists and maps come as a cast to VARCHAR spells them: quotes only where needed, and
`\\'` within them. A struct comes as SQL: quotes doubled, and casts spelled out, as in `{'d': CAST('2020-01-01' AS
DATE)}`; structs below it the same, lists and maps below it in the first form. DuckDB itself cannot read every value
of the second form back; both are read here exactly, and whatever is neither is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.types import FLOATS, INTEGERS
from dbt.adapters.ducklake.lake.values import Value, parse_blob, parse_value, value_text

_CAST = re.compile(r"CAST\(")
_CAST_TYPE = re.compile(r" AS [A-Za-z0-9_ (),]+?\)(?=[,}] ?|$)")


_BARE = INTEGERS | FLOATS | {"boolean", "decimal"}


_AMBIGUOUS = frozenset("'\"\\{}[]()\0")


class NotAsText(Exception):
    """The value has no text that DuckDB reads back as the same value."""


def parse_nested(column: Column, text: str) -> Value:
    reader = _Reader(text)
    try:
        value = reader.container(column, as_sql=column.type.name == "struct")
        reader.end()
    except (ValueError, IndexError, StopIteration) as error:
        raise UnreadableValue(column.type.text, text, f"An inlined row of column {column.name}") from error
    return value


def nested_text(column: Column, value: Value) -> str:
    """The text of a nested value that both forms share, so that DuckDB and `parse_nested` read it alike.

    `NotAsText` for strings with quotes or backslashes, which the forms spell apart, and with brackets, which DuckDB
    takes for its own where values are nested twice, quoted or not.
    """
    if value is None:
        return "NULL"
    name = column.type.name
    if name == "struct":
        fields = (f"{_quoted(child.name)}: {nested_text(child, value[child.name])}" for child in column.children)
        return "{" + ", ".join(fields) + "}"
    if name == "list":
        return "[" + ", ".join(nested_text(column.children[0], element) for element in value) + "]"
    if name == "map":
        key, held = column.children
        return "{" + ", ".join(f"{nested_text(key, k)}={nested_text(held, v)}" for k, v in value) + "}"
    text = value_text(column.type, value)
    # Quoted is always the text itself: unquoted, `null` would be NULL.
    return text if column.type.name in _BARE else _quoted(text)


def _quoted(text: str) -> str:
    if any(char in _AMBIGUOUS for char in text):
        raise NotAsText(text)
    return f"'{text}'"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def container(self, column: Column, as_sql: bool) -> Value:
        name = column.type.name
        if name == "list":
            return self._items("[", "]", lambda: self._value(column.children[0], False, ",]"))
        if name == "map":
            return self._items("{", "}", lambda: self._entry(column))
        fields = iter(column.children)
        return dict(self._items("{", "}", lambda: self._field(next(fields), as_sql), required=len(column.children)))

    def end(self) -> None:
        if self.at != len(self.text):
            raise ValueError(self.text)

    def _items(self, opening: str, closing: str, item: Callable[[], Value], required: int | None = None) -> list[Value]:
        self._expect(opening)
        found: list[Value] = []
        while self.text[self.at] != closing:
            if found:
                self._expect(", ")
            found.append(item())
        self.at += 1
        if required is not None and len(found) != required:
            raise ValueError(self.text)
        return found

    def _entry(self, column: Column) -> tuple[Value, Value]:
        key, held = column.children
        found = self._value(key, False, "=")
        self._expect("=")
        return found, self._value(held, False, ",}")

    def _field(self, column: Column, as_sql: bool) -> tuple[str, Value]:
        # Names in the text are those the columns had when the row was written; fields come in the order of the columns.
        self._quoted(as_sql)
        self._expect(": ")
        return column.name, self._value(column, as_sql, ",}")

    def _value(self, column: Column, as_sql: bool, ends: str) -> Value:
        if self.text.startswith("NULL", self.at) and self.text[self.at + 4] in ends:
            self.at += 4
            return None
        if column.type.is_container:
            return self.container(column, as_sql and column.type.name == "struct")
        if as_sql and self.text.startswith("CAST(", self.at):
            text = self._cast()
        elif self.text[self.at] == "'":
            text = self._quoted(as_sql)
        else:
            text = self._bare(ends)
        return parse_blob(text) if column.type.name == "variant" else parse_value(column.type, text)

    def _bare(self, ends: str) -> str:
        start = self.at
        while self.text[self.at] not in ends:
            self.at += 1
        return self.text[start : self.at]

    def _cast(self) -> str:
        self.at += len("CAST(")
        inner = self._quoted(doubled=True)
        rest = _CAST_TYPE.match(self.text, self.at)
        if rest is None:
            raise ValueError(self.text)
        self.at = rest.end()
        return inner

    def _quoted(self, doubled: bool) -> str:
        self._expect("'")
        out: list[str] = []
        while True:
            char = self.text[self.at]
            follows = self.text[self.at + 1 : self.at + 2]
            if not doubled and char == "\\":
                char = follows
                self.at += 1
            elif char == "'" and doubled and follows == "'":
                self.at += 1
            elif char == "'":
                self.at += 1
                return "".join(out)
            out.append(char)
            self.at += 1

    def _expect(self, token: str) -> None:
        if not self.text.startswith(token, self.at):
            raise ValueError(self.text)
        self.at += len(token)
