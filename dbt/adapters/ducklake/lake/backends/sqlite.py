"""Metadata in a SQLite file, which is open only for the moment of a transaction.

A writer takes SQLite's write lock before it reads (BEGIN IMMEDIATE), because a transaction that reads first and
writes later cannot wait for another writer: it fails at once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote
from uuid import UUID

from dbt.adapters.ducklake.lake import calendar
from dbt.adapters.ducklake.lake.backends.base import Backend, Connection, Contended, Row, Storage, encoded
from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.errors import InvalidDescription, LakeHeld, MetadataQueryFailed
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.lake.nested_text import nested_text, parse_nested
from dbt.adapters.ducklake.lake.values import Value, parse_value, value_text

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NUMBERS = frozenset({"boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_from_text(text: str) -> datetime:
    return _EPOCH + timedelta(microseconds=calendar.parse_timestamp(text, "timestamptz"))


def text_from_timestamp(moment: datetime) -> str:
    """The form DuckDB writes: always UTC. Expiry compares these texts, so every writer must write the same form."""
    return calendar.timestamp_text((moment - _EPOCH) // timedelta(microseconds=1), "timestamptz")


class SqliteStorage(Storage):
    physical_types: ClassVar = {
        "BIGINT": "BIGINT",
        "VARCHAR": "VARCHAR",
        "BOOLEAN": "BIGINT",
        "UUID": "VARCHAR",
        "TIMESTAMPTZ": "VARCHAR",
    }
    encode: ClassVar = {"BOOLEAN": int, "UUID": str, "TIMESTAMPTZ": text_from_timestamp}
    decode: ClassVar = {"BOOLEAN": bool, "UUID": UUID, "TIMESTAMPTZ": timestamp_from_text}

    def inlined_type(self, column: Column) -> str:
        if column.type.name in _NUMBERS:
            return "BIGINT"
        return {"blob": "BLOB", "variant": "BLOB", "null": "INTEGER"}.get(column.type.name, "VARCHAR")

    def can_inline(self, column: Column) -> bool:
        return column.type.name not in ("geometry", "variant")

    def inlined_selected(self, column: Column, name: str) -> str:
        return name

    def inlined_value(self, column: Column, stored: Any) -> Value:
        if stored is None:
            return None
        if column.type.is_container:
            return parse_nested(column, stored)
        if column.type.name == "boolean":
            return bool(stored)
        if isinstance(stored, (int, bytes)) and column.type.name in (*_NUMBERS, "blob", "variant"):
            return stored
        return parse_value(column.type, stored.decode() if isinstance(stored, bytes) else str(stored))

    def inlined_bound(self, column: Column, value: Value) -> object:
        if value is None or column.type.name in ("varchar", "json", "blob", "variant"):
            return value
        if column.type.name in _NUMBERS:
            return int(value)
        return nested_text(column, value) if column.type.is_container else value_text(column.type, value)


class SqliteConnection(Connection):
    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection, self._name = connection, name

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        # SQLite reads $1 as a name.
        bound = {str(place): value for place, value in enumerate(values, 1)}
        with self.noting_failure(), _translated(self._name):
            return self._connection.execute(sql, bound).fetchall()

    def execute(self, sql: str, values: Sequence[object] = ()) -> None:
        self.rows(sql, values)

    def insert(self, relation: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {relation} ({', '.join(map(quoted, columns))}) VALUES ({marks})"
        with self.noting_failure(), _translated(self._name):
            self._connection.executemany(sql, encoded(SqliteBackend.storage, list(columns.values()), rows))

    def columns_of(self, name: str) -> list[str]:
        return [row[0] for row in self.rows("SELECT name FROM pragma_table_info($1)", [name])]

    def has_table(self, name: str) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1", [name]))


class SqliteBackend(Backend):
    kind = "sqlite"
    storage = SqliteStorage()
    has_sequences = False

    def __init__(self, path: Path, wait: float) -> None:
        super().__init__()
        self.path, self.wait = os.path.abspath(path), wait
        self.name = f"sqlite:{path}"

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def prepare(self) -> None:
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise InvalidDescription(f"The folder {folder} of the metadata file is not there.", "Make it first.")
        with self._connected("rwc"):
            pass

    def qualified(self, table: str) -> str:
        return quoted(table)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        # A file that may be written is opened so even for reading: only then can SQLite undo what a killed writer left.
        with self._connected("rw" if os.access(self.path, os.W_OK) else "ro") as connection:
            self._begin(connection, "BEGIN")
            yield SqliteConnection(connection, self.name)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._connected("rw") as connection:
            self._begin(connection, "BEGIN IMMEDIATE")
            yield SqliteConnection(connection, self.name)
            with _translated(self.name):
                connection.execute("COMMIT")

    @contextmanager
    def _connected(self, mode: str) -> Iterator[sqlite3.Connection]:
        # Closing rolls back what was not committed.
        uri = f"file:{quote(self.path)}?mode={mode}"
        try:
            opened = sqlite3.connect(uri, uri=True, timeout=self.wait, isolation_level=None)
        except sqlite3.Error as error:
            raise MetadataQueryFailed(self.name, str(error)) from error
        with closing(opened) as connection:
            yield connection

    def _begin(self, connection: sqlite3.Connection, how: str) -> None:
        try:
            connection.execute(how)
            # BEGIN alone touches nothing; this takes the lock, or finds the file unreadable.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            if _code(error) in _BUSY:
                raise LakeHeld(self.path, self.wait, "another process that writes to it") from error
            raise MetadataQueryFailed(self.name, str(error)) from error


def _code(error: sqlite3.Error) -> int:
    """The primary code: extended ones carry more in the higher bits."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


@contextmanager
def _translated(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if _code(error) in _BUSY:
            raise Contended(str(error)) from error
        raise MetadataQueryFailed(name, str(error)) from error
