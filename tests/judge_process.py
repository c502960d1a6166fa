"""The judge's own process: DuckDB in the version that its ducklake extension is for, whatever the tests have installed.

It reads requests from its input and writes answers to its output, both pickled: `Judge` is the other end.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import duckdb

EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner")


def opened() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 2})
    for name in EXTENSIONS:
        folder = Path(importlib.import_module(f"duckdb_extension_{name}").__path__[0]) / "extensions"
        connection.execute(f"LOAD '{folder / f'v{duckdb.__version__}' / f'{name}.duckdb_extension'}'")
    # One PostgreSQL connection per attached database is enough here, and the server has few.
    connection.execute("SET pg_connection_limit = 4")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def answer(connection: duckdb.DuckDBPyConnection, request: tuple[Any, ...]) -> Any:
    kind, *given = request
    if kind == "rows":
        return connection.execute(*given).fetchall()
    if kind == "register":
        return connection.register(*given) and None
    assert kind == "unregister"
    return connection.unregister(*given) and None


def main() -> None:
    # What DuckDB prints would be taken for an answer.
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    connection: duckdb.DuckDBPyConnection | None = None
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        try:
            if request[0] in ("open", "close"):
                if connection is not None:
                    connection.close()
                connection, found = opened() if request[0] == "open" else None, None
            else:
                assert connection is not None
                found = answer(connection, request)
            said = ("answer", found)
        except Exception as error:
            said = ("error", (type(error).__name__, str(error)))
        pickle.dump(said, answers)
        answers.flush()


if __name__ == "__main__":
    main()
