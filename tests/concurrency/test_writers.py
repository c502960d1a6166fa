"""Many writers at once: nothing lost, nothing twice."""

from __future__ import annotations

import pytest

from tests.concurrency.workers import append_ours, append_theirs, run_all
from tests.conftest import PlaceOf
from tests.places import Place

PROCESSES, COMMITS = 8, 25


@pytest.mark.slow
@pytest.mark.parametrize("tables", [1, PROCESSES])
def test_nothing_is_lost_or_twice(place: Place, tables: int) -> None:
    place.options = {"data_inlining_row_limit": 0}
    place.judged(*(f"CREATE TABLE t{number} (a BIGINT, b BIGINT)" for number in range(tables)))
    results = run_all(append_ours, [(place, worker, COMMITS, f"t{worker % tables}") for worker in range(PROCESSES)])
    report(place, f"{tables} tables", results)
    check(place, tables, PROCESSES, commits_before=tables)


@pytest.mark.slow
@pytest.mark.parametrize("tables", [1, PROCESSES])
def test_nothing_is_lost_beside_the_extension(place_of: PlaceOf, tables: int) -> None:
    place = place_of("postgres")
    place.options = {"data_inlining_row_limit": 0}
    place.judged(*(f"CREATE TABLE t{number} (a BIGINT, b BIGINT)" for number in range(tables)))
    arguments = [(place, worker, COMMITS, f"t{worker % tables}") for worker in range(PROCESSES)]
    results = run_all(_either, [(worker % 2 == 0, *given) for worker, given in enumerate(arguments)])
    report(place, f"{tables} tables, half of them the extension's", results)
    check(place, tables, PROCESSES, commits_before=tables)


def _either(ours: bool, *arguments: object) -> object:
    return append_ours(*arguments) if ours else append_theirs(*arguments)  # type: ignore[arg-type]


def report(place: Place, what: str, results: list[tuple[int, float]]) -> None:
    commits, seconds = PROCESSES * COMMITS, max(seconds for _, seconds in results)
    retries = sum(attempts for attempts, _ in results) - commits
    print(f"\n{place.kind}, {what}: {commits} commits, {commits / seconds:.0f} a second, {retries} retries")


def check(place: Place, tables: int, workers: int, commits_before: int) -> None:
    expected = sorted((w * 1000 + n, b) for w in range(workers) for n in range(COMMITS) for b in (0, 1))
    every = " UNION ALL ".join(f"SELECT a, b, {t} AS t, rowid AS r FROM t{t}" for t in range(tables))
    with place.attached() as judge:
        rows = judge.rows(f"SELECT a, b, t, r FROM ({every})")
        assert sorted((a, b) for a, b, _, _ in rows) == expected
        assert len({(table, row_id) for _, _, table, row_id in rows}) == len(rows)
        ids = [row[0] for row in judge.rows("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")]
        assert ids == list(range(commits_before + workers * COMMITS + 1))
        # Answered from the metadata, without a look at the rows.
        assert sum(judge.rows(f"SELECT count(*) FROM t{t}")[0][0] for t in range(tables)) == len(expected)
    found = place.tables()
    assert sum(int(row["record_count"]) for row in found["ducklake_table_stats"]) == len(expected)
    files = [int(row["data_file_id"]) for row in found["ducklake_data_file"]]
    assert len(files) == len(set(files)) == workers * COMMITS
