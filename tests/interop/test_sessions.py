"""Long sessions: statements of many kinds over two lakes, with compaction and expiry between them. In the end every
snapshot that is left reads the same for both engines, and the newest one is what plain tables of DuckDB's are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.conftest import PlaceOf, spark_settings
from tests.judge import Judge
from tests.places import Place
from tests.seeds import ALL
from tests.sessions import Session

CREATED = "id INT, g INT, v BIGINT, s VARCHAR(99), d DATE"
TABLES = {
    "lake.main.plain": "",
    "lake.main.sorted": " SORTED BY (v DESC NULLS FIRST, s)",
    "far.main.plain": " PARTITIONED BY (g)",
    "far.main.sorted": " PARTITIONED BY (months(d), bucket(3, id)) SORTED BY (s)",
}
STEPS = 14 if not ALL else 60


class Twin:
    """Two lakes for Spark, and plain tables in DuckDB that get the same statements."""

    def __init__(self, session: Session, places: dict[str, Place]) -> None:
        self.session, self.places = session, places
        self.plain = duckdb.connect()
        self.plain.execute("ATTACH ':memory:' AS lake; ATTACH ':memory:' AS far; USE lake")

    def both(self, sql: str, plain: str | None = None) -> None:
        self.plain.execute(plain or sql)
        self.session.run(sql.replace("VARCHAR(99)", "STRING"))

    @contextmanager
    def judge(self) -> Iterator[Judge]:
        with ExitStack() as stack:
            judge = Judge.of_this_process()
            for name, place in self.places.items():
                place.attach(judge, name)
                stack.callback(judge.detach, name)
            yield judge


def rows(source: str, seed: int) -> str:
    """Rows of which both engines compute the same."""
    n = f"(id * 7919 + {seed}) % 1013"
    text = f"CASE WHEN {n} % 5 > 0 THEN concat('s', CAST({n} % 50 AS VARCHAR(9))) END"
    return (
        f"SELECT CAST(id AS INT) AS id, CAST({n} % 4 AS INT) AS g, CASE WHEN {n} % 9 > 0 THEN CAST({n} AS BIGINT) END "
        f"AS v, {text} AS s, CAST('2024-01-15' AS DATE) + CAST({n} % 90 AS INT) AS d FROM {source}"
    )


def ids(first: int, last: int) -> tuple[str, str]:
    """A range for Spark, and for DuckDB."""
    return f"range({first}, {last}) AS r", f"range({first}, {last}) AS r(id)"


def step(rng: random.Random, twin: Twin) -> None:
    table = rng.choice(list(TABLES))
    other = rng.choice(list(TABLES))
    lake, _, name = table.split(".")
    seed = rng.randrange(1000)
    first = rng.randrange(60)
    here, there = ids(first, first + rng.randrange(1, 40))
    kinds: list[Callable[[], Any]] = [
        lambda: twin.both(f"INSERT INTO {table} {rows(here, seed)}", f"INSERT INTO {table} {rows(there, seed)}"),
        lambda: twin.both(f"UPDATE {table} SET v = coalesce(v, 0) + id, s = 'u' WHERE id % 7 = {seed % 7}"),
        lambda: twin.both(f"DELETE FROM {table} WHERE v % 11 = {seed % 11} OR id = {first}"),
        lambda: twin.both(
            f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {other} AS o WHERE o.id = {name}.id AND o.g = {seed % 4})"
        ),
        lambda: twin.both(
            f"MERGE INTO {table} AS t USING (SELECT id, max(g) AS g, max(v) AS v, max(s) AS s, max(d) AS d FROM "
            f"{other} WHERE id < {first + 20} GROUP BY id) AS n ON t.id = n.id WHEN MATCHED AND t.g = 1 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET v = n.v, d = n.d WHEN NOT MATCHED THEN INSERT (id, g, v, s, d) "
            "VALUES (n.id, n.g, n.v, n.s, n.d)"
        ),
        lambda: twin.both(
            f"INSERT INTO {table} REPLACE WHERE g = 2 SELECT * FROM {other} WHERE g = 2",
            f"CREATE TEMP TABLE kept AS FROM {other} WHERE g = 2; DELETE FROM {table} WHERE g = 2; "
            f"INSERT INTO {table} FROM kept; DROP TABLE kept",
        ),
        lambda: twin.session.run(f"CALL ducklake_merge_adjacent_files('{lake}')"),
        lambda: twin.session.run(f"CALL ducklake_rewrite_data_files('{lake}', delete_threshold => 0.1)"),
        lambda: twin.session.run(f"CALL ducklake_flush_inlined_data('{lake}')"),
        lambda: inserted_by_the_judge(twin, table, there, seed),
        lambda: expired(rng, twin, lake),
    ]
    rng.choice(kinds)()


def inserted_by_the_judge(twin: Twin, table: str, there: str, seed: int) -> None:
    sql = f"INSERT INTO {table} {rows(there, seed)}"
    twin.plain.execute(sql)
    with twin.judge() as judge:
        judge.run(sql)


def expired(rng: random.Random, twin: Twin, lake: str) -> None:
    there = sorted(row[0] for row in twin.session.run(f"SELECT snapshot_id FROM ducklake_snapshots('{lake}')"))
    gone = rng.sample(there[:-1], min(3, len(there) - 1))
    if gone:
        twin.session.run(f"CALL ducklake_expire_snapshots('{lake}', versions => [{', '.join(map(str, gone))}])")
    twin.session.run(f"CALL ducklake_cleanup_old_files('{lake}', cleanup_all => true)")


def compared(twin: Twin) -> None:
    for lake in twin.places:
        tables = [table for table in TABLES if table.startswith(lake)]
        snapshots = [row[0] for row in twin.session.run(f"SELECT snapshot_id FROM ducklake_snapshots('{lake}')")]
        ours = {
            (table, number): twin.session.run(f"SELECT * FROM {table} VERSION AS OF {number}")
            for table in tables
            for number in snapshots
            if number >= 2
        }
        newest = {table: twin.session.run(f"SELECT * FROM {table}") for table in tables}
        with twin.judge() as judge:
            for (table, number), found in ours.items():
                wanted = judge.rows(f"SELECT * FROM {table} AT (VERSION => {number})")
                assert sorted(found, key=repr) == sorted(wanted, key=repr), (table, number)
        for table, found in newest.items():
            wanted = twin.plain.execute(f"SELECT * FROM {table}").fetchall()
            assert sorted(found, key=repr) == sorted(wanted, key=repr), table


@pytest.mark.parametrize("seed", range(40 if ALL else 2))
@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_a_long_session(
    kind: str, seed: int, place_of: PlaceOf, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    places = {name: place_of(kind) for name in ("lake", "far")}
    lakes = {name: place.connect() for name, place in places.items()}
    session = Session(tmp_path, lakes, spark_settings(tmp_path_factory))
    twin = Twin(session, places)
    rng = random.Random(seed)
    try:
        for table, more in TABLES.items():
            twin.both(f"CREATE TABLE {table} ({CREATED}){more}", f"CREATE TABLE {table} ({CREATED})")
        for _ in range(STEPS):
            step(rng, twin)
        compared(twin)
    finally:
        session.close()
