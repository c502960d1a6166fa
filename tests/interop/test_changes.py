"""Random UPDATE, DELETE, MERGE and INSERT OVERWRITE on a lake, and the same statements on a copy in plain DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import PlaceOf, spark_settings
from tests.judge import Judge
from tests.places import Place
from tests.seeds import by_turns

STEPS = 24
COLUMNS = {
    "id": "INTEGER",
    "k": "VARCHAR",
    "v": "BIGINT",
    "d": "DATE",
    "x": "DOUBLE",
    "s": "STRUCT(a INTEGER, b VARCHAR)",
}
NESTED = {"l": "INTEGER[]", "m": "MAP(VARCHAR, INTEGER)"}
PARTITIONS = ("", "", "k", "year(d)", "bucket(3, id)", "k, month(d)")

Rows = Counter[str]


@contextmanager
def attached(place: Place, judge: Judge, **options: Any) -> Iterator[None]:
    place.attach(judge, **options)
    try:
        yield
    finally:
        judge.detach()


class Compared:
    """A table of a lake and its copy, changed by the same statements."""

    def __init__(self, seed: int, place: Place, session: LakeSession, judge: Judge) -> None:
        self.random, self.place, self.session, self.judge = random.Random(seed), place, session, judge
        self.columns = {**COLUMNS, **(NESTED if seed % 3 == 2 else {})}
        self.done: Counter[str] = Counter()
        self.rows_at: dict[int, Rows] = {}
        layout = self.random.choice(PARTITIONS)
        declared = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        judge.run(f"CREATE TABLE memory.t ({declared})", f"CREATE TABLE memory.src ({declared})")
        with self.attached(data_inlining_row_limit=5):
            judge.run(f"CREATE TABLE lake.main.t ({declared})", f"CREATE TABLE lake.main.src ({declared})")
            if layout:
                judge.run(f"ALTER TABLE lake.main.t SET PARTITIONED BY ({layout})")
        for _ in range(self.random.randint(1, 4)):
            self.insert("t", self.random.choice((3, 20, 60)))
        self.insert("src", 12)

    def insert(self, table: str, count: int) -> None:
        """Rows from DuckDB, few of which are inlined."""
        first = self.random.randrange(40)
        values = {
            "id": f"CASE WHEN i % 11 = 5 THEN NULL ELSE {first} + i END",
            "k": "CASE i % 5 WHEN 0 THEN NULL ELSE 'k' || (i % 3) END",
            "v": "i * 7 % 100", "d": "DATE '2025-12-01' + (i % 90)::INTEGER", "x": "i / 4.0",
            "s": "CASE WHEN i % 4 = 0 THEN NULL ELSE struct_pack(a := i, b := 'b' || i) END",
            "l": "CASE WHEN i % 3 = 0 THEN NULL ELSE [i, NULL, i + 1] END", "m": "MAP {'a': i, 'b': NULL}",
        }  # fmt: skip
        shown = ", ".join(f"({values[name]})::{kind}" for name, kind in self.columns.items())
        with self.attached(data_inlining_row_limit=5):
            for target in (f"memory.{table}", f"lake.main.{table}"):
                self.judge.run(f"INSERT INTO {target} SELECT {shown} FROM range({count}) AS r(i)")

    def attached(self, **options: Any) -> AbstractContextManager[None]:
        return attached(self.place, self.judge, **options)

    def condition(self, alias: str, *more: str) -> str:
        return self.random.choice((
            f"{alias}.id % 3 = {self.random.randrange(3)}", f"{alias}.v > {self.random.randrange(100)}",
            f"{alias}.k = 'k1'", f"{alias}.k IS NULL", f"{alias}.d < DATE '2026-01-10'", f"{alias}.x < 2",
            f"{alias}.s.a BETWEEN 3 AND 9", f"{alias}.id IS NULL", *more,
        ))  # fmt: skip

    def any_condition(self, alias: str) -> str:
        """With subqueries too, on which DuckDB fails in a MERGE."""
        return self.condition(
            alias, f"{alias}.id IN (SELECT id FROM src WHERE v < 60)", f"{alias}.v = (SELECT max(v) FROM t)",
            f"NOT EXISTS (SELECT 1 FROM src WHERE src.id = {alias}.id)",
        )  # fmt: skip

    def assignments(self, own: str, values: tuple[str, ...]) -> str:
        given = {
            "v": [f"{own}.v + 1", "NULL", *(f"{one}.v" for one in values)],
            "k": ["'k9'", "NULL", *(f"{one}.k" for one in values)],
            "id": [f"{own}.id + 100"], "x": [f"{own}.x * 2", *(f"{one}.x" for one in values)],
            "s": ["NULL", *(f"{one}.s" for one in values)], "d": ["DATE '2026-02-02'", *(f"{one}.d" for one in values)],
        }  # fmt: skip
        chosen = self.random.sample(sorted(given), self.random.randint(1, 3))
        return ", ".join(f"{name} = {self.random.choice(given[name])}" for name in chosen)

    def statement(self) -> tuple[str, str, str]:
        """A kind of statement, and its text for us and for DuckDB."""
        kind = self.random.choice(("update", "delete", "merge", "overwrite"))
        if kind == "update":
            sql = f"UPDATE t SET {self.assignments('t', ())} WHERE {self.any_condition('t')}"
            return kind, sql, sql
        if kind == "delete":
            sql = f"DELETE FROM t WHERE {self.any_condition('t')}"
            return kind, sql, sql
        if kind == "merge":
            sql = self.merge()
            return kind, sql, sql
        return kind, *self.overwrite()

    def merge(self) -> str:
        # One row for each id: DuckDB takes any of two that match, and we refuse them.
        names = ", ".join(self.columns)
        shift = self.random.choice((0, 0, 7, 1000))
        shown = ", ".join(f"id + {shift} AS id" if name == "id" else name for name in self.columns)
        numbered = f"SELECT {names}, row_number() OVER (PARTITION BY id ORDER BY v, x) AS n FROM src"
        source = f"(SELECT {shown} FROM ({numbered}) q WHERE n = 1)"
        on = self.random.choice(
            ("t.id = b.id", "t.id = b.id", "t.id IS NOT DISTINCT FROM b.id", "t.id = b.id AND t.v < 80")
        )
        whens = []
        if self.random.random() < 0.5:
            whens.append(f"WHEN MATCHED AND {self.condition('b')} THEN DELETE")
        if self.random.random() < 0.8:
            condition = f" AND {self.condition('t')}" if self.random.random() < 0.5 else ""
            whens.append(f"WHEN MATCHED{condition} THEN UPDATE SET {self.assignments('t', ('b',))}")
        if self.random.random() < 0.6 or not whens:
            condition = f" AND {self.condition('b')}" if self.random.random() < 0.4 else ""
            values = ", ".join(f"b.{name}" for name in self.columns)
            whens.append(f"WHEN NOT MATCHED{condition} THEN INSERT ({names}) VALUES ({values})")
        if self.random.random() < 0.4:
            condition = self.condition("t")
            change = self.random.choice(("DELETE", f"UPDATE SET {self.assignments('t', ())}"))
            whens.append(f"WHEN NOT MATCHED BY SOURCE AND {condition} THEN {change}")
        return f"MERGE INTO t USING {source} AS b ON {on} {' '.join(whens)}"

    def overwrite(self) -> tuple[str, str]:
        condition = self.any_condition("src")
        if self.random.random() < 0.3:
            return (
                f"INSERT OVERWRITE t SELECT * FROM src WHERE {condition}",
                f"CREATE OR REPLACE TEMP TABLE batch AS SELECT * FROM src WHERE {condition}; DELETE FROM t; "
                "INSERT INTO t SELECT * FROM batch",
            )
        if self.random.random() < 0.5:
            return (
                f"INSERT INTO t REPLACE USING (id) SELECT * FROM src WHERE {condition}",
                f"CREATE OR REPLACE TEMP TABLE batch AS SELECT * FROM src WHERE {condition}; "
                "DELETE FROM t WHERE id IN (SELECT id FROM batch); INSERT INTO t SELECT * FROM batch",
            )
        gone = self.any_condition("t")
        return (
            f"INSERT INTO t REPLACE WHERE {gone} SELECT * FROM src WHERE {condition}",
            f"CREATE OR REPLACE TEMP TABLE batch AS SELECT * FROM src WHERE {condition}; DELETE FROM t WHERE {gone}; "
            "INSERT INTO t SELECT * FROM batch",
        )

    def step(self) -> None:
        if self.random.random() < 0.15:
            self.insert("t", self.random.choice((2, 15)))
        if self.random.random() < 0.15:
            # Few rows: DuckDB writes down in the metadata that they are gone.
            condition = f"id % 17 = {self.random.randrange(17)}"
            with self.attached(data_inlining_row_limit=self.random.choice((0, 50))):
                self.judge.run(*(f"DELETE FROM {table} WHERE {condition}" for table in ("memory.t", "lake.main.t")))
        before = self.session.lake("lake").snapshot().id
        kind, ours, theirs = self.statement()
        expected_before = self.expected()
        self.judge.run("USE memory", *theirs.split("; "))
        try:
            outcome = run(self.session, ours)
        except Exception as error:
            raise AssertionError(f"{ours}\n{error}") from error
        expected, snapshot = self.expected(), self.session.lake("lake").snapshot().id
        with self.attached():
            assert self.read("lake.main.t") == expected, ours
            self.done[kind] += 1
            assert snapshot == (before + 1 if outcome.snapshot else before), ours
            assert outcome.snapshot or expected == expected_before, ours
            self.check_feed(before, snapshot, expected_before, expected, ours)
            self.rows_at[snapshot] = expected
        assert self.of_spark() == expected, ours

    def check_feed(self, before: int, snapshot: int, rows_before: Rows, rows_after: Rows, ours: str) -> None:
        """What DuckDB says has changed leads from the rows before to those after; an updated row keeps its id."""
        if snapshot == before:
            return
        names = ", ".join(self.columns)
        feed = self.judge.rows(
            f"SELECT change_type, rowid, CAST(ROW({names}) AS VARCHAR) "
            f"FROM ducklake_table_changes('lake', 'main', 't', {snapshot}, {snapshot})"
        )
        came = Counter(row for kind, _, row in feed if kind in ("insert", "update_postimage"))
        went = Counter(row for kind, _, row in feed if kind in ("delete", "update_preimage"))
        assert rows_before - went + came == rows_after, ours
        ids = {
            kind: sorted(rowid for found, rowid, _ in feed if found == kind)
            for kind in ("update_preimage", "update_postimage")
        }
        assert ids["update_preimage"] == ids["update_postimage"], ours

    def check_past(self) -> None:
        with self.attached():
            for snapshot, expected in self.rows_at.items():
                assert self.read(f"lake.main.t AT (VERSION => {snapshot})") == expected, snapshot

    def read(self, table: str) -> Rows:
        names = ", ".join(self.columns)
        return Counter(row[0] for row in self.judge.rows(f"SELECT CAST(ROW({names}) AS VARCHAR) FROM {table}"))

    def expected(self) -> Rows:
        return self.read("memory.t")

    def of_spark(self) -> Rows:
        rows = run(self.session, "SELECT * FROM t").rows
        assert rows is not None
        shown = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in self.columns.items())
        with self.judge.registered("spark_rows", rows.toArrow()):
            return self.read(f"(SELECT {shown} FROM spark_rows)")


def check_files(place: Place, session: LakeSession) -> None:
    """Every delete file has its positions in order, one for each data file; no file lies there unregistered."""
    lake = session.lake("lake")
    snapshot = lake.snapshot()
    files = snapshot.files(snapshot.table("main", "t")).data_files
    with Judge() as judge:
        for file in files:
            if file.delete_file is not None:
                positions = [row[0] for row in judge.rows(f"SELECT pos FROM read_parquet('{file.delete_file.path}')")]
                assert positions == sorted(set(positions))
                assert len(positions) == file.delete_file.delete_count
    tables = place.tables()
    kinds = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")
    registered = {Path(row["path"]).name for kind in kinds for row in tables[kind]}
    lying = {path.name for path in Path(place.data_path).rglob("*.parquet")}
    assert lying <= registered, lying - registered


@pytest.fixture
def spark_handle(tmp_path_factory: pytest.TempPathFactory) -> SparkHandle:
    return SparkHandle(spark_settings(tmp_path_factory))


@pytest.mark.parametrize(("kind", "seed"), by_turns(3, 10, 54))
def test_a_changed_lake_has_the_rows_of_a_copy(
    kind: str, seed: int, place_of: PlaceOf, spark_handle: SparkHandle
) -> None:
    place = place_of(kind)
    with Judge() as judge, place.connect(data_inlining_row_limit=0) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", spark_handle)
        compared = Compared(seed, place, session, judge)
        for _ in range(STEPS):
            compared.step()
        compared.check_past()
        check_files(place, session)
        print(f"seed {seed}: {dict(compared.done)}")
