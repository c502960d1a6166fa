"""Models whose batch is another one each time it is computed, and which read themselves: it is computed once."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest

from tests.java import QUICK
from tests.places import Place
from tests.projects import Project
from tests.seeds import ALL

# Fewer than the times that a statement is tried, or a slow machine would never end one.
KILLS = 8
# The parts of a batch: `{k}` of `{b}` branches has the ids that are {k} modulo {b}, so that no id comes twice.
BRANCHES = (
    "select id from range(200) where id % {b} = {k} and rand() < 0.6 and id not in "
    "(select id from {{{{ this }}}} where id % 7 = {k})",
    "select t.id from {{{{ this }}}} t where t.id % {b} = {k} and rand() < 0.5",
    "select s.id from range(200) s left join {{{{ this }}}} t on t.id = s.id "
    "where s.id % {b} = {k} and (t.id is null or rand() < 0.5)",
    "(select id from (select id from range(150) union select id + 50 from {{{{ this }}}}) where id % {b} = {k} "
    "limit 20)",
    "select s.id from range(200) s where s.id % {b} = {k} and rand() < 0.7 "
    "and exists (select 1 from {{{{ this }}}} t where t.id = s.id)",
)
COLUMNS = "cast(id % 4 as int) as p, rand() as r, current_timestamp() as stamp"
COUNTS = {"merge": 45, "delete+insert": 20, "insert_overwrite": 14, "microbatch": 11, "snapshot": 14}


def batch(rng: random.Random) -> str:
    branches = rng.randint(1, 5)
    parts = [rng.choice(BRANCHES).format(k=k, b=branches) for k in range(branches)]
    return " union all ".join(parts)


def model(strategy: str, seed: int) -> str:
    rng = random.Random(f"{strategy}{seed}")
    settings: dict[str, Any] = {"materialized": "incremental", "incremental_strategy": strategy}
    over, day = "", ""
    if strategy in ("merge", "delete+insert"):
        settings["unique_key"] = "id"
    if strategy == "insert_overwrite":
        settings["partitioned_by"] = "p"
        over = "partition by id % 4"
    if strategy == "microbatch":
        begin = datetime.now(UTC).date() - timedelta(days=1)
        settings |= {"event_time": "day", "batch_size": "day", "begin": begin.isoformat()}
        day = ", timestamp'{{ model.batch.event_time_start }}' + make_interval(0, 0, 0, 0, 0, cast(id as int)) as day"
    if rng.random() < 0.3 and strategy == "merge":
        settings["matched_condition"] = "DBT_INTERNAL_SOURCE.stamp >= DBT_INTERNAL_DEST.stamp"
    shown = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    first = f"select id, 0 as n, {COLUMNS}{day} from range(100)"
    then = f"select id, count(*) over ({over}) as n, {COLUMNS}{day} from ({batch(rng)})"
    return f"{{{{ config({shown}) }}}}\n{{% if is_incremental() %}}{then}{{% else %}}{first}{{% endif %}}"


def snapshot(seed: int) -> str:
    rng = random.Random(seed)
    settings = {"unique_key": "id", "strategy": "check", "check_cols": ["v"], "hard_deletes": rng.choice(
        ["invalidate", "new_record", "ignore"])}  # fmt: skip
    shown = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    parts = rng.randint(1, 3)
    rows = " union all ".join(
        f"select id, cast(rand() * 3 as int) as v from range(60) where id % {parts} = {k} and rand() < 0.8"
        for k in range(parts)
    )
    return f"{{% snapshot snapshot{seed} %}}{{{{ config({shown}) }}}} {rows} {{% endsnapshot %}}"


# Each row has the number of rows of its batch, so that the rows of two computations do not add up to it.
BATCHES = "SELECT n, stamp, {1} AS part, count(*) AS c FROM {0} GROUP BY ALL"
WHOLE = {
    "merge": "SELECT (SELECT count(*) = count(DISTINCT id) FROM {0}) AND count(*) = count(DISTINCT stamp) "
    f"AND max_by(c = n, stamp) FROM ({BATCHES.format('{0}', '1')})",
    "insert_overwrite": "SELECT (SELECT count(*) = count(DISTINCT id) FROM {0}) AND bool_and(c = n OR n = 0) "
    f"AND count(*) = count(DISTINCT part) FROM ({BATCHES.format('{0}', 'p')})",
    "microbatch": "SELECT bool_and(c = n OR n = 0) AND count(*) = count(DISTINCT part) "
    f"FROM ({BATCHES.format('{0}', 'day::DATE')})",
    # Each of the three runs has one time, at which versions end and others begin.
    "snapshot": "SELECT (SELECT count(DISTINCT moment) <= 3 FROM (SELECT dbt_valid_from AS moment FROM {0} UNION ALL "
    "SELECT dbt_valid_to FROM {0})) AND bool_and(begins >= ends OR ends IS NULL) AND bool_and(open < 2) FROM (SELECT "
    "dbt_valid_from AS begins, lag(dbt_valid_to) OVER versions AS ends, count(*) FILTER (dbt_valid_to IS NULL) OVER "
    "(PARTITION BY id) AS open FROM {0} WINDOW versions AS (PARTITION BY id ORDER BY dbt_valid_from, dbt_valid_to))",
}
WHOLE["delete+insert"] = WHOLE["merge"]


def write_models(project: Project, share: float) -> dict[str, str]:
    """Write the project's models; the strategy of each."""
    (project.folder / "snapshots").mkdir()
    found = {}
    for strategy, count in COUNTS.items():
        for seed in range(max(2, round(count * share))):
            name = f"{strategy.replace('+', '_')}{seed}"
            if strategy == "snapshot":
                project.write(f"snapshots/{name}.sql", snapshot(seed))
            else:
                project.write(f"models/{name}.sql", model(strategy, seed))
            found[name] = strategy
    return found


