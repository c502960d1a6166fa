"""Lakes of older versions are brought to newer ones as the extension does it.

`fixtures/lakes-older/README.md` says what they are.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dbt.adapters.ducklake.lake import LakeDescription, connect, migrate_lake
from dbt.adapters.ducklake.lake.errors import (
    InvalidDescription,
    InvalidMetadata,
    MigrationRefused,
    UnsupportedVersion,
    VersionDiffers,
)
from tests.concurrency.workers import migrate_and_die
from tests.interop.reader import rows_at
from tests.judge import Judge
from tests.places import Place
from tests.projects import Project

LAKES = Path(__file__).parents[1] / "fixtures" / "lakes-older"
CASES = [
    ("duckdb", "0.1"), ("duckdb", "0.2"), ("duckdb", "0.3"), ("duckdb", "0.4"),
    ("sqlite", "0.2"), ("sqlite", "0.3"), ("sqlite", "0.4"), ("postgres", "0.3"), ("postgres", "0.4"),
]  # fmt: skip
# A table by its columns, each with its type, and its rows as texts.
Found = dict[str, tuple[list[tuple[str, str]], list[tuple[Any, ...]]]]
# The first three columns of inlined rows were called so, and are called so.
LEADING = {"row_id": "_ducklake_row_id", "begin_snapshot": "_ducklake_begin_snapshot"}
LEADING["end_snapshot"] = "_ducklake_end_snapshot"


@dataclass
class Older:
    """A copy of the metadata of a lake of a version; its files are read where they are."""

    kind: str
    files: Path
    copy: Path
    postgres: str | None = None

    @property
    def metadata(self) -> str:
        return f"postgres:{self.postgres}" if self.kind == "postgres" else f"{self.kind}:{self.copy}"

    @property
    def schema(self) -> str | None:
        return self.copy.name.replace(".", "_") if self.kind == "postgres" else None

    @property
    def options(self) -> dict[str, Any]:
        return {"data_path": f"{self.files}/files/", "override_data_path": True, "metadata_schema": self.schema}

    def describe(self, **more: Any) -> LakeDescription:
        return LakeDescription(self.metadata, **{**self.options, **more})

    def run(self, *statements: str) -> None:
        if self.kind == "postgres":
            with psycopg.connect(str(self.postgres), options=f"-c search_path={self.schema}") as server:
                for sql in statements:
                    server.execute(sql)
        elif self.kind == "sqlite":
            with closing(sqlite3.connect(self.copy)) as file, file:
                for sql in statements:
                    file.execute(sql)
        else:
            with duckdb.connect(str(self.copy)) as opened:
                for sql in statements:
                    opened.execute(sql).fetchall()

    def migrated_by_judge(self, judge: Judge) -> None:
        with judge.attached(self.metadata, automatic_migration=True, **self.options):
            pass

    def tables(self) -> Found:
        if self.kind == "postgres":
            with psycopg.connect(str(self.postgres), options=f"-c search_path={self.schema}") as server:
                names = server.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = %s", [self.schema]
                ).fetchall()
                return {name: self._of_postgres(server, name) for (name,) in names}
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.copy)) as file:
                names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                return {
                    name: (
                        [(row[1], row[2]) for row in file.execute(f'PRAGMA table_info("{name}")')],
                        sorted(map(tuple, file.execute(f'SELECT * FROM "{name}"')), key=repr),
                    )
                    for (name,) in names
                }
        with duckdb.connect(str(self.copy), read_only=True) as opened:
            names = opened.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
            return {
                name: (
                    [(row[0], row[1]) for row in opened.execute(f'DESCRIBE "{name}"').fetchall()],
                    sorted(opened.execute(f'SELECT COLUMNS(*)::VARCHAR FROM "{name}"').fetchall(), key=repr),
                )
                for (name,) in names
            }

    def _of_postgres(self, server: psycopg.Connection[Any], name: str) -> Any:
        columns = server.execute(
            "SELECT column_name, udt_name FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            [self.schema, name],
        ).fetchall()
        shown = ", ".join(f'CAST("{column}" AS text)' for column, _ in columns)
        return columns, sorted(server.execute(f'SELECT {shown} FROM "{name}"').fetchall(), key=repr)


LakeOf = Callable[[str, str, str], Older]


@pytest.fixture
def lake_of(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LakeOf]:
    made: list[Older] = []

    def make(kind: str, version: str, name: str) -> Older:
        files = LAKES / ("0.2" if version == "0.1" else version) / kind
        lake = Older(kind, files, tmp_path / f"{name}_{version}.{kind}")
        if kind == "postgres":
            lake.postgres = request.getfixturevalue("postgres")
            lake.copy = tmp_path / f"migration_{name}_{version}_{abs(hash(tmp_path))}"
            with psycopg.connect(lake.postgres, autocommit=True) as server:
                server.execute(f'CREATE SCHEMA "{lake.schema}"')
            made.append(lake)
            lake.run((files / "lake.sql").read_text(encoding="utf-8"))
        else:
            shutil.copy(files / f"lake.{'ducklake' if kind == 'duckdb' else kind}", lake.copy)
        # What was added from outside is there by a path that is relative to where the extension ran.
        own = "NOT path_is_relative" if kind == "postgres" else "path_is_relative IN (0)"
        lake.run(f"UPDATE ducklake_data_file SET path = '{files}/' || path WHERE {own}")
        if version == "0.1":
            lake.run(*_BEFORE_0_2)
        return lake

    yield make
    for lake in made:
        with psycopg.connect(str(lake.postgres), autocommit=True) as server:
            server.execute(f'DROP SCHEMA "{lake.schema}" CASCADE')


# What 0.2 brought, taken away.
_BEFORE_0_2 = (
    "UPDATE ducklake_data_file SET path = (SELECT s.path || t.path FROM ducklake_table t JOIN ducklake_schema s "
    "USING (schema_id) WHERE t.table_id = ducklake_data_file.table_id LIMIT 1) || path WHERE path_is_relative",
    "UPDATE ducklake_delete_file SET path = (SELECT s.path || t.path FROM ducklake_table t JOIN ducklake_schema s "
    "USING (schema_id) WHERE t.table_id = ducklake_delete_file.table_id LIMIT 1) || path WHERE path_is_relative",
    "UPDATE ducklake_partition_column SET column_id = (SELECT count(*) FROM ducklake_column c "
    "WHERE c.table_id = ducklake_partition_column.table_id AND c.parent_column IS NULL AND c.end_snapshot IS NULL "
    "AND c.column_id < ducklake_partition_column.column_id)",
    "CREATE TABLE s AS SELECT * EXCLUDE (path, path_is_relative) FROM ducklake_schema",
    "CREATE TABLE t AS SELECT * EXCLUDE (path, path_is_relative) FROM ducklake_table",
    "CREATE TABLE m AS SELECT key, CASE key WHEN 'version' THEN '0.1' ELSE value END AS value FROM ducklake_metadata "
    "WHERE scope IS NULL",
    "CREATE TABLE f AS SELECT * EXCLUDE (mapping_id) FROM ducklake_data_file",
    *(f"DROP TABLE ducklake_{name}" for name in
      ("schema", "table", "metadata", "data_file", "column_mapping", "name_mapping")),
    *(f"ALTER TABLE {short} RENAME TO ducklake_{name}" for short, name in
      (("s", "schema"), ("t", "table"), ("m", "metadata"), ("f", "data_file"))),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "version"), CASES)
def test_to_1_0_as_the_extension_does_it(kind: str, version: str, lake_of: LakeOf) -> None:
    ours, theirs = lake_of(kind, version, "lake"), lake_of(kind, version, "lake_2")
    before = ours.tables()
    told = migrate_lake(ours.describe(ducklake_version="1.0"), dry_run=True)
    assert ours.tables() == before
    done = migrate_lake(ours.describe(ducklake_version="1.0"))
    assert done == told
    assert [done[0].before, done[-1].after] == [version, "1.0"]
    if (kind, version) == ("sqlite", "0.2"):
        with pytest.raises(duckdb.BinderException, match="SQLite tables only support"):
            theirs.migrated_by_judge(Judge.of_this_process())
        theirs = lake_of("sqlite", "0.3", "other")
        theirs.migrated_by_judge(Judge.of_this_process())
        assert {name: columns for name, (columns, _) in ours.tables().items() if "inlined" not in name} == {
            name: columns for name, (columns, _) in theirs.tables().items() if "inlined" not in name
        }
        return
    theirs.migrated_by_judge(Judge.of_this_process())
    found, expected = ours.tables(), theirs.tables()
    assert found.keys() == expected.keys()
    for name in found:
        if kind == "postgres" and version == "0.3" and name.startswith("ducklake_inlined_data_"):
            # As DuckDB 2.0 does: 1.5 leaves texts and times in PostgreSQL's own types, which hold less.
            continue
        assert found[name] == expected[name], name


@pytest.mark.parametrize(("kind", "version"), CASES)
def test_to_1_1(kind: str, version: str, lake_of: LakeOf, tmp_path: Path) -> None:
    """What comes of it has the tables and columns of a new lake, and the rows of one of 1.0."""
    lake, older = lake_of(kind, version, "lake"), lake_of(kind, version, "older")
    migrate_lake(older.describe(ducklake_version="1.0"))
    done = migrate_lake(lake.describe(ducklake_version="1.1"))
    assert [done[0].before, done[-1].after] == [version, "1.1"]
    new = Older(kind, lake.files, tmp_path / f"new_{abs(hash(tmp_path))}.{kind}", lake.postgres)
    connect(new.describe(ducklake_version="1.1", data_path=str(tmp_path))).close()
    found, before, made = lake.tables(), older.tables(), new.tables()
    if kind == "postgres":
        with psycopg.connect(str(lake.postgres), autocommit=True) as server:
            server.execute(f'DROP SCHEMA "{new.schema}" CASCADE')
    for name, (columns, _) in made.items():
        assert found[name][0] == columns, name
    for name, (columns, rows) in found.items():
        if name == "ducklake_view_column_tag":
            continue
        was = before[name]
        renamed = [
            LEADING.get(column, column) if place < 3 and "inlined_data_" in name else column
            for place, (column, _) in enumerate(was[0])
        ]
        assert renamed == [column for column, _ in columns[: len(was[0])]]
        kept = sorted((row[: len(was[0])] for row in rows), key=repr)
        assert all(value is None for row in rows for value in row[len(was[0]) :])
        if name == "ducklake_metadata":
            assert ("version", "1.1") in [row[:2] for row in rows]
        elif name == "ducklake_column":
            # The field that was renamed has its default again.
            assert [row for row in kept if row not in was[1]] == [row for row in kept if "d" in row and "7" in row]
            assert len(kept) == len(was[1])
        elif name == "ducklake_schema_versions":
            assert set(was[1]) <= set(kept)
        else:
            assert kept == was[1], name


@pytest.mark.parametrize(("kind", "version"), [case for case in CASES if case != ("duckdb", "0.1")])
def test_rows_are_what_they_were(kind: str, version: str, lake_of: LakeOf) -> None:
    """At every snapshot, by both: we in what we migrated to 1.1, the extension in what we migrated to 1.0."""
    lake, older = lake_of(kind, version, "lake"), lake_of(kind, version, "older")
    migrate_lake(lake.describe(ducklake_version="1.1"))
    migrate_lake(older.describe(ducklake_version="1.0"))
    judge, expected, wrong = Judge.of_this_process(), dict[tuple[int, str], Any](), []
    with judge.attached(older.metadata, **older.options), connect(lake.describe()) as opened:
        for info in opened.snapshots():
            snapshot = opened.snapshot(version=info.id)
            for table in (table for schema in snapshot.schemas() for table in snapshot.definitions(schema.name)):
                columns = ", ".join(f'CAST("{column.name}" AS VARCHAR)' for column in table.columns)
                sql = f'SELECT {columns} FROM lake."{table.schema.name}"."{table.name}" AT (VERSION => {info.id})'
                expected[info.id, str(table)] = sorted(judge.rows(sql), key=repr)
                if rows_at(judge, snapshot, table) != expected[info.id, str(table)]:
                    wrong.append((info.id, str(table)))
    # Where a field lost its default, the extension reads NULL until the lake is of 1.1.
    assert [one for one in wrong if one[1] != "main.nested"] == []
    assert len(expected) > 100


@pytest.mark.parametrize(
    ("kind", "version"), [("duckdb", "0.1"), ("duckdb", "0.3"), ("sqlite", "0.2"), ("postgres", "0.3")]
)
def test_killed_at_any_step_it_is_the_old_lake_or_the_new_one(kind: str, version: str, lake_of: LakeOf) -> None:
    lake, other = lake_of(kind, version, "lake"), lake_of(kind, version, "other")
    before = lake.tables()
    migrate_lake(other.describe(ducklake_version="1.1"))
    after, found = other.tables(), list[bool]()
    calls = 0
    while not found or not found[-1]:
        process = get_context("spawn").Process(
            target=migrate_and_die, args=(lake.describe(ducklake_version="1.1"), calls)
        )
        process.start()
        process.join(60)
        assert process.exitcode == -9, f"killed before call {calls}: exit code {process.exitcode}"
        now = lake.tables()
        assert now in (before, after), calls
        found.append(now == after)
        calls += 9
    assert len(found) > 3


def test_a_lake_is_migrated_only_where_that_is_asked(lake_of: LakeOf) -> None:
    lake = lake_of("duckdb", "0.3", "lake")
    with pytest.raises(UnsupportedVersion, match=r"format version 0\.3.*`automatic_migration: true`.*ducklake_migrate"):
        connect(lake.describe())
    with connect(lake.describe(automatic_migration=True, ducklake_version="1.0")) as opened:
        assert opened.snapshot().schema("other")
    with connect(lake.describe()) as opened:
        assert not opened.nests_schemas
    with pytest.raises(VersionDiffers, match=r"version 1\.0, and the profile asks for 1\.1.*automatic_migration"):
        connect(lake.describe(ducklake_version="1.1"))
    with connect(lake.describe(automatic_migration=True, ducklake_version="1.1")) as opened:
        assert opened.nests_schemas
    with pytest.raises(VersionDiffers, match="There is no way back"):
        connect(lake.describe(ducklake_version="1.0"))
    assert migrate_lake(lake.describe()) == []
    for given in ({"ducklake_version": "0.4"}, {"ducklake_version": "1.1", "catalog": "x"},
                  {"automatic_migration": True, "read_only": True}):  # fmt: skip
        with pytest.raises(InvalidDescription):
            lake.describe(**given)


def test_a_column_with_a_name_of_ducklakes_stops_it(lake_of: LakeOf) -> None:
    lake = lake_of("duckdb", "0.4", "lake")
    inlined = next(name for name, (columns, _) in lake.tables().items() if ("at_time", "TIMESTAMP") in columns[:9])
    lake.run(f'ALTER TABLE "{inlined}" RENAME COLUMN at_time TO _DuckLake_Row_Id')
    before = lake.tables()
    with pytest.raises(
        MigrationRefused, match=r"from format version 1\.0 to 1\.1.*has a column _ducklake_row_id.*Rename"
    ):
        migrate_lake(lake.describe(ducklake_version="1.1"))
    assert lake.tables() == before


@pytest.mark.parametrize(("kind", "version"), [("duckdb", "0.2"), ("sqlite", "0.3"), ("postgres", "0.3")])
def test_inlined_tables_that_nothing_tells_of_are_left(kind: str, version: str, lake_of: LakeOf) -> None:
    """Older clients register them for tables that expired, and for versions of which nothing tells."""
    lake = lake_of(kind, version, "lake")
    name = "ducklake_inlined_data_999_1"
    lake.run(
        f"CREATE TABLE {name} (row_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, x INTEGER)",
        f"INSERT INTO ducklake_inlined_data_tables VALUES (999, '{name}', 1)",
        f"CREATE TABLE ducklake_inlined_data_1_1 AS SELECT * FROM {name}",
        "INSERT INTO ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_1', 0)",
    )
    migrate_lake(lake.describe(ducklake_version="1.1"))
    with connect(lake.describe()) as opened:
        snapshot = opened.snapshot()
        assert snapshot.inlined(snapshot.table("main", "orders")) == ()
        assert snapshot.files(snapshot.table("main", "orders")).inlined_rows == ()


def test_inlined_json_and_what_1_5_migrated_on_postgresql(lake_of: LakeOf) -> None:
    lake = lake_of("postgres", "0.3", "lake")
    inlined = next(name for name, (columns, _) in lake.tables().items() if ("later", "int4") in columns)
    table = int(inlined.split("_")[3])
    lake.run(
        f"ALTER TABLE {inlined} ADD COLUMN j json",
        f'UPDATE {inlined} SET j = \'{{"a": "ä"}}\'',
        "INSERT INTO ducklake_column "
        "SELECT 99, begin_snapshot, NULL, table_id, 99, 'j', 'json', NULL, NULL, true, NULL "
        f"FROM ducklake_column WHERE table_id = {table} AND column_name = 'later'",
    )
    # It leaves the types as they are.
    lake.migrated_by_judge(Judge.of_this_process())
    assert ("j", "json") in lake.tables()[inlined][0]
    migrate_lake(lake.describe(ducklake_version="1.1"))
    assert ("j", "bytea") in lake.tables()[inlined][0]
    with connect(lake.describe()) as opened:
        snapshot = opened.snapshot()
        found = snapshot.table("main", "inlined")
        rows = snapshot.files(found).inlined_rows
        assert [row.values[-1] for row in rows if row.kept_in == inlined] == ['{"a": "ä"}']
        assert len(snapshot.files(snapshot.table("main", "plain")).inlined_rows) == 3


def test_the_operation_says_what_it_does(lake_of: LakeOf, tmp_path: Path) -> None:
    lake = lake_of("duckdb", "0.3", "lake")
    place = Place("duckdb", tmp_path)
    given = {"metadata": lake.metadata, "data_path": lake.options["data_path"], "override_data_path": True}
    project = Project(tmp_path / "project", place, **given, ducklake_version="1.1")
    before = lake.tables()
    said = project.run("run-operation", "ducklake_migrate", "--args", "{dry_run: true}")
    assert "Would migrate from 0.3 to 0.4: makes ducklake_macro" in said
    assert "Would migrate from 1.0 to 1.1: renames the leading columns of 3 tables of inlined rows" in said
    assert lake.tables() == before
    assert "Migrated from 0.4 to 1.0: the version" in project.run("run-operation", "ducklake_migrate")
    assert "There is nothing to migrate." in project.run("run-operation", "ducklake_migrate")
    assert "Run again" not in project.run("run-operation", "ducklake_doctor")


def test_inlined_rows_whose_version_is_told_of_another_snapshot(tmp_path: Path) -> None:
    """What columns they have is then seen by the inlined table itself, before a migration and after it."""
    lake = Older("duckdb", tmp_path, tmp_path / "lake.duckdb")
    judge = Judge.of_this_process()
    with judge.attached(lake.metadata, data_path=f"{tmp_path}/files/"):
        judge.run(
            "CREATE TABLE lake.t (a INT)", "ALTER TABLE lake.t ADD COLUMN b INT", "CREATE TABLE lake.u (x INT)",
            "CALL lake.set_option('data_inlining_row_limit', 10, table_name => 't')",
            "INSERT INTO lake.t VALUES (1, 42)",
            "CREATE TABLE lake.w (x INT)", "CALL ducklake_expire_snapshots('lake', older_than => now())",
        )  # fmt: skip

    def rows() -> list[tuple[Any, ...]]:
        with connect(lake.describe()) as opened:
            snapshot = opened.snapshot()
            return [row.values for row in snapshot.files(snapshot.table("main", "t")).inlined_rows]

    assert rows() == [(1, 42)]
    migrate_lake(lake.describe(ducklake_version="1.1"))
    assert rows() == [(1, 42)]
    # Even where nothing is told but of a later version.
    lake.run("UPDATE ducklake_schema_versions SET schema_version = 99 WHERE table_id = 1")
    assert rows() == [(1, 42)]
    lake.run("UPDATE ducklake_column SET column_name = 'c' WHERE column_name = 'b'")
    with pytest.raises(InvalidMetadata, match="nothing says which columns"):
        rows()
