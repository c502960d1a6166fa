"""One lake shared by the threads of one process, as dbt shares it."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg

from dbt.adapters.ducklake.lake import Patience
from dbt.adapters.ducklake.lake.backends import postgres
from dbt.adapters.ducklake.lake.spec.indexes import INDEXES, index_name
from tests.conftest import PlaceOf
from tests.places import Place
from tests.written import plain, write_file

THREADS, COMMITS = 8, 10
APPLICATION = f"dbt-ducklake-test-{os.getpid()}"
PATIENT = Patience(attempts=100, wait_ms=5, backoff=1.05)


def test_threads_read_and_commit_through_one_lake(place: Place) -> None:
    with place.connect(data_inlining_row_limit=0, patience=PATIENT, busy_timeout=60) as lake:
        t = lake.transaction()
        for number in range(THREADS):
            t.create_table("main", f"t{number}", plain("a"))
        t.commit()

        def work(number: int) -> int:
            seen = 0
            for commit in range(COMMITS):
                transaction = lake.transaction()
                own, shared = transaction.table("main", f"t{number}"), transaction.table("main", "t0")
                transaction.append(own, [write_file(own, [(commit,)])])
                if number:
                    transaction.append(shared, [write_file(shared, [(100 * number + commit,)])])
                transaction.commit()
                with lake.reading() as snapshot:
                    seen = len(snapshot.files(snapshot.table("main", f"t{number}")).data_files)
            return seen

        with ThreadPoolExecutor(THREADS) as pool:
            seen = list(pool.map(work, range(THREADS)))
        assert seen[1:] == [COMMITS] * (THREADS - 1)
        assert [info.id for info in lake.snapshots()] == list(range(2 + THREADS * COMMITS))
    assert place.asked("SELECT count(*), count(DISTINCT rowid) FROM t0") == [(THREADS * COMMITS, THREADS * COMMITS)]


def test_a_pool_is_bounded_and_given_up(place_of: PlaceOf) -> None:
    place = place_of("postgres")
    # Test processes share the server: this one's connections are told apart by their name.
    place.postgres = f"{place.postgres}&application_name={APPLICATION}"
    lake = place.connect()
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: lake.snapshots(), range(200)))
    assert len(_connections(place)) <= postgres._MOST_CONNECTIONS
    lake.close()
    # A backend of PostgreSQL ends a moment after its connection is closed.
    deadline = time.monotonic() + 10
    while _connections(place) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _connections(place)
    # A lake that was closed connects again when it is used.
    assert len(lake.snapshots()) == 1
    lake.close()


def test_indexes_are_added_once_and_change_no_table(place_of: PlaceOf) -> None:
    place = place_of("postgres")
    with place.connect() as lake:
        before = place.tables()
        names = lake.add_indexes()
        assert lake.add_indexes() == names
        assert place.tables() == before
    with psycopg.connect(str(place.postgres)) as server:
        found = server.execute("SELECT indexname FROM pg_indexes WHERE schemaname = %s", [place.schema]).fetchall()
    assert {index_name(row_class, columns) for row_class, columns in INDEXES} == set(names)
    assert set(names) <= {row[0] for row in found}
    place.judged("CREATE TABLE t AS SELECT 1 AS a", "INSERT INTO t VALUES (2)", "ALTER TABLE t ADD COLUMN b INT")
    assert place.asked("SELECT count(*) FROM t") == [(2,)]


def test_files_need_no_indexes(place_of: PlaceOf) -> None:
    for kind in ("duckdb", "sqlite"):
        with place_of(kind).connect() as lake:
            assert lake.add_indexes() == []


def _connections(place: Place) -> list[tuple[int]]:
    """The server's connections from pools; other lakes of this process have closed theirs."""
    with psycopg.connect(str(place.postgres), application_name="looking") as server:
        sql = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
        return server.execute(sql, [APPLICATION]).fetchall()
