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
from dbt.adapters.ducklake.lake.names import quoted

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

_NAME = re.compile(r'"((?:[^"]|"")*)"')
_QUOTED = r'"(?:[^"]|"")*"'
_CHANGE = re.compile(rf"([A-Za-z_]+):(?:(\d+)|({_QUOTED}(?:\.{_QUOTED})*))(?:,|$)")


@dataclass(frozen=True, slots=True)
class Made:
    """One change. `id` of an existing object; `schema`, from the top down, and `name` where the word names a new one,
    and for messages."""

    word: str
    id: int | None = None
    schema: tuple[str, ...] = ()
    name: str | None = None

    @property
    def text(self) -> str:
        if self.word in _ID_WORDS:
            return f"{self.word}:{self.id}"
        return f"{self.word}:{'.'.join(map(quoted, (*self.schema, self.name or '')))}"


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
        word, number, names = match.groups()
        if number is not None:
            found.append(Made(word.lower(), id=int(number)))
        else:
            *schema, name = _parts(names)
            found.append(Made(word.lower(), schema=tuple(schema), name=name))
        position = match.end()
    return tuple(found)


def _is_sound(match: re.Match[str]) -> bool:
    word, number, names = match.groups()
    word = word.lower()
    if word in _ID_WORDS:
        return number is not None
    if word == "created_schema":
        return names is not None
    return word in _CREATED_IN_SCHEMA and names is not None and len(_parts(names)) > 1


def _parts(names: str) -> list[str]:
    return [inner.replace('""', '"') for inner in _NAME.findall(names)]
