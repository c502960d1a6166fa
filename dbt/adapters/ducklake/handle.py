"""What dbt holds as a connection, and its cursor: SQL text in, rows and counts out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from dbt.adapters.ducklake.credentials import DuckLakeCredentials
from dbt.adapters.ducklake.lake import Lake, connect
from dbt.adapters.ducklake.spark.query import exhaust, fetched, result_columns, shown
from dbt.adapters.ducklake.spark.schema import spark_type
from dbt.adapters.ducklake.spark.session import SparkHandle, SparkSettings
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession


class Lakes:
    """The lakes of a target, opened once for all threads of a process."""

    def __init__(self, credentials: DuckLakeCredentials) -> None:
        self._credentials = credentials
        self._lock = threading.Lock()
        self._opened: dict[str, Lake] | None = None

    def opened(self) -> dict[str, Lake]:
        with self._lock:
            if self._opened is None:
                self._opened = {name: connect(found) for name, found in self._credentials.descriptions()}
            return self._opened

    def close(self) -> None:
        with self._lock, ExitStack() as closing:
            # All of them, whichever fails: one whose metadata lie in object storage may have to put them back.
            for lake in (self._opened or {}).values():
                closing.callback(lake.close)
            self._opened = None


class Handle:
    """A thread's connection. Opening it starts no Spark."""

    def __init__(
        self, credentials: DuckLakeCredentials, lakes: Lakes, settings: SparkSettings, warn: Callable[[str], None]
    ) -> None:
        self.session = LakeSession(
            lakes=lakes.opened(),
            lake_name=credentials.database,
            schema=credentials.schema,
            spark=SparkHandle(settings),
            warn=warn,
            closed=settings.closed,
        )

    def cursor(self) -> Cursor:
        return Cursor(self.session)

    def cancel(self) -> None:
        self.session.spark.cancel()


class Cursor:
    def __init__(self, session: LakeSession) -> None:
        self._session = session
        self.outcome = Outcome("NONE")
        self._rows: list[tuple[Any, ...]] | None = None
        self._next = 0
        # How many rows were asked for when they were fetched; None: all.
        self._limit: int | None = None

    def execute(self, sql: str, bindings: Sequence[object] | None = None) -> None:
        if bindings:
            raise NotImplementedError("Statements take no bound values; write them into the SQL as literals.")
        self._rows, self._next, self._limit = None, 0, None
        self.outcome = run(self._session, sql)

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name and type of each column, as the DB-API has them."""
        if self.outcome.listing is not None:
            found = [(column.name, spark_type(column).simpleString()) for column in self.outcome.listing.columns]
        elif self.outcome.rows is not None:
            with self._session.spark.job("columns"):
                found = result_columns(self.outcome.rows)
        else:
            return None
        return [(name, kind, None, None, None, None, None) for name, kind in found]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(None)

    def fetchone(self) -> tuple[Any, ...] | None:
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def exhaust(self) -> None:
        """Compute a query whose rows nobody wants."""
        if self.outcome.rows is not None and self._rows is None:
            with self._session.spark.job("run"):
                exhaust(self.outcome.rows)

    def fetchmany(self, size: int | None) -> list[tuple[Any, ...]]:
        wanted = None if size is None else self._next + size
        if self._rows is None or (self._limit is not None and (wanted is None or wanted > self._limit)):
            self._rows, self._limit = (
                self._all(wanted if self._next == 0 else None),
                wanted if self._next == 0 else None,
            )
        after = len(self._rows) if size is None else min(len(self._rows), self._next + size)
        some, self._next = self._rows[self._next : after], after
        return some

    def _all(self, limit: int | None) -> list[tuple[Any, ...]]:
        if self.outcome.listing is not None:
            return [tuple(row) for row in self.outcome.listing.rows]
        if self.outcome.rows is None:
            return []
        with self._session.spark.job("fetch"):
            return fetched(shown(self.outcome.rows), limit)
