"""The metadata databases. Each driver is imported only when its kind of database is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.ducklake.lake.backends.base import Backend
from dbt.adapters.ducklake.lake.errors import InvalidDescription

if TYPE_CHECKING:
    from dbt.adapters.ducklake.lake.description import LakeDescription


def backend_for(description: LakeDescription) -> Backend:
    kind, wait, schema = description.kind, description.busy_timeout, description.metadata_schema
    if kind == "postgres":
        from dbt.adapters.ducklake.lake.backends.postgres import PostgresBackend

        return PostgresBackend(description.place, schema or "public", wait)
    path = Path(description.place).expanduser()
    if kind == "duckdb":
        from dbt.adapters.ducklake.lake.backends.duckdb import DuckDbBackend

        return DuckDbBackend(path, schema or "main", wait)
    from dbt.adapters.ducklake.lake.backends.sqlite import SqliteBackend

    if schema not in (None, "main"):
        raise InvalidDescription(f"`metadata_schema` is {schema!r}.", "A SQLite file has no schemas: leave it out.")
    return SqliteBackend(path, wait)
