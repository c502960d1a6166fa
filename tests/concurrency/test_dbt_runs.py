"""Processes of dbt on one lake: what each of them says it did is there, once."""

from __future__ import annotations

import json
import shutil
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PlaceOf
from tests.java import QUICK
from tests.judge import Judge
from tests.places import Place
from tests.seeds import ALL

PROCESSES, ROUNDS, KEYS = 4, 20 if ALL else 6, 10
MODELS = {
    # Appended to by all.
    "log": "{{ config(materialized='incremental') }} "
    "select {{ var('worker') }} as worker, {{ var('round') }} as round, id from range(5)",
    # Merged into by all: keys of all of them, and keys of each alone.
    "shared": "{{ config(materialized='incremental', unique_key='k') }} "
    "select concat('all', id) as k, {{ var('round') }} as round from range(3) union all "
    "select concat('{{ var('worker') }}-', {{ var('round') }}), {{ var('round') }}",
    # Each round of each process adds one to every key: a lost update would show.
    "counted": "{{ config(materialized='incremental', unique_key='k') }} {% if is_incremental() %}"
    "select k, n + 1 as n from {{ this }}{% else %}select id as k, 0 as n from range(10){% endif %}",
    # A table of its own for each.
    "own": "{{ config(materialized='incremental', alias='own' ~ var('worker'), unique_key='id') }} "
    "select {{ var('round') }} % 4 as id, {{ var('round') }} as round",
}


def project(folder: Path, place: Place) -> Path:
    (folder / "models").mkdir(parents=True)
    for name, sql in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(sql)
    settings = {"name": "p", "version": "1.0.0", "profile": "p", "flags": {"send_anonymous_usage_stats": False}}
    (folder / "dbt_project.yml").write_text(json.dumps(settings))
    spark = {"master": "local[1]", "config": {"spark.sql.shuffle.partitions": "1", **QUICK}}
    target = {"type": "ducklake", "threads": 2, "retries": 40, "retry_backoff": 1.1, **place.target, "spark": spark}
    (folder / "profiles.yml").write_text(json.dumps({"p": {"target": "dev", "outputs": {"dev": target}}}))
    return folder


def run_rounds(folder: Path, worker: int, rounds: int) -> list[tuple[int, dict[str, str], float]]:
    """Run dbt again and again in this process: of each run its conflicts, what became of each model, its seconds."""
    from dbt.cli.main import dbtRunner

    warned: list[str] = []
    runner = dbtRunner(callbacks=[lambda event: warned.append(str(event.info.msg))])  # type: ignore[attr-defined]
    done = []
    for number in range(rounds):
        warned.clear()
        started = time.monotonic()
        places = ["--target-path", f"target{worker}", "--log-path", str(folder / f"logs{worker}")]
        given = ["--vars", json.dumps({"worker": worker, "round": number})]
        folders = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
        result = runner.invoke(["--quiet", "run", *folders, *places, *given])
        conflicts = sum("while this statement ran, which runs again" in text for text in warned)
        found = {one.node.name: str(one.message) for one in result.result}  # type: ignore[union-attr]
        done.append((conflicts, found, time.monotonic() - started))
    return done


def append_beside(place: Place, rounds: int) -> int:
    """DuckDB appends to the table that all append to."""
    with Judge() as judge:
        place.attach(judge)
        judge.run("SET ducklake_max_retry_count = 200", "SET ducklake_retry_wait_ms = 10")
        for number in range(rounds):
            judge.run(f"INSERT INTO log VALUES (100, {number}, 0)")
            time.sleep(0.2)
    return rounds


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside DuckDB"])
def test_runs_of_dbt_on_the_same_tables(beside: bool, place_of: PlaceOf, tmp_path: Path) -> None:
    place = place_of("postgres")
    folder = project(tmp_path / "project", place)
    first = get_context("spawn")
    with first.Pool(1) as pool:
        assert pool.apply(run_rounds, (folder, 0, 1))[0][0] == 0
    shutil.rmtree(folder / "target0")
    rounds = ROUNDS // 2 if beside else ROUNDS
    started = time.monotonic()
    with get_context("spawn").Pool(PROCESSES + beside) as pool:
        appended = pool.apply_async(append_beside, (place, rounds * 5)) if beside else None
        results: list[list[Any]] = pool.starmap(run_rounds, [(folder, n + 1, rounds) for n in range(PROCESSES)])
        by_duckdb = appended.get(60) if appended else 0
    seconds = time.monotonic() - started
    runs = [run for worker in results for run in worker]
    messages = [(name, text) for _, found, _ in runs for name, text in found.items()]
    failed = [one for one in messages if not one[1].startswith(("INSERT", "MERGE", "CREATE"))]
    conflicts = sum(run[0] for run in runs)
    print(f"\n{len(runs)} runs of {len(MODELS)} models in {seconds:.0f} s: {conflicts} statements ran again because of "
          f"conflicts, {len(failed)} failed; DuckDB appended {by_duckdb} times")  # fmt: skip
    assert not failed
    total = PROCESSES * rounds
    with place.attached() as judge:
        assert judge.rows("SELECT count(*), count(DISTINCT (worker, round, id)) FROM log WHERE worker < 100") == [
            (5 * (total + 1), 5 * (total + 1))
        ]
        assert judge.rows("SELECT count(*), count(DISTINCT round) FROM log WHERE worker = 100") == [(by_duckdb,) * 2]
        keys = 3 + total + 1
        assert judge.rows("SELECT count(*), count(DISTINCT k) FROM shared") == [(keys, keys)]
        assert judge.rows("SELECT DISTINCT n FROM counted") == [(total,)]
        assert judge.rows("SELECT count(*) FROM counted") == [(KEYS,)]
        for worker in range(1, PROCESSES + 1):
            assert judge.rows(f"SELECT count(*) FROM own{worker}") == [(min(rounds, 4),)]
        assert judge.rows("SELECT count(*) - count(DISTINCT rowid) FROM shared") == [(0,)]
        ids = [row[0] for row in judge.rows("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")]
        assert ids == list(range(len(ids)))
