"""The arguments of a CALL or of a table function: values, some of them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot.tokens import TokenType

from dbt.adapters.ducklake.statements.errors import NotAllowed, Place
from dbt.adapters.ducklake.statements.reader import Reader

Literal: TypeAlias = str | int | float | bool | None
_WORDS: Mapping[str, Literal] = {"TRUE": True, "FALSE": False, "NULL": None}


@dataclass(frozen=True)
class Arguments:
    function: str
    place: Place | None
    positional: tuple[Literal, ...]
    named: Mapping[str, Literal]

    def taken(self, *names: str, required: int) -> dict[str, Literal]:
        """The arguments under these names, in whose order the positional ones come."""
        if len(self.positional) > len(names):
            raise self._wrong(names, f"{len(self.positional)} arguments")
        found = dict(zip(names, self.positional, strict=False))
        for name, value in self.named.items():
            if name not in names or name in found:
                raise self._wrong(names, f"an argument {name}")
            found[name] = value
        if missing := [name for name in names[:required] if name not in found]:
            raise self._wrong(names, f"no {missing[0]}")
        return found

    def _wrong(self, names: tuple[str, ...], found: str) -> NotAllowed:
        return NotAllowed(
            f"call {self.function}", f"it was given {found}", f"It takes: {', '.join(names)}.", self.place
        )


def read_arguments(function: str, text: str, place: Place | None) -> Arguments:
    reader = Reader(text)
    positional: list[Literal] = []
    named: dict[str, Literal] = {}
    while not reader.is_done:
        if reader.word(1) in ("=>", ":=") or (reader.word(1) == ":" and reader.word(2) == "="):
            name = reader.name_part().lower()
            _ = reader.accept("=>") or reader.accept(":=") or reader.accept(":", "=")
            named[name] = _literal(reader)
        else:
            positional.append(_literal(reader))
        if not reader.is_done:
            reader.expect(",")
    return Arguments(function, place, tuple(positional), named)


def _literal(reader: Reader) -> Literal:
    word = reader.word()
    if word in _WORDS:
        reader.at += 1
        return _WORDS[word]
    sign = -1 if reader.accept("-") else 1
    if not reader.is_done and reader.tokens[reader.at].token_type is TokenType.NUMBER:
        text = reader.tokens[reader.at].text
        reader.at += 1
        return sign * (int(text) if text.isdigit() else float(text))
    return reader.string()
