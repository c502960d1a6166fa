"""Metadata in PostgreSQL, through a bounded pool of connections.

Reading is REPEATABLE READ: several queries must see one state, or files that a compaction replaces between two of
them would be seen twice or not at all.

Writing is READ COMMITTED. The snapshot row is inserted first; whoever inserts the same id waits, then fails, so once
that insert has succeeded nobody else can commit and every later query sees exactly the state the new snapshot
follows. REPEATABLE READ would freeze the state before the wait and fail each time another writer was faster. An
advisory lock lets our own writers queue instead of collide; DuckDB does not know it and is kept out by the snapshot's
key.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC
from typing import Any, ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.raw_cursor import RawCursor
from psycopg_pool import ConnectionPool, PoolTimeout

from dbt.adapters.ducklake.lake.backends.base import Backend, CommitBroken, Connection, Contended, Row, Storage, encoded
from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.errors import InvalidDescription, LakeHeld, MetadataQueryFailed, ServerUnreachable
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.lake.nested_text import nested_text, parse_nested
from dbt.adapters.ducklake.lake.types import TIMESTAMPS
from dbt.adapters.ducklake.lake.values import Value, parse_value, value_text

# dbt's threads share these; one that finds none free waits. A connection is given back after each transaction, ends
# when it has been idle, and does not outlive an hour, so that fail-overs and password changes reach a long run.
_MOST_CONNECTIONS, _IDLE_SECONDS, _LIFETIME_SECONDS = 8, 120.0, 3600.0

_SERIALIZATION_FAILURE, _DEADLOCK, _UNIQUE_VIOLATION, _LOCK_TIMEOUT = "40001", "40P01", "23505", "55P03"
_CONTENDED = frozenset({_SERIALIZATION_FAILURE, _DEADLOCK, _UNIQUE_VIOLATION, _LOCK_TIMEOUT})
_OUTCOME_UNKNOWN = frozenset({"40003", "08007"})
_MET_FIRST = ("ducklake_snapshot", "ducklake_snapshot_lineage")
_TABLE_EXISTS = frozenset({"42P07", "42P06"})

_TYPES = {
    "boolean": "boolean", "int8": "smallint", "int16": "smallint", "int32": "integer", "int64": "bigint",
    "uint8": "integer", "uint16": "integer", "uint32": "bigint", "float32": "real", "float64": "double precision",
    "varchar": "bytea", "json": "bytea", "blob": "bytea", "variant": "bytea",
    "time": "time", "timetz": "time with time zone", "interval": "interval", "uuid": "uuid",
    "null": "integer",
}  # fmt: skip
_KEPT_AS_TEXT = TIMESTAMPS | {"date", "timestamptz", "uint64", "int128", "uint128", "struct", "list", "map"}
_READ_AS_TEXT = frozenset({"time", "timetz", "interval"})
_BYTES = frozenset({"varchar", "json", "blob", "variant"})
_LONGEST_NAME = 63
# From a type of before 0.4 to that of today. DuckDB puts the era in parentheses.
_AS_TEXT = r"regexp_replace(CAST({} AS text), ' BC$', ' (BC)')"
_CONVERSIONS = {(kind, "bytea"): "convert_to(CAST({} AS text), 'UTF8')" for kind in ("varchar", "json", "jsonb")}
_CONVERSIONS |= {(kind, "character varying"): _AS_TEXT for kind in ("date", "timestamp", "timestamptz")}
_WAIT_FOR_READERS = "2s"
# What a server, a database or a role may set, and by which what is read or written would differ. In each transaction:
# a pooler such as pgbouncer may give the next one to another session.
_SETTINGS = {
    "client_encoding": "'UTF8'",
    "extra_float_digits": "1",
    "IntervalStyle": "'postgres'",
    "DateStyle": "'ISO, YMD'",
    "TimeZone": "'UTC'",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "row_security": "on",
    "search_path": "pg_catalog, pg_temp",
}
# Transactions that hold a lake's lock for writers, or have changed its tables.
_HOLDERS = """
SELECT pid, usename, application_name, state, xact_start FROM pg_catalog.pg_stat_activity
WHERE pid <> pg_catalog.pg_backend_pid() AND xact_start IS NOT NULL AND pid IN (
    SELECT held.pid FROM pg_catalog.pg_locks AS held
    LEFT JOIN pg_catalog.pg_class AS of_table ON of_table.oid = held.relation
    WHERE held.granted
    AND held.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    AND (of_table.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
         AND held.mode <> 'AccessShareLock'
         OR held.locktype = 'advisory' AND held.objsubid = 1
         AND (held.classid::bigint << 32 | held.objid::bigint) = $2)
) ORDER BY xact_start
"""
_BEGIN = "; ".join(["BEGIN ISOLATION LEVEL {}", *(f"SET LOCAL {key} = {value}" for key, value in _SETTINGS.items())])


class PostgresStorage(Storage):
    physical_types: ClassVar = {
        "BIGINT": "bigint",
        "VARCHAR": "character varying",
        "BOOLEAN": "boolean",
        "UUID": "uuid",
        "TIMESTAMPTZ": "timestamp with time zone",
    }
    decode: ClassVar = {"TIMESTAMPTZ": lambda moment: moment.astimezone(UTC)}

    def inlined_type(self, column: Column) -> str:
        if column.type.name == "decimal":
            return f"numeric({column.type.precision},{column.type.scale})"
        return _TYPES.get(column.type.name, "character varying")

    def can_inline(self, column: Column) -> bool:
        # DuckDB asks PostgreSQL for a type time_ns, which it does not have.
        fits = len(column.name.encode()) <= _LONGEST_NAME
        return fits and column.type.name not in ("geometry", "variant", "time_ns")

    def inlined_selected(self, column: Column, name: str) -> str:
        return f"CAST({name} AS text)" if column.type.name in _READ_AS_TEXT else name

    def inlined_value(self, column: Column, stored: Any) -> Value:
        if stored is None:
            return None
        name = column.type.name
        if name in _BYTES:
            return bytes(stored) if name in ("blob", "variant") else bytes(stored).decode()
        if column.type.is_container:
            return parse_nested(column, stored)
        return parse_value(column.type, stored) if name in _KEPT_AS_TEXT | _READ_AS_TEXT else stored

    def inlined_bound(self, column: Column, value: Value) -> object:
        if value is None:
            return None
        name = column.type.name
        if name in _BYTES:
            return value if name in ("blob", "variant") else value.encode()
        if column.type.is_container:
            return nested_text(column, value)
        return value_text(column.type, value) if name in _KEPT_AS_TEXT | _READ_AS_TEXT else value


class PostgresConnection(Connection):
    def __init__(self, connection: psycopg.Connection[Row], name: str, schema: str) -> None:
        self._connection, self._name, self._schema = connection, name, schema

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        with self.noting_failure(), _translated(self._name):
            cursor = self._connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def execute(self, sql: str, values: Sequence[object] = ()) -> None:
        self.rows(sql, values)

    def insert(self, relation: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        # An array per column: one statement and one answer, however many rows.
        types = PostgresBackend.storage.physical_types
        by_column = zip(*encoded(PostgresBackend.storage, list(columns.values()), rows), strict=True)
        marks = ", ".join(f"CAST(${place} AS {types[logical]}[])" for place, logical in enumerate(columns.values(), 1))
        arrays = [list(values) for values in by_column]
        self.execute(
            f"INSERT INTO {relation} ({', '.join(map(quoted, columns))}) SELECT * FROM unnest({marks})", arrays
        )

    def wait_little(self) -> None:
        self.execute(f"SET LOCAL lock_timeout = '{_WAIT_FOR_READERS}'")

    def retype(self, name: str, relation: str, columns: Sequence[Column]) -> list[str]:
        found = self.rows(
            "SELECT column_name, udt_name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2",
            [self._schema, name],
        )
        stored = {str(column): str(kind) for column, kind in found}
        wanted = {column.name: PostgresBackend.storage.inlined_type(column) for column in columns}
        changes = {
            column: (wanted[column], conversion)
            for column, kind in stored.items()
            if (conversion := _CONVERSIONS.get((kind, wanted.get(column, "")))) is not None
        }
        if changes:
            altered = (
                f"ALTER COLUMN {quoted(column)} TYPE {kind} USING {conversion.format(quoted(column))}"
                for column, (kind, conversion) in changes.items()
            )
            self.execute(f"ALTER TABLE {relation} {', '.join(altered)}")
        return list(changes)

    def lock(self, relation: str) -> None:
        # Waits for those who have written to it, and keeps others waiting before they do.
        self.execute(f"LOCK TABLE {relation} IN SHARE ROW EXCLUSIVE MODE")

    def keep_unique(self, relation: str, columns: Sequence[str]) -> None:
        live = f"({', '.join(map(quoted, columns))}) WHERE end_snapshot IS NULL"
        self.execute(f"CREATE UNIQUE INDEX ON {relation} {live}")

    def has_function(self, name: str) -> bool:
        return self.rows("SELECT to_regproc($1) IS NOT NULL", [f"{quoted(self._schema)}.{quoted(name)}"])[0][0]  # type: ignore[no-any-return]

    def columns_of(self, name: str) -> list[str]:
        sql = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"
        rows = self.rows(f"{sql} ORDER BY attnum", [f"{quoted(self._schema)}.{quoted(name)}"])
        return [row[0] for row in rows]

    def drop(self, relation: str) -> None:
        # A reader's open transaction would have it wait, and every writer behind it.
        self.execute(f"SET LOCAL lock_timeout = '{_WAIT_FOR_READERS}'")
        super().drop(relation)

    def has_table(self, name: str) -> bool:
        return self.rows("SELECT to_regclass($1) IS NOT NULL", [f"{quoted(self._schema)}.{quoted(name)}"])[0][0]  # type: ignore[no-any-return]


_of_parents: list[object] = []


class PostgresBackend(Backend):
    kind = "postgres"
    storage = PostgresStorage()

    def __init__(self, conninfo: str, schema: str, wait: float) -> None:
        super().__init__()
        # Texts from a parser of connection strings may quote the password, so none is shown or chained.
        try:
            parts = conninfo_to_dict(conninfo)
        except psycopg.Error:
            raise InvalidDescription(
                "`metadata` is not a connection string that PostgreSQL understands.",
                "Write postgres:dbname=lake host=… user=…, or postgres:postgresql://user@host/lake.",
            ) from None
        if len(schema.encode()) > _LONGEST_NAME:
            raise InvalidDescription(
                f"`metadata_schema` {schema} has {len(schema.encode())} bytes, and PostgreSQL cuts names behind "
                f"{_LONGEST_NAME}: it would be one with others that begin alike.", "Choose a shorter name.",
            )  # fmt: skip
        self.schema, self.wait = schema, wait
        # What is cut out of a URL with an unescaped @, or of a name that is a URL itself, is part of a password.
        if "@" in str(parts.get("host") or "") or any(sign in str(parts.get("dbname") or "") for sign in ("://", "=")):
            raise InvalidDescription(
                "`metadata` is not a connection string that can be taken apart.",
                "In a URL write @ as %40, / as %2F and : as %3A within user and password.",
            )
        shown = {key: parts[key] for key in ("host", "port", "dbname", "user") if parts.get(key) is not None}
        self.name = "postgres:" + " ".join(f"{key}={value}" for key, value in shown.items())
        self._conninfo = make_conninfo(conninfo, application_name=parts.get("application_name") or "dbt-ducklake")
        self._pool: ConnectionPool[psycopg.Connection[Row]] | None = None
        self._opening, self._process = threading.Lock(), os.getpid()
        self._lock_key = _lock_key(schema)
        self._lock_timeout = f"SET LOCAL lock_timeout = {max(1, int(wait * 1000))}"

    def exists(self) -> bool:
        return True

    def prepare(self) -> None:
        with self.writing() as connection:
            if not connection.rows("SELECT 1 FROM pg_namespace WHERE nspname = $1", [self.schema]):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(self.schema)}")

    def qualified(self, table: str) -> str:
        return f"{quoted(self.schema)}.{quoted(table)}"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._connected() as connection:
            with _translated(self.name):
                connection.execute(_BEGIN.format("REPEATABLE READ READ ONLY"))
                connection.execute(self._lock_timeout)
            try:
                yield PostgresConnection(connection, self.name, self.schema)
            except Contended as error:
                _roll_back(connection)
                if _has_waited(error):
                    raise LakeHeld(self.name, self.wait, self._holders(connection)) from error
                raise MetadataQueryFailed(self.name, str(error)) from error
            finally:
                _roll_back(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._connected() as connection:
            try:
                with _translated(self.name):
                    connection.execute(_BEGIN.format("READ COMMITTED READ WRITE"))
                    # Whoever waits holds the lake's lock, and keeps every other writer waiting.
                    connection.execute(self._lock_timeout)
                    connection.execute("SELECT pg_advisory_xact_lock($1)", [self._lock_key])
                yield PostgresConnection(connection, self.name, self.schema)
                _commit(connection, self.name)
            except Contended as error:
                _roll_back(connection)
                if _has_waited(error):
                    raise Contended(f"waited for what others hold: {self._holders(connection)}") from error
                raise
            except BaseException:
                _roll_back(connection)
                raise

    def _holders(self, connection: psycopg.Connection[Row]) -> str:
        """Who holds what a transaction has waited for in vain, as far as this user may see it."""
        with suppress(psycopg.Error):
            rows = connection.execute(_HOLDERS, [self.schema, self._lock_key]).fetchall()
            if rows:
                return "; ".join(
                    f"process {pid} of {user} ({program or 'no name'}), {state}, since {since:%Y-%m-%d %H:%M:%S%z}"
                    for pid, user, program, state, since in rows
                )
        return "somebody whom this user may not see, or who has just ended"

    def add_index(self, name: str, table: str, columns: Sequence[str]) -> bool:
        on = f"{self.qualified(table)} ({', '.join(map(quoted, columns))})"
        with self._connected() as connection, _translated(self.name):
            # Concurrently, so that no writer waits for it.
            connection.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {quoted(name)} ON {on}")
        return True

    def indexes(self) -> set[str]:
        with self._connected() as connection, _translated(self.name):
            rows = connection.execute(
                "SELECT indexname FROM pg_indexes WHERE schemaname = $1", [self.schema]
            ).fetchall()
        return {str(row[0]) for row in rows}

    def close(self) -> None:
        if self._pool is not None and self._process == os.getpid():
            self._pool.close()
            self._pool = None

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Row]]:
        if self._process != os.getpid():
            # In a forked process. The connections are its parent's, and not even closed here.
            _of_parents.append(self._pool)
            self._pool, self._opening, self._process = None, threading.Lock(), os.getpid()
        with self._opening:
            pool = self._pool or self._open_pool()
        try:
            connection = pool.getconn(timeout=self.wait)
        except PoolTimeout as error:
            raise ServerUnreachable(self.name, f"no connection within {self.wait:.0f} s") from error
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def _open_pool(self) -> ConnectionPool[psycopg.Connection[Row]]:
        # The pool connects in the background and keeps the reason of a failure to its log, so look for it first.
        try:
            psycopg.connect(self._conninfo, connect_timeout=max(2, int(self.wait))).close()
        except psycopg.Error as error:
            raise ServerUnreachable(self.name, _without_password(str(error), self._conninfo)) from None
        self._pool = ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True, "cursor_factory": RawCursor},
            min_size=0,
            max_size=_MOST_CONNECTIONS,
            max_idle=_IDLE_SECONDS,
            max_lifetime=_LIFETIME_SECONDS,
            timeout=self.wait,
            check=ConnectionPool.check_connection,
            num_workers=1,
            open=True,
        )
        return self._pool


def _lock_key(schema: str) -> int:
    """The advisory lock of one lake's writers; advisory locks are per database, so the schema makes it unique there."""
    digest = hashlib.sha256(f"dbt-ducklake commit {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _without_password(text: str, conninfo: str) -> str:
    password = conninfo_to_dict(conninfo).get("password")
    return " ".join((text.replace(str(password), "***") if password else text).split())


@contextmanager
def _translated(name: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        if _is_contention(error):
            raise Contended(str(error)) from error
        raise MetadataQueryFailed(name, str(error)) from error


def _has_waited(error: Contended) -> bool:
    """Whether what others hold was waited for in vain."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)


def _is_contention(error: psycopg.Error) -> bool:
    if error.sqlstate == _UNIQUE_VIOLATION:
        # The snapshot's key is taken by whoever commits first, and catalog keys by whoever makes a table first; any
        # other key that is there twice is no matter of time.
        return error.diag.table_name in _MET_FIRST or error.diag.schema_name == "pg_catalog"
    return error.sqlstate in _CONTENDED or error.sqlstate in _TABLE_EXISTS


def _commit(connection: psycopg.Connection[Row], name: str) -> None:
    try:
        connection.execute("COMMIT")
    except psycopg.OperationalError as error:
        if error.sqlstate in _CONTENDED:
            raise Contended(str(error)) from error
        if connection.broken or error.sqlstate is None or error.sqlstate in _OUTCOME_UNKNOWN:
            raise CommitBroken(str(error)) from error
        raise MetadataQueryFailed(name, str(error)) from error
    except psycopg.Error as error:
        raise MetadataQueryFailed(name, str(error)) from error


def _roll_back(connection: psycopg.Connection[Row]) -> None:
    # A connection that is gone has nothing to roll back; the pool sees that it is.
    with suppress(psycopg.OperationalError):
        if not connection.closed:
            connection.execute("ROLLBACK")
