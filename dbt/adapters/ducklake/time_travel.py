"""Relations at another time, and what changed in between: the SQL of the macros that say so."""

from __future__ import annotations

from dbt.adapters.base import BaseRelation
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.lake import exact_path
from dbt.adapters.ducklake.spark.schema import quoted, string_literal
from dbt.adapters.ducklake.statements.reader import Name, Reader


def at(relation: BaseRelation | str, version: object = None, timestamp: object = None) -> str:
    """A relation at a snapshot, or as it was at a moment, to stand in FROM."""
    if (version is None) == (timestamp is None):
        raise DbtRuntimeError(f"{relation} at another time takes either `version` or `timestamp`.")
    name = ".".join(map(quoted, parts_of(relation)))
    if timestamp is not None:
        return f"{name} TIMESTAMP AS OF {string_literal(str(timestamp))}"
    return f"{name} VERSION AS OF {_version(relation, version)}"


def changes(relation: BaseRelation | str, home: tuple[str, str], start: object, end: object) -> str:
    """The rows that came and went in a relation from one snapshot or moment to another, both included."""
    whole = three_parts(parts_of(relation), home)
    arguments = [*map(string_literal, whole), _bound(relation, start), _bound(relation, end)]
    return f"ducklake_table_changes({', '.join(arguments)})"


def rollback(relation: BaseRelation | str, version: object = None, timestamp: object = None) -> str:
    """The statement that makes a table's rows those of another time; the table's columns stay those of today."""
    name = ".".join(map(quoted, parts_of(relation)))
    return f"INSERT INTO {name} BY NAME REPLACE WHERE TRUE SELECT * FROM {at(relation, version, timestamp)}"


def parts_of(relation: BaseRelation | str) -> tuple[str, ...]:
    """The parts of a name. A relation's own, whatever dbt would have it rendered as."""
    if isinstance(relation, str):
        name: Name = Reader(relation).name()
        return name.parts
    return tuple(part for part in (relation.database, relation.schema, relation.identifier) if part)


def three_parts(parts: tuple[str, ...], home: tuple[str, str]) -> tuple[str, str, str]:
    """Lake, schema and name as functions take them: a schema that lies in others is one text."""
    if len(parts) > 3:
        return parts[0], exact_path(parts[1:-1]), parts[-1]
    lake, schema, own = (*home[: 3 - len(parts)], *parts)
    return lake, schema, own


def lake_of(relation: BaseRelation | str) -> str | None:
    parts = parts_of(relation)
    return parts[0] if len(parts) > 2 else None


def _bound(relation: object, value: object) -> str:
    is_number = isinstance(value, int) or (isinstance(value, str) and value.isdecimal())
    return str(_version(relation, value)) if is_number else string_literal(str(value))


def _version(relation: object, value: object) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise DbtRuntimeError(f"{relation} at snapshot {value!r}: a snapshot is a whole number.")
    return int(str(value))
