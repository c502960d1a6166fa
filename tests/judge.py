"""The judge: DuckDB with its own ducklake extension, loaded from wheels, never from a network."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb


def extension_file(name: str) -> Path:
    """The extension binary that the wheel `duckdb-extension-<name>` carries for the running DuckDB."""
    folder = Path(importlib.import_module(f"duckdb_extension_{name}").__path__[0]) / "extensions"
    return folder / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"


class Judge:
    """One DuckDB session that may attach lakes. Sessions of one process do not share caches."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 2})
        for name in ("ducklake", "sqlite_scanner", "postgres_scanner"):
            self.connection.execute(f"LOAD '{extension_file(name)}'")
        # One PostgreSQL connection per attached database is enough here, and the server has few.
        self.connection.execute("SET pg_connection_limit = 4")
        self.connection.execute("SET TimeZone = 'UTC'")

    def attach(self, metadata: str, name: str = "lake", **options: object) -> None:
        given = [f"{key.upper()} {_option(value)}" for key, value in options.items() if value is not None]
        where = metadata.replace("'", "''")
        self.connection.execute(f"ATTACH 'ducklake:{where}' AS {name}" + (f" ({', '.join(given)})" if given else ""))

    def detach(self, name: str = "lake") -> None:
        self.connection.execute("USE memory")
        self.connection.execute(f"DETACH {name}")

    @contextmanager
    def attached(self, metadata: str, name: str = "lake", **options: object) -> Iterator[Judge]:
        self.attach(metadata, name, **options)
        try:
            yield self
        finally:
            # An error within a transaction leaves it open.
            with suppress(duckdb.TransactionException):
                self.connection.execute("ROLLBACK")
            self.detach(name)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, list(values)).fetchall()

    def close(self) -> None:
        self.connection.close()

    @classmethod
    def of_this_process(cls) -> Judge:
        """A session that is kept: loading the extensions takes longer than most questions. Attach, ask and detach."""
        global _kept
        if _kept is None:
            _kept = cls()
        return _kept

    @classmethod
    def forget(cls) -> None:
        """Have the next `of_this_process` begin anew, as after an error that DuckDB calls fatal."""
        global _kept
        _kept = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_kept: Judge | None = None


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"
