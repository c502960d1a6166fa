"""Ids, names and the quoting of names."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import NewType
from uuid import UUID

SnapshotId = NewType("SnapshotId", int)
SchemaId = NewType("SchemaId", int)
TableId = NewType("TableId", int)
"""Tables and views share one sequence of ids. A negative id belongs to an object that is not committed yet."""
ColumnId = NewType("ColumnId", int)
FileId = NewType("FileId", int)
"""Data files, delete files and name mappings share one sequence of ids."""

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_PART = re.compile(r'[^."]+')
_PATH_PART = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
_PATH = re.compile(rf"(?:{_PATH_PART.pattern})(?:\.(?:{_PATH_PART.pattern}))*")
# Only A to Z: DuckDB compares names so, and a wider folding would merge names that it keeps apart.
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def fold(name: str) -> str:
    """The form in which two names are compared: DuckLake keeps case and ignores it."""
    return name.translate(_LOWER)


def quoted(name: str) -> str:
    """A name as an SQL identifier; the same in DuckDB, SQLite and PostgreSQL."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def path_in(name: str) -> tuple[str, ...]:
    """What a name with dots names, part by part: `sales.europe`, or `"sales"."a.b"` where a part has dots itself."""
    if not _PATH.fullmatch(name):
        return (name,)
    return tuple(inner.replace('""', '"') or plain for inner, plain in _PATH_PART.findall(name))


def path_text(parts: Sequence[str]) -> str:
    """The name that `path_in` takes apart again."""
    return ".".join(part if _PLAIN_PART.fullmatch(part) else quoted(part) for part in parts)


def exact_path(parts: Sequence[str]) -> str:
    """A name that means this schema and no other, whatever others there are: in quotes, unless it is a plain word."""
    return parts[0] if len(parts) == 1 and _PLAIN_PART.fullmatch(parts[0]) else ".".join(map(quoted, parts))


def folder_for(name: str, uuid: UUID) -> str:
    """The folder of a new schema or table; names that need escaping in paths give way to the uuid."""
    return f"{name}/" if _PLAIN_PATH.fullmatch(name) else f"{uuid}/"


def new_uuid() -> UUID:
    """A version 7 uuid, as DuckDB gives to new objects: sorted by the time of its making."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    return UUID(int=value)
