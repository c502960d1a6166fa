"""Tenants of one metadata database that commit at once: nothing lost, nothing of another's, ids as the layout wants."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.concurrency.test_writers import COMMITS, PROCESSES, report
from tests.concurrency.workers import append_ours, run_all
from tests.conftest import PlaceOf
from tests.tenants import SHARED_KINDS, TenantPlace
from tests.written import plain

TENANTS = ("acme", "globex")


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_nothing_is_lost_or_twice(kind: str, place_of: PlaceOf) -> None:
    first = place_of(kind)
    assert isinstance(first, TenantPlace)
    places = [first.beside(name) for name in TENANTS]
    for place in places:
        with place.connect() as lake:
            made = lake.transaction()
            made.create_table("main", "t", plain("a", "b"))
            made.commit()
    given = [(places[worker % 2], worker, COMMITS, "t") for worker in range(PROCESSES)]
    report(first, f"tenants {' and '.join(TENANTS)}", run_all(append_ours, given))
    for number, place in enumerate(places):
        workers = [worker for worker in range(PROCESSES) if worker % 2 == number]
        expected = [(worker * 1000 + n, b) for worker in workers for n in range(COMMITS) for b in range(2)]
        assert place.asked("SELECT a, b FROM t ORDER BY ALL") == sorted(expected)
        assert place.asked("SELECT count(DISTINCT rowid) FROM t") == [(len(expected),)]
    rows = first.tables()
    lineage = sorted((int(r["snapshot_id"]), int(r["previous_snapshot_id"])) for r in rows["ducklake_snapshot_lineage"])
    # One after the other, over all tenants: each follows the newest that there was.
    assert all(after[1] == before[0] for before, after in pairwise(lineage))
    assert len(lineage) == PROCESSES * COMMITS + 4
    files = [int(row["data_file_id"]) for row in rows["ducklake_data_file"]]
    assert len(set(files)) == len(files) == PROCESSES * COMMITS
