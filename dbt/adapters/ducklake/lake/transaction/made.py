"""What a snapshot did, in the vocabulary of `ducklake_snapshot_changes.changes_made`.

The vocabulary is closed: one word that DuckDB does not know makes its concurrent commits fail, and its list of
snapshots for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dbt.adapters.ducklake.lake.errors import InvalidMetadata

_ID_WORDS = (
    "dropped_schema", "dropped_table", "dropped_view", "dropped_scalar_macro", "dropped_table_macro",
    "inserted_into_table", "deleted_from_table", "altered_table", "altered_view", "inlined_insert", "inlined_delete",
    "inline_flush", "flushed_inlined", "merge_adjacent", "rewrite_delete", "compacted_table",
)  # fmt: skip
_CREATED_IN_SCHEMA = ("created_table", "created_view", "created_scalar_macro", "created_table_macro")
# The order in which DuckDB emits them.
_ORDER: Final = (
    "dropped_schema", "dropped_table", "dropped_view", "created_schema", "created_table", "created_scalar_macro",
    "created_table_macro", "dropped_scalar_macro", "dropped_table_macro", "inserted_into_table", "deleted_from_table",
    "altered_table", "altered_view", "inlined_insert", "inlined_delete", "inline_flush", "merge_adjacent",
    "rewrite_delete",
)  # fmt: skip
_PLACE = {word: place for place, word in enumerate(_ORDER)} | {"created_view": _ORDER.index("created_table")}

_QUOTED = r'"((?:[^"]|"")*)"'
_CHANGE = re.compile(rf"([A-Za-z_]+):(?:(\d+)|{_QUOTED}(?:\.{_QUOTED})?)(?:,|$)")


@dataclass(frozen=True, slots=True)
class Made:
    """One change. `id` of an existing object; `schema` and `name` where the word names a new one, and for messages."""

    word: str
    id: int | None = None
    schema: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        if self.word in _ID_WORDS:
            return f"{self.word}:{self.id}"
        if self.word == "created_schema":
            return f"{self.word}:{_quoted(self.name)}"
        return f"{self.word}:{_quoted(self.schema)}.{_quoted(self.name)}"


def changes_text(made: Iterable[Made]) -> str | None:
    texts = [change.text for change in sorted(made, key=lambda change: _PLACE[change.word])]
    return ",".join(dict.fromkeys(texts)) or None


def parse_changes(text: str | None) -> tuple[Made, ...]:
    """The changes of a text; words in any case and order. A text outside the grammar is an error, as for DuckDB."""
    found, position = [], 0
    while text and position < len(text):
        match = _CHANGE.match(text, position)
        if match is None or not _is_sound(match):
            raise InvalidMetadata(f"changes_made holds {text[position:]!r}", "DuckDB cannot read that either.")
        word, number, first, second = match.groups()
        if number is not None:
            found.append(Made(word.lower(), id=int(number)))
        else:
            schema, name = (first, second) if second is not None else (None, first)
            found.append(Made(word.lower(), schema=_plain(schema), name=_plain(name)))
        position = match.end()
    return tuple(found)


def _is_sound(match: re.Match[str]) -> bool:
    word, number, first, second = match.groups()
    word = word.lower()
    if word in _ID_WORDS:
        return number is not None
    if word == "created_schema":
        return first is not None and second is None
    return word in _CREATED_IN_SCHEMA and second is not None


def _quoted(name: str | None) -> str:
    return '"' + (name or "").replace('"', '""') + '"'


def _plain(name: str | None) -> str | None:
    return None if name is None else name.replace('""', '"')
