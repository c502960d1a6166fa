"""Statements that fail or are killed at any step: the lake is as it was, and cleaning leaves no file of theirs."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import CommitFailed, Transaction
from dbt.adapters.ducklake.spark import delete, footers, write
from dbt.adapters.ducklake.spark.session import SparkHandle, SparkSettings
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import PlaceOf, spark_settings
from tests.java import QUICK
from tests.places import Place
from tests.seeds import ALL

KILLS = 10
STATEMENTS = (
    "insert into t select id, id % 3, array(id) from range(20)",
    "update t set k = k + 1 where id % 2 = 0",
    "delete from t where id % 5 = {n}",
    "merge into t using (select id, array(7L) as l from range(10)) s on t.id = s.id "
    "when matched then update set l = s.l when not matched then insert (id, l) values (s.id, s.l)",
    "insert overwrite t partition (k) select id, 1L, array(id) from range(5)",
    "create or replace table u as select * from t",
)
# Where the driver has to do with files, and the commit itself.
STEPS = (
    (Storage, "move"),
    (Storage, "files_below"),
    (footers, "read_footers"),
    (write, "read_footers"),
    (delete, "read_footers"),
    (Storage, "remove_folder"),
    (Transaction, "commit"),
    (Transaction, "append"),
    (Transaction, "delete"),
)


class Broken(CommitFailed):
    pass


@contextmanager
def breaking(step: tuple[Any, str], call: int) -> Iterator[list[int]]:
    """Let one call of a step fail; in the list, how many there were."""
    owner, name = step
    works, calls = getattr(owner, name), [0]

    def broken(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise Broken(name)
        return works(*arguments, **named)

    setattr(owner, name, broken)
    try:
        yield calls
    finally:
        setattr(owner, name, works)


def lying(place: Place) -> set[str]:
    return {path.name for path in Path(place.data_path).rglob("*") if path.is_file()}


def registered(place: Place) -> set[str]:
    tables = place.tables()
    kinds = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")
    return {Path(row["path"]).name for kind in kinds for row in tables[kind]}


def prepared(session: LakeSession) -> None:
    run(session, "create table t (id bigint, k bigint, l array<bigint>) partitioned by (k)")
    run(session, "insert into t select id, id % 3, array(id) from range(30)")


@pytest.mark.parametrize(
    ("kind", "failures"), [("duckdb", 20), pytest.param("postgres", 100 if ALL else 30, marks=pytest.mark.slow)]
)
def test_a_statement_that_fails_at_any_step_leaves_nothing(
    kind: str, failures: int, place_of: PlaceOf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place, chosen, failed = place_of(kind), random.Random(5), 0
    with place.connect(data_inlining_row_limit=0) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory)))
        prepared(session)
        while failed < failures:
            sql, step = chosen.choice(STATEMENTS).format(n=failed % 5), chosen.choice(STEPS)
            before = lake.snapshot().id
            with breaking(step, chosen.randint(1, 3)):
                try:
                    run(session, sql)
                except Broken:
                    failed += 1
                    assert lake.snapshot().id == before, sql
            assert lying(place) <= registered(place), (sql, step)
    whole_after_cleaning(place)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_process_that_is_killed_leaves_nothing_that_counts(
    kind: str, place_of: PlaceOf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place, moments = place_of(kind), random.Random(3)
    with place.connect(data_inlining_row_limit=0) as lake:
        prepared(LakeSession({"lake": lake}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory))))
    left = 0
    for _ in range(KILLS):
        code = "from tests.functional.test_failures import write_on; import sys; write_on(*sys.argv[1:])"
        command = [sys.executable, "-c", code, kind, str(place.folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "writing"
        time.sleep(1 + 4 * moments.random())
        process.send_signal(signal.SIGKILL)
        process.wait()
        # Its Java ends when it is found to be alone, and writes until then.
        time.sleep(2)
        left += len(lying(place) - registered(place))
        with place.connect() as lake:
            assert [one.id for one in lake.snapshots()] == list(range(lake.snapshot().id + 1))
    print(f"\n{KILLS} kills left {left} files that no snapshot has")
    whole_after_cleaning(place)


def write_on(kind: str, folder: str) -> None:
    """Run statements until somebody ends the process."""
    place = Place(kind, Path(folder))
    settings = SparkSettings(master="local[2]", config={"spark.sql.shuffle.partitions": "2", **QUICK})
    with place.connect(data_inlining_row_limit=0, busy_timeout=30) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", SparkHandle(settings))
        run(session, STATEMENTS[0])
        print("writing", flush=True)
        for number in range(10_000):
            run(session, STATEMENTS[number % len(STATEMENTS)].format(n=number % 5))


def whole_after_cleaning(place: Place) -> None:
    """The extension cleans up; then all files are known, and every snapshot reads."""
    place.judged("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    assert lying(place) <= registered(place)
    with place.attached() as judge:
        last = judge.rows("SELECT max(snapshot_id) FROM lake.snapshots()")[0][0]
        for snapshot in range(2, last + 1):
            judge.rows(f"SELECT count(*), sum(id), sum(len(l)) FROM t AT (VERSION => {snapshot})")
