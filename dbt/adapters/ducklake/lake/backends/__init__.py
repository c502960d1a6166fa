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
    version = description.metadata_storage_version
    if kind == "postgres":
        from dbt.adapters.ducklake.lake.backends.postgres import PostgresBackend

        return PostgresBackend(description.place, schema or "public", wait)
    if description.is_remote:
        from dbt.adapters.ducklake.lake.backends.remote import RemoteBackend

        options, at_end = description.metadata_options or {}, description.metadata_put == "end"
        return RemoteBackend(
            description.place, lambda path: _on_file(kind, path, schema, wait, version), options, wait, at_end
        )
    return _on_file(kind, Path(description.place).expanduser(), schema, wait, version)


def _on_file(kind: str, path: Path, schema: str | None, wait: float, storage_version: str | None) -> Backend:
    if kind == "duckdb":
        from dbt.adapters.ducklake.lake.backends.duckdb import OPENED_BY_ALL, DuckDbBackend

        return DuckDbBackend(path, schema or "main", wait, storage_version or OPENED_BY_ALL)
    from dbt.adapters.ducklake.lake.backends.sqlite import SqliteBackend

    if schema not in (None, "main"):
        raise InvalidDescription(f"`metadata_schema` is {schema!r}.", "A SQLite file has no schemas: leave it out.")
    return SqliteBackend(path, wait)
