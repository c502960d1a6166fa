"""Compaction beside writers, and compactions that are killed: no row is lost, doubled or brought back."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import CommitConflict, Lake, Patience, SnapshotId, Transaction
from dbt.adapters.ducklake.spark.session import SparkHandle, SparkSettings
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import PlaceOf
from tests.java import QUICK
from tests.judge import Judge
from tests.places import Place
from tests.seeds import ALL

SECONDS, KILLS, KEYS = (300, 50, 10) if ALL else (40, 6, 10)
MERGE = (
    f"MERGE INTO counted USING (SELECT id AS k FROM range({KEYS})) s ON counted.k = s.k "
    "WHEN MATCHED THEN UPDATE SET n = n + 1 WHEN NOT MATCHED THEN INSERT (k, n) VALUES (k, 1)"
)


def session_on(lake: Lake, folder: Path, warned: list[str] | None = None) -> LakeSession:
    config = {"spark.sql.warehouse.dir": str(folder), "spark.local.dir": str(folder), **QUICK}
    handle = SparkHandle(SparkSettings(master="local[2]", config=config))
    return LakeSession({"lake": lake}, "lake", "main", handle, warn=(warned if warned is not None else []).append)


def write(place: Place, folder: Path, seconds: float) -> dict[str, int]:
    """Two writers for some time; how many statements of each kind were done."""
    done: Counter[str] = Counter()
    until = time.monotonic() + seconds

    def append(lake: Lake) -> None:
        warned: list[str] = []
        session, number = session_on(lake, folder, warned), 0
        while time.monotonic() < until:
            run(session, f"INSERT INTO log SELECT {number} AS batch, id FROM range(5)")
            done["append"] += 1
            if number % 4 == 3:
                run(session, f"DELETE FROM log WHERE batch = {number - 2}")
                done["delete"] += 1
            number += 1
        done["again"] += len(warned)

    def merge(lake: Lake) -> None:
        warned: list[str] = []
        session = session_on(lake, folder, warned)
        while time.monotonic() < until:
            run(session, MERGE)
            done["merge"] += 1
        done["again"] += len(warned)

    failed: list[BaseException] = []
    with place.connect(data_inlining_row_limit=0, patience=Patience(attempts=30)) as lake:
        threads = [threading.Thread(target=kept(work, lake, failed)) for work in (append, merge)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed, failed
    return dict(done)


def kept(work: Callable[[Lake], None], lake: Lake, failed: list[BaseException]) -> Callable[[], None]:
    """The work, whose error is kept for the thread that waits."""

    def run_it() -> None:
        try:
            work(lake)
        except BaseException as error:
            failed.append(error)
            raise

    return run_it


def compact(place: Place, folder: Path, seconds: float) -> dict[str, int]:
    """A compaction of all tables for some time, by turns with expiry and cleaning."""
    done: Counter[str] = Counter()
    until, warned = time.monotonic() + seconds, list[str]()
    with place.connect() as lake:
        session = session_on(lake, folder, warned)
        while time.monotonic() < until:
            for table in ("log", "counted"):
                call = f"CALL ducklake_compact('lake', '{table}', small_files => 3, deleted_share => 0.05)"
                found = run(session, call).listing
                done.update(str(row[2]) for row in (found.rows if found else ()))
            expired = run(session, "CALL ducklake_expire_snapshots('lake', older_than => '20 seconds')").listing
            done["expired"] += len(expired.rows) if expired else 0
            removed = run(session, "CALL ducklake_cleanup_old_files('lake', older_than => '60 seconds')").listing
            done["removed"] += len(removed.rows) if removed else 0
    done["lost to writers"] = sum("was not compacted" in text for text in warned)
    return dict(done)


@pytest.mark.slow
def test_writers_and_a_compaction_on_the_same_tables(place_of: PlaceOf, tmp_path: Path) -> None:
    place = place_of("postgres")
    place.judged("CREATE TABLE log (batch BIGINT, id BIGINT)", "CREATE TABLE counted (k BIGINT, n BIGINT)")
    with get_context("spawn").Pool(2) as pool:
        writing = pool.apply_async(write, (place, tmp_path, SECONDS))
        compacting = pool.apply_async(compact, (place, tmp_path, SECONDS))
        wrote, compacted = writing.get(SECONDS + 120), compacting.get(SECONDS + 120)
    print(f"\nin {SECONDS} s: {wrote}; {compacted}")
    with place.attached() as judge:
        batches = wrote["append"] - wrote.get("delete", 0)
        found = judge.rows("SELECT count(*), count(DISTINCT batch), count(DISTINCT (batch, id)) FROM log")
        assert found == [(5 * batches, batches, 5 * batches)]
        assert judge.rows("SELECT DISTINCT n FROM counted") == [(wrote["merge"],)]
        assert judge.rows("SELECT count(*), count(DISTINCT rowid) FROM counted") == [(KEYS, KEYS)]
    assert compacted.get("merge", 0) >= 2
    whole(place)


def whole(place: Place) -> None:
    """All files that the lake names are there."""
    with place.connect() as lake:
        known = lake.maintenance.known_files()
    missing = {path for path in known.in_use | known.scheduled if not Path(path).exists()}
    assert not missing


def compact_once(kind: str, folder: str, url: str, schema: str) -> None:
    """What a killed process does."""
    place = Place(kind, Path(folder), url or None, schema or None)
    commit = Transaction.commit

    def slowly(self: Transaction, *arguments: Any) -> SnapshotId:
        # Else few kills would meet the moment between files that are written and a lake that knows them.
        time.sleep(1)
        return commit(self, *arguments)

    setattr(Transaction, "commit", slowly)  # noqa: B010
    with place.connect() as lake:
        session = session_on(lake, Path(folder))
        run(session, "SELECT 1")
        session.spark.session().range(1).collect()
        print("compacting", flush=True)
        calls = ("merge_adjacent_files('lake'", "rewrite_data_files('lake', delete_threshold => 0.1")
        while True:
            for call in calls:
                try:
                    run(session, f"CALL ducklake_{call})")
                except CommitConflict:
                    continue


@pytest.mark.slow
def test_a_compaction_that_is_killed_leaves_the_lake_whole(place_of: PlaceOf) -> None:
    place, moments = place_of("postgres"), random.Random(11)
    place.options = {"data_inlining_row_limit": 0}
    place.judged("CREATE TABLE t (id BIGINT, s VARCHAR)")
    left, rows = 0, 0
    for kill in range(KILLS):
        place.judged(*(f"INSERT INTO t SELECT {rows + 50 * n} + i, 'x' || i FROM range(50) r(i)" for n in range(6)))
        rows += 300
        place.judged(f"DELETE FROM t WHERE id >= {rows - 300} AND id % 3 = 0")
        code = "from tests.concurrency.test_compaction import compact_once; import sys; compact_once(*sys.argv[1:])"
        command = [sys.executable, "-c", code, "postgres", str(place.folder), place.postgres or "", place.schema or ""]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "compacting", kill
        time.sleep(5 * moments.random())
        process.send_signal(signal.SIGKILL)
        process.wait()
        # Its Java ends when it is found to be alone, and writes until then.
        time.sleep(2)
        left = max(left, len(unknown(place)))
        kept_rows = place.asked("SELECT count(*), count(DISTINCT id), count(DISTINCT rowid) FROM t")
        assert kept_rows == [(rows - rows // 3,) * 3]
        whole(place)
    old = time.time() - 3 * 86_400
    for path in unknown(place):
        os.utime(path, (old, old))
    found = len(unknown(place))
    with place.connect() as lake, Judge():
        session = session_on(lake, place.folder)
        removed = run(session, "CALL ducklake_delete_orphaned_files('lake')").listing
        assert removed is not None
    print(f"\n{KILLS} kills left at most {left} files that nobody knows; {len(removed.rows)} of {found} were removed")
    assert len(removed.rows) == found
    assert not unknown(place)
    whole(place)
    assert place.asked("SELECT count(*) FROM t") == [(rows - rows // 3,)]


def unknown(place: Place) -> set[Path]:
    with place.connect() as lake:
        known = lake.maintenance.known_files()
    return {
        path for path in Path(place.data_path).rglob("*.parquet") if str(path) not in known.in_use | known.scheduled
    }
