"""From one type of a column to another by what DuckLake can do: fields of structs come and go, plain types widen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import Column

Path = tuple[str, ...]


@dataclass(frozen=True)
class NewField:
    path: Path
    field: Column


@dataclass(frozen=True)
class GoneField:
    path: Path


@dataclass(frozen=True)
class OtherType:
    """What is no struct on both sides has another type; whether DuckLake can widen it is not said."""

    path: Path
    there: Column
    wanted: Column


Difference = NewField | GoneField | OtherType


def differences(there: Column, wanted: Column, path: Path) -> Iterator[Difference]:
    """What has to become of the column at a path for it to have the wanted type."""
    if there.type != wanted.type or not there.children:
        if there.type != wanted.type:
            yield OtherType(path, there, wanted)
        return
    for child in wanted.children:
        known = there.child(child.name)
        if known is None:
            yield NewField((*path, child.name), child)
        else:
            yield from differences(known, child, (*path, known.name))
    for child in there.children:
        if wanted.child(child.name) is None:
            yield GoneField((*path, child.name))
