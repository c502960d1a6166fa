"""A folder that one write has for itself. What is kept of it lies elsewhere afterwards, and after an error nothing
does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbt.adapters.ducklake.lake import Table, new_uuid
from dbt.adapters.ducklake.spark.storage import Storage


@dataclass
class OwnFolder:
    storage: Storage
    path: str
    kept: list[str] = field(default_factory=list)

    def parquet_files(self) -> list[tuple[str, int]]:
        """Path and size of each, in the order of their paths."""
        return sorted((path, size) for path, size in self.storage.files_below(self.path) if path.endswith(".parquet"))

    def keep(self, path: str, target: str) -> str:
        """Where a file of the folder stays: on a disk it is moved to where DuckDB would have put it; an object store
        cannot move."""
        if not self.storage.is_local:
            return path
        self.kept.append(target)
        self.storage.move(path, target)
        return target


@contextmanager
def own_folder(storage: Storage, table: Table) -> Iterator[OwnFolder]:
    folder = OwnFolder(storage, f"{table.location}ducklake-{new_uuid()}/")
    try:
        yield folder
        if storage.is_local:
            storage.remove_folder(folder.path)
    except BaseException:
        for path in folder.kept:
            storage.remove(path)
        storage.remove_folder(folder.path)
        raise