def check(place: Place, models: dict[str, str]) -> None:
    with place.attached() as judge:
        wrong = [name for name, strategy in models.items() if judge.rows(WHOLE[strategy].format(name)) != [(True,)]]
    assert wrong == []


@pytest.mark.parametrize("kind", ["duckdb"])
@pytest.mark.parametrize("adaptive", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_batch_is_computed_once(place: Place, tmp_path: Any, adaptive: bool) -> None:
    config = {**QUICK, "spark.sql.adaptive.enabled": adaptive, "spark.sql.shuffle.partitions": 3}
    project = Project(tmp_path / "project", place, spark={"master": "local[2]", "config": config}, threads=2)
    models = write_models(project, 1.0 if ALL else 0.15)
    for _ in range(3):
        project.run("build")
    check(place, models)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["duckdb"])
def test_an_executor_is_lost_in_the_middle(place: Place, tmp_path: Any) -> None:
    config = {**QUICK, "spark.executor.memory": "900m", "spark.deploy.maxExecutorRetries": -1}
    config |= {"spark.task.maxFailures": 8, "spark.sql.shuffle.partitions": 3}
    spark = {"master": "local-cluster[2,1,1000]", "config": config}
    project = Project(tmp_path / "project", place, spark=spark, threads=2)
    models = write_models(project, 1.0 if ALL else 0.3)
    project.run("build")
    running = project.start("build")
    kills = 0
    for executor in executors(running):
        time.sleep(random.uniform(4, 10))
        with suppress(psutil.NoSuchProcess):
            executor.kill()
            kills += 1
        if kills == KILLS:
            break
    output, _ = running.communicate()
    assert running.returncode == 0, output
    assert kills > 3
    assert "lost with rows that this statement had computed" in output
    check(place, models)


def executors(running: subprocess.Popen[str]) -> Iterator[psutil.Process]:
    """One of the executors of a process, again and again until it ends."""
    while running.poll() is None:
        found = [one for one in below(running) if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in one[1]]
        if found:
            yield random.choice(found)[0]
        else:
            time.sleep(0.2)


def below(running: subprocess.Popen[str]) -> Iterator[tuple[psutil.Process, list[str]]]:
    """The processes that a process started, with their command lines."""
    with suppress(psutil.NoSuchProcess):
        for one in psutil.Process(running.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                yield one, one.cmdline()
