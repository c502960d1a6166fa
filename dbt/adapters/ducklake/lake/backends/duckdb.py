"""Metadata in a DuckDB file, which is open only for the moment of a transaction.

DuckDB lets one process write a file, or several read it. One in-memory DuckDB per process attaches the file,
read-only where only reading is meant, and detaches it when the transaction ends, so that other processes come in
between. Within the process a lock per file lets one transaction at a time in: each takes milliseconds, and DuckDB
cannot attach a file twice.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

from dbt.adapters.ducklake.lake.backends.base import Backend, Connection, Contended, Row
from dbt.adapters.ducklake.lake.backends.duckdb_values import EPOCH, DuckDbStorage
from dbt.adapters.ducklake.lake.errors import (
    FileTooNew,
    InvalidDescription,
    LakeError,
    LakeHeld,
    MetadataQueryFailed,
)
from dbt.adapters.ducklake.lake.names import quoted

_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.05
# Up to here a bound value per cell is the faster way to insert rows.
_FEW_ROWS = 2
# What DuckDB says of a file that others hold: another process, another DuckDB of this one, another process on Windows.
_HELD_HERE = "Unique file handle conflict"
_HELD = ("Could not set lock on file", _HELD_HERE, "being used by another process")
_NO_DATABASE = "not a valid DuckDB database file"
_TOO_NEW = "database file with version number"
# The storage version that all supported versions of DuckDB open, with VARIANT, which older ones have not.
OPENED_BY_ALL = "v1.5.0"


def _completed(cursor: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()) -> list[Row]:
    """Run a statement to its end. DuckDB 2.0 only begins a query, and what was begun keeps its connection."""
    return cursor.execute(_parsed(cursor, sql), list(values)).fetchall()


# Statements by their text: DuckDB 2.0 takes a third of a small query's time to parse it.
_statements: dict[str, duckdb.Statement] = {}
_MOST_STATEMENTS, _LONGEST_STATEMENT = 1_000, 2_000


def _parsed(cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement | str:
    found = _statements.get(sql)
    if found is None:
        found, *more = cursor.extract_statements(sql)
        if more:
            # DuckDB 1.5 makes two of an ALTER that adds a column with a default.
            return sql
        if len(_statements) >= _MOST_STATEMENTS:
            _statements.clear()
        if len(sql) <= _LONGEST_STATEMENT:
            _statements[sql] = found
    return found


class DuckDbConnection(Connection):
    def __init__(self, cursor: duckdb.DuckDBPyConnection, name: str, alias: str, schema: str) -> None:
        self._cursor, self._name, self._alias, self._schema = cursor, name, alias, schema

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        with self.noting_failure():
            try:
                return _completed(self._cursor, sql, values)
            except duckdb.Error as error:
                raise _query_failed(self._name, error) from error

    def execute(self, sql: str, values: Sequence[object] = ()) -> None:
        self.rows(sql, values)

    def insert(self, relation: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        if len(rows) <= _FEW_ROWS:
            self._insert_few(relation, columns, rows)
            return
        # One JSON text instead of a bound value per cell: a hundred times faster for a thousand rows.
        structure = {f"c{place}": _JSON_TYPES[logical] for place, logical in enumerate(columns.values())}
        shown = (_FROM_JSON.get(logical, "{}").format(f"c{place}") for place, logical in enumerate(columns.values()))
        text = json.dumps([{f"c{p}": _json_value(v) for p, v in enumerate(row)} for row in rows], ensure_ascii=False)
        self.execute(
            f"INSERT INTO {relation} ({', '.join(map(quoted, columns))}) SELECT {', '.join(shown)} "
            "FROM (SELECT unnest(from_json($1, $2), recursive := true))",
            [text, json.dumps([structure])],
        )

    def _insert_few(self, relation: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        types, width = DuckDbBackend.storage.physical_types, len(columns)
        places = (
            ", ".join(f"CAST(${row * width + n} AS {types[logical]})" for n, logical in enumerate(columns.values(), 1))
            for row in range(len(rows))
        )
        values = ", ".join(f"({place})" for place in places)
        bound = [value for row in rows for value in row]
        self.execute(f"INSERT INTO {relation} ({', '.join(map(quoted, columns))}) VALUES {values}", bound)

    def columns_of(self, name: str) -> list[str]:
        table = f"{quoted(self._alias)}.{quoted(self._schema)}.{quoted(name)}"
        return [name for (name,) in self.rows(f"SELECT column_name FROM (DESCRIBE {table})")]

    def has_table(self, name: str) -> bool:
        # To look and fail would be faster, but ends the transaction.
        where = "database_name = $1 AND schema_name = $2 AND table_name = $3"
        return bool(self.rows(f"SELECT 1 FROM duckdb_tables() WHERE {where}", [self._alias, self._schema, name]))


_JSON_TYPES = {
    "BIGINT": "BIGINT",
    "VARCHAR": "VARCHAR",
    "BOOLEAN": "BOOLEAN",
    "UUID": "VARCHAR",
    "TIMESTAMPTZ": "BIGINT",
}
# The session's time zone is UTC, so a plain timestamp becomes the same instant.
_FROM_JSON = {"UUID": "CAST({} AS UUID)", "TIMESTAMPTZ": "CAST(make_timestamp({}) AS TIMESTAMPTZ)"}


def _json_value(value: object) -> object:
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    return value if value is None or isinstance(value, (int, str, bool)) else str(value)


def _query_failed(name: str, error: duckdb.Error) -> Exception:
    if isinstance(error, duckdb.TransactionException):
        return Contended(str(error))
    return MetadataQueryFailed(name, str(error))


class _Instance:
    """The one DuckDB of this process through which metadata files are opened, and a lock for each of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._duckdb: duckdb.DuckDBPyConnection | None = None
        self._files: dict[str, threading.Lock] = {}
        # The files that a thread reads, by their paths, with its cursor.
        self.reading = threading.local()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._duckdb is None:
                # Nothing is fetched from a network behind the user's back, and metadata needs no second thread.
                self._duckdb = duckdb.connect(
                    ":memory:",
                    config={
                        "threads": 1,
                        "autoinstall_known_extensions": "false",
                        "autoload_known_extensions": "false",
                    },
                )
                _completed(self._duckdb, "SET GLOBAL TimeZone = 'UTC'")
                # DuckDB 2.0.0 takes coalesce(sum(...), 0) for 0 if it finds that one side of an outer join is empty.
                _completed(self._duckdb, "SET GLOBAL disabled_optimizers = 'statistics_propagation'")
            return self._duckdb.cursor()

    def lock_of(self, path: str) -> threading.Lock:
        with self._lock:
            return self._files.setdefault(path, threading.Lock())

    def alias_of(self, path: str) -> str:
        with self._lock:
            return f"metadata_{list(self._files).index(path)}"

    def discard(self) -> None:
        """Forget a DuckDB that could not let go of a file."""
        with self._lock:
            self._duckdb = None


