"""Everything this room raises, each with the line and column of what it is about.

StatementError
├── NotUnderstood      SQL that is not read here: said by name, never guessed
├── NameNotFound       a table, schema, column or lake that is named and not there
└── NotAllowed         a statement that is understood and cannot be done, with its reason
"""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    line: int
    column: int

    def __str__(self) -> str:
        return f"Line {self.line}, column {self.column}"


class StatementError(Exception):
    def __init__(self, text: str, place: Place | None = None) -> None:
        self.text, self.place = text, place
        super().__init__(f"{place}: {text}" if place else text)


class NotUnderstood(StatementError):
    def __init__(self, found: str, expected: str, place: Place | None = None) -> None:
        self.found, self.expected = found, expected
        super().__init__(f"{found} is not supported on a DuckLake lake. {expected}", place)


class NameNotFound(StatementError):
    pass


class NotAllowed(StatementError):
    def __init__(self, asked: str, found: str, remedy: str, place: Place | None = None) -> None:
        self.asked, self.found, self.remedy = asked, found, remedy
        super().__init__(f"Cannot {asked}: {found}. {remedy}", place)
