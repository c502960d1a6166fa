"""The judge: DuckDB with its own ducklake extension, loaded from wheels, never from a network.

It runs in a process of its own. The extension is for one version of DuckDB, and the tests run with others; and two
DuckDBs, or two SQLite libraries, of one process do not see each other's locks.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

# Where `make` installs what tests/judge-requirements.txt names.
FOLDER = Path(os.environ.get("DBT_DUCKLAKE_TEST_JUDGE", Path(sys.prefix) / "judge"))
# The version of the lakes that it reads; `any` for a judge that reads them all.
LAKE_VERSION = os.environ.get("DBT_DUCKLAKE_TEST_JUDGE_READS", "1.0")
_SERVER = Path(__file__).with_name("judge_process.py")


def extension_file(name: str) -> Path:
    """The extension binary that the wheel `duckdb-extension-<name>` carries."""
    return next((FOLDER / f"duckdb_extension_{name}" / "extensions").glob(f"*/{name}.duckdb_extension"))


class _Process:
    def __init__(self) -> None:
        assert FOLDER.is_dir(), f"The judge is not installed in {FOLDER}: run make check."
        self._process = subprocess.Popen(
            [sys.executable, str(_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(FOLDER)},
        )  # fmt: skip
        self._lock = threading.Lock()
        atexit.register(self._end)

    def ask(self, *request: object) -> Any:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        with self._lock:
            pickle.dump(request, to)
            to.flush()
            kind, found = pickle.load(back)
        if kind == "error":
            name, text = found
            raise getattr(duckdb, name, RuntimeError)(text)
        return found

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(20)


class Judge:
    """One DuckDB session that may attach lakes. Sessions do not share caches."""

    def __init__(self) -> None:
        self._process = _idle.pop() if _idle else _Process()
        self._process.ask("open")
        self._is_open = True

    def attach(self, metadata: str, name: str = "lake", **options: object) -> None:
        given = [f"{key.upper()} {_option(value)}" for key, value in options.items() if value is not None]
        where = metadata.replace("'", "''")
        self.run(f"ATTACH 'ducklake:{where}' AS {name}" + (f" ({', '.join(given)})" if given else ""))

    def detach(self, name: str = "lake") -> None:
        self.run("USE memory", f"DETACH {name}")

    @contextmanager
    def attached(self, metadata: str, name: str = "lake", **options: object) -> Iterator[Judge]:
        self.attach(metadata, name, **options)
        try:
            yield self
        finally:
            # An error within a transaction leaves it open.
            with suppress(duckdb.TransactionException):
                self.run("ROLLBACK")
            self.detach(name)

    @contextmanager
    def registered(self, name: str, rows: pa.Table) -> Iterator[None]:
        """Rows of Arrow's under a name."""
        self._process.ask("register", name, rows)
        try:
            yield
        finally:
            self._process.ask("unregister", name)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.rows(statement)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return list(self._process.ask("rows", sql, list(values)))

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._process.ask("close")
            _idle.append(self._process)

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
_idle: list[_Process] = []


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"