_instance = _Instance()


class DuckDbBackend(Backend):
    kind = "duckdb"
    storage = DuckDbStorage()

    def __init__(self, path: Path, schema: str, wait: float, storage_version: str) -> None:
        super().__init__()
        self.path, self.schema, self.wait = os.path.realpath(path), schema, wait
        # Of a new file: it says which versions of DuckDB can open it.
        self.storage_version = storage_version
        self.name = f"duckdb:{path}"
        self._lock = _instance.lock_of(self.path)
        self._alias = _instance.alias_of(self.path)

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def prepare(self) -> None:
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise InvalidDescription(f"The folder {folder} of the metadata file is not there.", "Make it first.")
        with self._attached(read_only=False) as cursor:
            _completed(cursor, f"CREATE SCHEMA IF NOT EXISTS {quoted(self._alias)}.{quoted(self.schema)}")

    def qualified(self, table: str) -> str:
        return f"{quoted(self._alias)}.{quoted(self.schema)}.{quoted(table)}"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        # Several lakes may be in one file, as tenants are, and a statement may read more than one of them.
        open_here: dict[str, duckdb.DuckDBPyConnection] = _instance.reading.__dict__
        if self.path in open_here:
            yield DuckDbConnection(open_here[self.path], self.name, self._alias, self.schema)
            return
        with self._attached(read_only=True) as cursor:
            _completed(cursor, "BEGIN")
            open_here[self.path] = cursor
            try:
                yield DuckDbConnection(cursor, self.name, self._alias, self.schema)
            finally:
                del open_here[self.path]
                _completed(cursor, "ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._attached(read_only=False) as cursor:
            _completed(cursor, "BEGIN")
            try:
                yield DuckDbConnection(cursor, self.name, self._alias, self.schema)
                _commit(cursor, self.name)
            except BaseException:
                _roll_back(cursor)
                raise

    @contextmanager
    def _attached(self, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        if not self._lock.acquire(timeout=self.wait):
            raise LakeHeld(self.path, self.wait, "another transaction of this process")
        try:
            cursor = _instance.cursor()
            self._attach(cursor, read_only)
            try:
                yield cursor
            finally:
                self._detach(cursor)
        finally:
            self._lock.release()

    def _attach(self, cursor: duckdb.DuckDBPyConnection, read_only: bool) -> None:
        path = self.path.replace("'", "''")
        deadline, pause = time.monotonic() + self.wait, _FIRST_WAIT
        while True:
            try:
                _completed(cursor, f"ATTACH '{path}' AS {quoted(self._alias)}{self._options(read_only)}")
                return
            except duckdb.Error as error:
                if not any(text in str(error) for text in _HELD):
                    raise self._unusable(str(error)) from error
                if time.monotonic() + pause > deadline:
                    raise LakeHeld(self.path, self.wait, _holder(str(error))) from error
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_WAIT)

    def _options(self, read_only: bool) -> str:
        if read_only:
            return " (READ_ONLY)"
        # A file that is there keeps its version.
        is_new = not os.path.exists(self.path) or not os.path.getsize(self.path)
        return f" (STORAGE_VERSION '{self.storage_version}')" if is_new else ""

    def _unusable(self, said: str) -> LakeError:
        """Why a file cannot be opened. It is not looked into: to close it would end this process's locks on it."""
        if _TOO_NEW in said:
            return FileTooNew(self.path, f"DuckDB {duckdb.__version__}", said.splitlines()[0])
        if os.path.exists(self.path) and not os.access(self.path, os.R_OK):
            return MetadataQueryFailed(self.name, "the file may not be read by this user")
        if _NO_DATABASE in said or (os.path.exists(self.path) and not os.path.getsize(self.path)):
            return MetadataQueryFailed(self.name, "the file is not a DuckDB database")
        return MetadataQueryFailed(self.name, said)

    def _detach(self, cursor: duckdb.DuckDBPyConnection) -> None:
        try:
            _completed(cursor, f"DETACH {quoted(self._alias)}")
        except duckdb.Error:
            # What was committed is in the write-ahead log, so this is no failure of the transaction. The next one
            # opens the file anew, through another DuckDB.
            _instance.discard()
        finally:
            cursor.close()


def _commit(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    try:
        _completed(cursor, "COMMIT")
    except duckdb.Error as error:
        raise _query_failed(name, error) from error


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        _completed(cursor, "ROLLBACK")
    except duckdb.TransactionException:
        return  # DuckDB has rolled back itself


def _holder(said: str) -> str:
    who = "another DuckDB connection of this process" if _HELD_HERE in said else "another process"
    return f"{who} (DuckDB says: {said})"
