"""Lakes that the extension of DuckDB 2.0 made, with what it reads in them: the client and Spark read the same, row for
row, at every snapshot. `fixtures/lakes-1.1/README.md` says what they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.lake import Compare, Lake, LakeDescription, Snapshot, Table, connect, parse_value
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.spark.query import fetched
from dbt.adapters.ducklake.spark.schema import REFUSED
from dbt.adapters.ducklake.spark.schema import quoted as quoted_for_spark
from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import spark_settings
from tests.interop.reader import rows_at
from tests.interop.test_reading import _differing
from tests.interop.test_spark_reading import read, texts
from tests.judge import Judge

Rows = list[tuple[str, ...]]
LAKES = Path(__file__).parents[1] / "fixtures" / "lakes-1.1"
NAMES = sorted(path.name for path in LAKES.iterdir() if path.is_dir())


class Made:
    """A lake of theirs, with what they read."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = LAKES / name
        self.said: dict[str, Any] = json.loads((self.folder / "expected.json").read_text(encoding="utf-8"))
        # To open a file may change it.
        copy = shutil.copy(self.folder / "lake.ducklake", folder)
        with duckdb.connect(copy) as metadata:
            # What was added from outside is there by a path that is relative to where the extension ran.
            outside = "WHERE NOT path_is_relative"
            metadata.execute(f"UPDATE ducklake_data_file SET path = $1 || '/' || path {outside}", [str(self.folder)])
        self.description = LakeDescription(
            f"duckdb:{copy}", data_path=f"{self.folder}/files/", override_data_path=True, read_only=True
        )

    def snapshots(self, kind: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        for snapshot in self.said["snapshots"]:
            yield snapshot["id"], [one for one in snapshot["relations"] if one["kind"] == kind and "rows" in one]

    def rows(self, judge: Judge, relation: dict[str, Any], in_spark: bool = False) -> Rows:
        """As texts, and as Spark has them: with microseconds, and without GEOMETRY."""
        columns = [(quoted(name), kind) for name, kind in relation["columns"]]
        shown = [f"CAST(CAST({name} AS {kind}) AS VARCHAR)" for name, kind in columns]
        if in_spark:
            kept = [place for place, (_, kind) in enumerate(columns) if kind != "GEOMETRY"]
            cut = {"TIMESTAMP_NS": "CAST(CAST(left({}, 26) AS TIMESTAMP) AS VARCHAR)"}
            shown = [cut.get(columns[place][1], "{}").format(shown[place]) for place in kept]
        path = str(self.folder / relation["rows"]).replace("'", "''")
        return sorted(judge.rows(f"SELECT {', '.join(shown)} FROM read_parquet('{path}')"), key=repr)


@pytest.fixture(params=NAMES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    return Made(str(request.param), tmp_path)


def tables_at(lake: Lake, made: Made) -> Iterator[tuple[Snapshot, Table, dict[str, Any]]]:
    for version, expected in made.snapshots("table"):
        snapshot = lake.snapshot(version=version)
        found = {(s.name, t.name) for s in snapshot.schemas() for t in snapshot.tables(s.name)}
        # Of values that Parquet cannot hold, nothing is said.
        unsaid = {("main", "deep")}
        assert found - unsaid == {(*one["schema"], one["name"]) for one in expected} - unsaid
        for one in expected:
            yield snapshot, snapshot.table(".".join(one["schema"]), one["name"]), one


def test_the_client_reads_what_the_extension_reads(made: Made) -> None:
    judge, wrong, count = Judge.of_this_process(), [], 0
    with connect(made.description) as lake:
        for snapshot, table, expected in tables_at(lake, made):
            assert [column.name for column in table.columns] == [name for name, _ in expected["columns"]]
            count += 1
            if rows_at(judge, snapshot, table) != made.rows(judge, expected):
                wrong.append((snapshot.id, str(table)))
    assert not wrong
    assert count or made.folder.name in ("macros",)


def test_spark_reads_what_the_extension_reads(made: Made, spark: SparkSession) -> None:
    judge, wrong, seen = Judge.of_this_process(), [], set[str]()
    with connect(made.description) as lake:
        for snapshot, table, expected in tables_at(lake, made):
            reading = f"{table} {table.columns} {snapshot.files(table)}"
            if reading in seen:
                continue
            seen.add(reading)
            kept = [column for column in table.columns if column.type.name not in REFUSED]
            rows = read(spark, lake, snapshot, table).select(*(quoted_for_spark(column.name) for column in kept))
            found = texts(judge, replace(table, columns=tuple(kept)), rows)
            if (theirs := made.rows(judge, expected, in_spark=True)) != found:
                wrong.append((snapshot.id, str(table), _differing(found, theirs)))
    assert not wrong


def test_views_of_duckdb_have_the_same_rows_in_spark(made: Made, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Those that Spark may not read as DuckDB does say so."""
    judge, wrong, refused = Judge.of_this_process(), [], dict[str, str]()
    newest, views = list(made.snapshots("view"))[-1]
    with connect(made.description) as lake:
        session = LakeSession({"shop": lake}, "shop", "main", SparkHandle(spark_settings(tmp_path_factory)))
        assert lake.snapshot().id == newest
        for view in views:
            name = f"{'.'.join(view['schema'])}.{view['name']}"
            try:
                rows = run(session, f"select * from {name}").rows
            except NotAllowed as error:
                refused[name] = str(error)
                continue
            assert rows is not None
            assert rows.columns == [column for column, _ in view["columns"]]
            with judge.registered("spark_rows", rows.toArrow()):
                shown = ", ".join(f"CAST(CAST({quoted(n)} AS {kind}) AS VARCHAR)" for n, kind in view["columns"])
                found = sorted(judge.rows(f"SELECT {shown} FROM spark_rows"), key=repr)
            if found != made.rows(judge, view):
                wrong.append((name, _differing(found, made.rows(judge, view))))
    assert not wrong
    # A macro of DuckDB's.
    assert refused.keys() == ({"main.v"} if made.folder.name == "macros" else set())
    assert all("add_tax" in text for text in refused.values())


def test_the_change_feed_has_the_rows_that_the_extension_has(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made, wrong = Made("changes", tmp_path), []
    with connect(made.description) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory)))
        of_one = {one["from"]: one["rows"] for one in made.said["changes"] if one["from"] == one["to"]}
        assert len(of_one) == 10
        for one in made.said["changes"]:
            # Of the extension's answers only those for one snapshot hold: for a range it takes what became of a row
            # that was inlined for a part of its update.
            expected = [row for at in range(one["from"], one["to"] + 1) for row in of_one[at]]
            of = f"ducklake_table_changes('lake', 'main', 't', {one['from']}, {one['to']})"
            found = run(session, f"select snapshot_id, rowid, change_type, id, v from {of}").rows
            assert found is not None
            mine = sorted((list(row) for row in fetched(found)), key=repr)
            if mine != sorted(expected, key=repr):
                wrong.append((one["from"], one["to"], _differing(mine, expected)))
    assert not wrong


SPARK_LITERALS = {"DATE": "date", "TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp"}


def test_conditions_find_rows_in_partitions_of_epochs(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    made, judge, wrong = Made("epoch_partitions", tmp_path), Judge.of_this_process(), []
    _, tables = list(made.snapshots("table"))[-1]
    with connect(made.description) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory)))
        run(session, "set spark.sql.session.timeZone = Asia/Tokyo")
        for table in (one for one in tables if dict(one["columns"]).get("seen") in SPARK_LITERALS):
            kind = dict(table["columns"])["seen"]
            path = f"read_parquet('{made.folder / table['rows']}')"
            texts_of = judge.rows(f"SELECT DISTINCT CAST(seen AS VARCHAR) FROM {path} WHERE seen IS NOT NULL LIMIT 8")
            for (text,) in [*texts_of, ("1969-12-31 23:59:58",), ("1970-01-01 00:00:00",)]:
                of_kind = text[:10] if kind == "DATE" else text
                of_kind += "+00" if "ZONE" in kind and not text.endswith("+00") else ""
                for operator in ("=", "<", "<=", ">", ">=", "<>"):
                    literal = f"{SPARK_LITERALS[kind]}'{of_kind}'".replace("+00'", "+00:00'")
                    found = run(session, f"select count(*) from {table['name']} where seen {operator} {literal}").rows
                    assert found is not None
                    mine = [tuple(row) for row in fetched(found)]
                    sql = f"SELECT count(*) FROM {path} WHERE seen {operator} CAST('{of_kind}' AS {kind})"
                    if mine != (theirs := judge.rows(sql)):
                        wrong.append((sql, mine, theirs))
        snapshot = lake.snapshot()
        by_both = snapshot.table("main", "by_both")
        seen = by_both.column("seen")
        early = Compare(seen.id, "<", parse_value(seen.type, "2024-01-05 00:00:00"))
        assert len(snapshot.files(by_both, [early]).data_files) < len(snapshot.files(by_both).data_files)
    assert not wrong
