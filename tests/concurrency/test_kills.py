"""A writer that is killed leaves the lake as it was before its commit, or as it is after, and nothing between."""

from __future__ import annotations

import random
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.concurrency.workers import commit_and_die, commit_until_killed
from tests.places import Place

# A commit makes fewer calls than this; the last of these kills happen after it, before its caller hears of it.
STEPS = 26
RANDOM_KILLS = 8


@pytest.mark.slow
def test_killed_at_every_step(place: Place) -> None:
    place.options = {"data_inlining_row_limit": 10}
    place.judged("CREATE TABLE t (a BIGINT, b BIGINT)")
    outcomes = []
    for calls in range(STEPS):
        before = whole(place)
        process = get_context("spawn").Process(target=commit_and_die, args=(place, calls, calls))
        process.start()
        process.join(60)
        assert process.exitcode == -9, f"killed before call {calls}: exit code {process.exitcode}"
        after = whole(place)
        assert after in (before, before + 1)
        outcomes.append(after - before)
    print(f"\n{place.kind}: {STEPS} kills, {sum(outcomes)} of them after the commit")
    # Both kinds were met: kills before the commit took hold, and after.
    assert outcomes[0] == 0
    assert outcomes[-1] == 1


@pytest.mark.slow
def test_killed_at_any_moment(place: Place) -> None:
    place.options = {"data_inlining_row_limit": 10}
    place.judged("CREATE TABLE t (a BIGINT, b BIGINT)")
    moments = random.Random(7)
    for kill in range(RANDOM_KILLS):
        process = get_context("spawn").Process(target=commit_until_killed, args=(place, kill * 10_000))
        process.start()
        time.sleep(0.5 + moments.random())
        process.kill()
        process.join(20)
        whole(place)
    print(f"\n{place.kind}: {RANDOM_KILLS} kills at random, {whole(place)} commits done")


def whole(place: Place) -> int:
    """How many snapshots there are, once it is sure that each of them is there as a whole."""
    with place.connect(busy_timeout=30) as lake:
        ids = [info.id for info in lake.snapshots()]
        assert all(info.changes for info in lake.snapshots())
        table = lake.snapshot().table("main", "t")
        files = lake.snapshot().files(table)
    assert ids == list(range(len(ids)))
    assert all(Path(file.path).exists() for file in files.data_files)
    rows = sum(file.record_count for file in files.data_files) + len(files.inlined_rows)
    with place.attached() as judge:
        assert judge.rows("SELECT count(*), count(DISTINCT rowid) FROM t") == [(rows, rows)]
        assert len(judge.rows("SELECT * FROM t")) == rows
        values = judge.rows("SELECT a, count(*) FROM t GROUP BY a")
    # A commit of the first test brings three rows, one of the second two; never a part of them.
    assert {count for _, count in values} <= {2, 3}
    found = place.tables()
    assert sum(int(row["record_count"]) for row in found["ducklake_table_stats"]) == rows
    return len(ids)
