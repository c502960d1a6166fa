"""The arguments of a CALL or of a table function: values, some of them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from sqlglot.tokens import TokenType

from dbt.adapters.ducklake.lake import NotASpan, moment_before
from dbt.adapters.ducklake.statements.errors import NotAllowed, NotUnderstood, Place
from dbt.adapters.ducklake.statements.reader import Reader

Literal: TypeAlias = str | int | float | bool | datetime | tuple["Literal", ...] | None
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
    if (found := _composed(reader)) is not None:
        return found
    sign = -1 if reader.accept("-") else 1
    if not reader.is_done and reader.tokens[reader.at].token_type is TokenType.NUMBER:
        text = reader.tokens[reader.at].text
        reader.at += 1
        return sign * (int(text) if text.isdigit() else float(text))
    return reader.string()


def _composed(reader: Reader) -> Literal:
    """A list, or a moment; None where neither comes."""
    if reader.accept("[") or reader.accept("ARRAY", "("):
        closing = ")" if reader.word(-1) == "(" else "]"
        found: list[Literal] = []
        while not reader.accept(closing):
            found.append(_literal(reader))
            if not reader.sees(closing):
                reader.expect(",")
        return tuple(found)
    if reader.word() in _MOMENT_TYPES and not reader.word(1):
        reader.at += 1
        return moment_of(reader.string(), reader.place)
    if reader.accept("NOW", "(", ")") or reader.accept("CURRENT_TIMESTAMP"):
        _ = reader.accept("(", ")")
        return _before(reader, datetime.now(UTC)) if reader.accept("-") else datetime.now(UTC)
    return None


def _before(reader: Reader, moment: datetime) -> datetime:
    reader.expect("INTERVAL")
    place = reader.place
    parts = []
    while not reader.is_done and not reader.sees(","):
        parts.append(str(reader.tokens[reader.at].text))
        reader.at += 1
    try:
        return moment_before(" ".join(parts), moment)
    except NotASpan as error:
        raise NotUnderstood(f"INTERVAL {error}", "Write it as in INTERVAL '7 days'.", place) from error


_MOMENT_TYPES = ("TIMESTAMP", "TIMESTAMPTZ", "DATE")


def moment_of(value: Literal, place: Place | None = None) -> datetime:
    """A moment, of a text one or how long ago it was; what names no zone is UTC."""
    if isinstance(value, datetime):
        return value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        try:
            return moment_before(str(value), datetime.now(UTC))
        except NotASpan:
            raise NotUnderstood(
                f"{value!r}", "Give a moment, such as '2026-01-31 12:00:00', or how long ago, such as '7 days'.", place
            ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
