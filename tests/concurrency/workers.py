"""What the processes of the concurrency tests do. Each runs a function here in an interpreter of its own."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import get_context
from typing import Any

import duckdb

from dbt.adapters.ducklake.lake import LakeDescription, Patience, migrate_lake
from dbt.adapters.ducklake.lake.backends import base
from tests.judge import Judge
from tests.places import Place
from tests.written import write_file

PATIENT = Patience(attempts=100, wait_ms=10, backoff=1.05)
BUSY_SECONDS = 120.0


def run_all(target: Any, arguments: list[tuple[Any, ...]], seconds: float = 300) -> list[Any]:
    """Run a function in one process per tuple of arguments, all at once; their results in that order."""
    context = get_context("spawn")
    with context.Pool(len(arguments)) as pool:
        return pool.starmap_async(target, arguments).get(seconds)


def append_ours(place: Place, worker: int, commits: int, table: str) -> tuple[int, float]:
    """Append one file of two rows per commit; the number of attempts, and the seconds they took."""
    attempts, started = 0, time.monotonic()
    with place.connect(patience=PATIENT, busy_timeout=BUSY_SECONDS) as lake:
        for number in range(commits):
            transaction = lake.transaction()
            found = transaction.table("main", table)
            value = worker * 1000 + number
            transaction.append(found, [write_file(found, [(value, 0), (value, 1)])])
            transaction.commit()
            attempts += transaction.attempts
    return attempts, time.monotonic() - started


def append_theirs(place: Place, worker: int, commits: int, table: str) -> tuple[int, float]:
    """The same by the extension, which tries again by itself."""
    started = time.monotonic()
    with Judge() as judge:
        place.attach(judge)
        judge.run("SET ducklake_max_retry_count = 200", "SET ducklake_retry_wait_ms = 10")
        judge.run("SET ducklake_retry_backoff = 1.05")
        for number in range(commits):
            value = worker * 1000 + number
            judge.run(f"INSERT INTO {table} VALUES ({value}, 0), ({value}, 1)")
    return commits, time.monotonic() - started


def commit_and_die(place: Place, value: int, calls: int) -> None:
    """Append a file and end a row, and be killed before the call to the database that follows `calls` others."""
    with place.connect(busy_timeout=BUSY_SECONDS) as lake:
        transaction = lake.transaction()
        table = transaction.table("main", "t")
        transaction.append(table, [write_file(table, [(value, 0), (value, 1)])])
        transaction.comment_on_table("main", "t", f"after {value}")
        transaction.insert_inlined(transaction.table("main", "t"), [(value, 2)])
        _die_after(calls)
        transaction.commit()
        # The commit is done, and its caller has yet to hear of it.
        os.kill(os.getpid(), signal.SIGKILL)


def migrate_and_die(description: LakeDescription, calls: int) -> None:
    """Migrate a lake, and be killed before the call to the database that follows `calls` others."""
    _die_after(calls)
    migrate_lake(description)
    os.kill(os.getpid(), signal.SIGKILL)


def _die_after(calls: int) -> None:
    left = calls

    def counted(method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return method(*arguments, **named)

        return call

    from dbt.adapters.ducklake.lake.backends import duckdb as files
    from dbt.adapters.ducklake.lake.backends import postgres, sqlite

    for connection in (files.DuckDbConnection, sqlite.SqliteConnection, postgres.PostgresConnection):
        assert issubclass(connection, base.Connection)
        connection.rows = counted(connection.rows)  # type: ignore[method-assign]
    files._commit = counted(files._commit)
    postgres._commit = counted(postgres._commit)


def commit_until_killed(place: Place, first: int) -> None:
    """Commit on and on; the parent kills this process at some moment."""
    with place.connect(busy_timeout=BUSY_SECONDS) as lake:
        for value in range(first, first + 10_000):
            transaction = lake.transaction()
            table = transaction.table("main", "t")
            transaction.append(table, [write_file(table, [(value, 0), (value, 1)])])
            transaction.commit()


__all__ = ["append_ours", "append_theirs", "commit_and_die", "commit_until_killed", "duckdb", "run_all"]
