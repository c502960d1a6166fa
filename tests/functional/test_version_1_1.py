"""What a lake of DuckLake 1.1 has and one of 1.0 has not, through statements."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import LakeDescription, LakeError, SnapshotId, Transaction, connect
from dbt.adapters.ducklake.lake.errors import ChangeRefused, LakeMigrated, NameTaken, SchemaNotFound
from dbt.adapters.ducklake.lake.migration import migrate_lake
from dbt.adapters.ducklake.spark.errors import JobFailed, WriteRefused
from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.statements.errors import NameNotFound, NotAllowed, NotUnderstood
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import spark_settings
from tests.places import Place
from tests.projects import Project
from tests.sessions import Session, session_over


@pytest.fixture
def lake(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_over(tmp_path, spark_settings(tmp_path_factory), ("lake", "other"), "1.1") as made:
        yield made


def stored(lake: Session, sql: str) -> list[tuple[Any, ...]]:
    """Rows of the metadata, as they are."""
    with duckdb.connect(lake.metadata("lake").removeprefix("duckdb:"), read_only=True) as metadata:
        return metadata.execute(sql).fetchall()


def newest(lake: Session) -> int:
    return lake.session.lakes["lake"].snapshot().id


# Nested schemas.


def test_schemas_lie_within_schemas(lake: Session) -> None:
    lake.run("create schema sales", "create schema sales.europe", "create schema lake.sales.asia")
    lake.run(
        "create table sales.europe.orders as select 1 as id", "create table lake.sales.asia.orders as select 2 as id"
    )
    lake.run("create table sales.orders as select 3 as id", "create table orders as select 4 as id")
    expected = {
        "sales.europe.orders": 1, "lake.sales.europe.orders": 1, "`sales.europe`.orders": 1, "SALES.Europe.ORDERS": 1,
        "lake.`sales.europe`.orders": 1, "sales.asia.orders": 2, "sales.orders": 3, "orders": 4,
    }  # fmt: skip
    for name, id in expected.items():
        assert lake.run(f"select id from {name}") == [(id,)], name
    assert lake.run("show schemas") == [("main",), ("sales",), ("sales.europe",), ("sales.asia",)]
    assert [row[1] for row in lake.run("show tables in sales.europe")] == ["orders"]
    assert stored(lake, "SELECT schema_name, parent_schema_id, path FROM ducklake_schema ORDER BY 1")[0][:2] == (
        "asia",
        1,
    )
    rows = stored(
        lake, "SELECT schema_id, schema_name, parent_schema_id, path, schema_uuid FROM ducklake_schema ORDER BY 1"
    )
    assert [(id, name, parent) for id, name, parent, *_ in rows] == [
        (0, "main", None), (1, "sales", None), (2, "europe", 1), (3, "asia", 1),
    ]  # fmt: skip
    assert [path for *_, path, _ in rows] == ["main/", "sales/", f"{rows[2][4]}/", f"{rows[3][4]}/"]
    made = [row[0] for row in stored(lake, "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id")]
    assert 'created_schema:"sales"."europe"' in made
    assert any(text.startswith('created_table:"sales"."europe"."orders"') for text in made)


def test_schemas_that_are_missing_above_one_are_made_with_it(lake: Session) -> None:
    lake.run("create schema if not exists lake.a.b.c", "create schema if not exists `a.b.c`")
    assert lake.run("show schemas") == [("main",), ("a",), ("a.b",), ("a.b.c",)]
    with pytest.raises(NameTaken):
        lake.run("create schema A.B")
    # What may be a lake whose name is written wrongly is no schema.
    for sql in ("create schema typo.x", "drop schema if exists typo.x", "use typo.x"):
        with pytest.raises(NameNotFound, match="There is no lake typo in this profile, nor a schema"):
            lake.run(sql)


def test_columns_are_named_by_all_of_a_nested_schema(lake: Session) -> None:
    """Tables of one name at every level, and columns and structs named like schemas."""
    lake.run("create schema a", "create schema a.a", "create schema b")
    for value, schema in enumerate(("main", "a", "a.a", "b"), 1):
        lake.run(f"create table {schema}.a as select {value} as id, named_struct('a', {value} * 10, 'id', 0) as a")
    rows = lake.run("select main.a.id, lake.a.a.id, lake.a.a.a.id, b.a.id from main.a, lake.a.a, lake.a.a.a, b.a")
    assert rows == [(1, 2, 3, 4)]
    assert lake.run("select lake.a.a.a.a.a from lake.a.a.a") == [(30,)]
    found = lake.run(
        "select x.id from main.a x where exists (select 1 from a.a.a where a.a.a.id = x.id + 2) "
        "and not exists (select 1 from b.a where b.a.id = x.id)"
    )
    assert found == [(1,)]
    # In a subquery over a table with a column `a`, `a.a.a.id` would be a field of that.
    lake.run("create table b.c as select 4 as id")
    lake.run("delete from a.a.a where exists (select 1 from b.c where b.c.id = a.a.a.id + 1)")
    assert [lake.run(f"select count(*) from {one}") for one in ("main.a", "lake.a.a", "a.a.a", "b.c")] == [
        [(1,)], [(1,)], [(0,)], [(1,)],
    ]  # fmt: skip
    lake.run("merge into a.a.a using b.c on a.a.a.id = b.c.id when not matched then insert (id) values (b.c.id)")
    assert lake.run("select id from a.a.a") == [(4,)]
    lake.run("update a.a.a set id = 9 where lake.a.a.a.id = 4", "insert into a.a.a select * from main.a")
    assert lake.run("select id from a.a.a") == [(1,), (9,)]


def test_a_lake_goes_before_a_schema_of_its_name(lake: Session) -> None:
    lake.run(
        "create schema other", "create schema lake.other.main", "create table lake.other.main.t as select 'nested' as v"
    )
    lake.run("create table other.main.t as select 'lake' as v")
    assert lake.run("select v from other.main.t") == [("lake",)]
    assert lake.run("select v from lake.other.main.t") == [("nested",)]


def test_a_name_with_dots_is_another_schema(lake: Session) -> None:
    """One made by an older client stays what it is, beside one of its spelling within others."""
    with connect(LakeDescription(lake.metadata("lake"))) as opened:
        transaction = opened.transaction()
        transaction.create_schema("x")
        transaction._create_schema(("x.y",), None)
        transaction.commit()
    lake.run("create table `x.y`.t as select 'whole' as v")
    lake.run("create schema x.y", "create table x.y.t as select 'within' as v")
    assert lake.run("show schemas") == [("main",), ("x",), ("x.y",), ('"x"."y"',)]
    assert lake.run("select v from `x.y`.t") == [("whole",)]
    assert lake.run("select v from x.y.t") == [("within",)]
    assert lake.run('select v from lake.`"x"."y"`.t') == [("within",)]


def test_a_schema_takes_those_within_it_along(lake: Session) -> None:
    lake.run("create schema lake.a.b.c", "create table a.b.c.t as select 1 as id", "create view a.v as select 1 as id")
    with pytest.raises(ChangeRefused, match=r"it holds a\.b\.c, a\.b, v"):
        lake.run("drop schema a")
    lake.run("drop schema a cascade")
    assert lake.run("show schemas") == [("main",)]
    last = stored(lake, "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id DESC LIMIT 1")[0][0]
    assert sorted(last.split(",")) == [
        "dropped_schema:1", "dropped_schema:2", "dropped_schema:3", "dropped_table:4", "dropped_view:5",
    ]  # fmt: skip
    assert lake.run("select id from a.b.c.t version as of 2") == [(1,)]
    with pytest.raises(NameNotFound):
        lake.run("select * from lake.a.b.c.t")


def test_a_schema_of_a_dropped_one_is_no_more(lake: Session) -> None:
    lake.run("create schema lake.a.b", "create table a.b.t as select 1 as id")
    lake.session.lakes["lake"].close()
    with duckdb.connect(lake.metadata("lake").removeprefix("duckdb:")) as metadata:
        metadata.execute("UPDATE ducklake_schema SET end_snapshot = 2 WHERE schema_name = 'a'").fetchall()
    with connect(LakeDescription(lake.metadata("lake"))) as opened:
        assert [schema.name for schema in opened.snapshot().schemas()] == ["main"]
        assert [schema.name for schema in opened.snapshot(1).schemas()] == ["main", "a", "a.b"]
        with pytest.raises(SchemaNotFound):
            opened.snapshot().schema("a.b")


def test_views_over_nested_schemas(lake: Session) -> None:
    lake.run("create schema lake.a.b", "create table a.b.t as select 1 as id, 'x' as v")
    lake.run("create view seen as select t.id, a.b.t.v from a.b.t")
    assert lake.run("select * from seen") == [(1, "x")]
    lake.run("use a.b")
    assert lake.run("select * from t") == [(1, "x")]
    lake.run("create or replace view w as select v from t")
    assert lake.run("select * from main.seen") == [(1, "x")]
    assert lake.run("select * from lake.a.b.w") == [("x",)]
    assert (
        '{DUCKLAKE_CATALOG}."a"."b"."t"' in stored(lake, "SELECT sql FROM ducklake_view WHERE view_name = 'seen'")[0][0]
    )


def test_writers_of_nested_schemas_meet(lake: Session) -> None:
    opened = lake.session.lakes["lake"]
    lake.run("create schema lake.a.b")
    one, other = opened.transaction(), opened.transaction()
    one.create_schema("a.c")
    other.drop_schema("a", cascade=True)
    other.commit()
    with pytest.raises(LakeError, match="dropped the schema"):
        one.commit()
    lake.run("create schema a")
    one, other = opened.transaction(), opened.transaction()
    one.create_schema("a.c")
    other.create_schema("A.C")
    other.commit()
    with pytest.raises(LakeError, match="created a schema of that name"):
        one.commit()
    one, other = opened.transaction(), opened.transaction()
    one.drop_schema("a.c")
    other.create_schema("a.c.d")
    other.commit()
    with pytest.raises(LakeError, match="created a schema of that name"):
        one.commit()


@pytest.mark.parametrize("names", [("a.b", "A.c", "a.b.d"), ("s", "S", "s"), ("a.b", "a.b", "a")])
def test_schemas_are_made_side_by_side(
    names: tuple[str, ...], place: Place, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As dbt makes them: of several that have to make the one above them, one does."""
    met, committed = Barrier(len(names), timeout=20), threading.local()
    commit = Transaction.commit

    def together(self: Transaction, *values: Any) -> SnapshotId:
        if not hasattr(committed, "once"):
            committed.once = True
            met.wait()
        return commit(self, *values)

    def make(name: str) -> None:
        with place.connect(ducklake_version="1.1") as opened:
            spark = SparkHandle(spark_settings(tmp_path_factory))
            run(LakeSession({"lake": opened}, "lake", "main", spark), f"CREATE SCHEMA IF NOT EXISTS lake.{name}")

    with place.connect(ducklake_version="1.1") as lake:
        monkeypatch.setattr(Transaction, "commit", together)
        with ThreadPoolExecutor(len(names)) as threads:
            list(threads.map(make, names))
        made = {schema.parts for schema in lake.snapshot().schemas()} - {("main",)}
    expected = {tuple(name.lower().split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}
    assert sorted(tuple(map(str.lower, parts)) for parts in made) == sorted(expected)


def test_a_lake_of_1_0_has_schemas_at_the_top_alone(session: Session) -> None:
    session.run("create schema `a.b`", "create table `a.b`.t as select 1 as id")
    assert session.run("select id from `a.b`.t") == [(1,)]
    for sql in ("create schema lake.a.b", "create table lake.a.b.t as select 1 as id"):
        with pytest.raises((NotAllowed, NameNotFound), match=r"has [34] parts"):
            session.run(sql)


# Comments on columns of views.


def test_columns_of_views_have_comments(lake: Session) -> None:
    lake.run("create table t as select 1 as id, 2 as v")
    lake.run("create view w comment 'all' comment on column (ID 'the key', gone 'nothing') as select id, v from t")
    assert [row[2] for row in lake.run("describe w")] == ["the key", None]
    lake.run("comment on column w.V is 'a value'", "comment on column w.id is null")
    assert [row[2] for row in lake.run("describe w")] == [None, "a value"]
    with pytest.raises(NotAllowed, match="no such column: id, v"):
        lake.run("comment on column w.other is 'x'")
    lake.run("comment on column w.id is 'again'", "alter view w rename to x")
    assert [row[2] for row in lake.run("describe x")] == ["again", "a value"]
    rows = stored(
        lake, "SELECT column_name, begin_snapshot, end_snapshot, key, value FROM ducklake_view_column_tag ORDER BY 1, 2"
    )
    assert [row[0] for row in rows] == ["id"] * 4 + ["v"] * 2
    assert [row[4] for row in rows] == ["the key", None, "again", "again", "a value", "a value"]
    assert [row[2] for row in rows] == [4, 5, 6, None, 6, None]
    changes = stored(lake, "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id DESC LIMIT 3")
    assert changes[1:] == [("altered_view:2",), ("altered_view:2",)]
    lake.run("create or replace view x (a comment 'first', b) as select id, v from t")
    assert [row[2] for row in lake.run("describe x")] == ["first", None]
    lake.run("drop view x")
    assert stored(lake, "SELECT count(*) FROM ducklake_view_column_tag WHERE end_snapshot IS NULL") == [(0,)]


def test_a_lake_of_1_0_keeps_no_comments_on_columns_of_views(session: Session) -> None:
    session.run("create view w comment on column (id 'the key') as select 1 as id")
    assert [row[2] for row in session.run("describe w")] == [None]
    with pytest.raises(ChangeRefused, match=r"from DuckLake 1\.1 on.*automatic_migration"):
        session.run("comment on column w.id is 'x'")


# Partitions by units since 1970.


@pytest.mark.parametrize("transform", ["epoch_year", "epoch_month", "epoch_day", "epoch_hour"])
def test_partitions_by_units_since_1970(lake: Session, transform: str) -> None:
    """The files of a partition hold what DuckDB's date_diff says, in any zone of the session."""
    lake.run("set spark.sql.session.timeZone = America/St_Johns")
    random.seed(7)
    begin, form = datetime(1969, 12, 28, tzinfo=UTC), "%Y-%m-%d %H:%M:%S.%f"
    moments = [begin + timedelta(seconds=random.randrange(8 * 86400)) for _ in range(40)]
    moments += [
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2020, 2, 29, tzinfo=UTC),
    ]
    values = ", ".join(
        f"({place}, timestamp'{m:{form}}+00:00', timestamp_ntz'{m:{form}}', date'{m:%Y-%m-%d}')"
        for place, m in enumerate(moments)
    )
    for column in ("z", "n", "d"):
        lake.run(
            f"create table t_{column} (id int, z timestamp, n timestamp_ntz, d date) "
            f"partitioned by ({transform}({column}))"
        )
        lake.run(f"insert into t_{column} values {values}, (99, null, null, null)")
        unit, of = (
            transform.removeprefix("epoch_"),
            "CAST(z AT TIME ZONE 'UTC' AS TIMESTAMP)" if column == "z" else column,
        )
        files = stored(
            lake,
            "SELECT f.path, partition_value FROM ducklake_data_file f "
            "JOIN ducklake_file_partition_value USING (data_file_id) "
            f"JOIN ducklake_table t ON t.table_id = f.table_id WHERE table_name = 't_{column}'",
        )
        assert len(files) > 2
        for path, value in files:
            file = lake.folder / "lake.ducklake.files/main" / f"t_{column}" / path
            assert path.split("/")[0] == f"{transform}={'__HIVE_DEFAULT_PARTITION__' if value is None else value}"
            with duckdb.connect() as reader:
                reader.execute("SET TimeZone = 'UTC'").fetchall()
                found = reader.execute(
                    f"SELECT DISTINCT date_diff('{unit}', DATE '1970-01-01', {of}) FROM '{file}'"
                ).fetchall()
            assert found == [(None if value is None else int(value),)], (column, path)
        for m in (moments[0], moments[-3], moments[-1]):
            where = f"z = timestamp'{m:%Y-%m-%d %H:%M:%S.%f}+00:00'"
            assert lake.run(f"select count(*) from t_{column} where {where}") == [(sum(x == m for x in moments),)]


def test_units_since_1970_are_of_dates_and_timestamps(lake: Session) -> None:
    with pytest.raises(ChangeRefused, match="column s is varchar"):
        lake.run("create table t (s string) partitioned by (epoch_day(s))")


def test_a_lake_of_1_0_has_no_units_since_1970(session: Session) -> None:
    with pytest.raises(ChangeRefused, match=r"a lake has epoch_day from DuckLake 1\.1 on"):
        session.run("create table t (d date) partitioned by (epoch_day(d))")
    session.run("create table t (d date)")
    with pytest.raises(ChangeRefused, match=r"from DuckLake 1\.1 on"):
        session.run("alter table t set partitioned by (epoch_day(d))")


# Names, files and bounds.


def test_names_that_ducklake_keeps_for_itself(lake: Session) -> None:
    lake.run("create table t as select 1 as row_id, 2 as begin_snapshot")
    assert lake.run("select * from t") == [(1, 2)]
    for sql in (
        "create table u as select 1 as _DuckLake_row_id",
        "alter table t add column _ducklake_x int",
        "alter table t rename column row_id to _ducklake_row_id",
    ):
        with pytest.raises(ChangeRefused, match="begins with _ducklake_"):
            lake.run(sql)


def test_files_tell_their_row_groups_and_bounds_whether_they_are_values(lake: Session) -> None:
    lake.run(
        "create table t (id int, short string, long string, f double) tblproperties ('parquet_row_group_size' = '100')"
    )
    lake.run(
        "insert into t select id, cast(id as string), repeat(cast(id as string), 200), id / 2 from range(100, 1100)"
    )
    lake.run("delete from t where id = 105")
    assert stored(lake, "SELECT sum(row_group_count) >= 10 FROM ducklake_data_file") == [(True,)]
    assert stored(lake, "SELECT row_group_count FROM ducklake_delete_file") == [(1,)]
    for table in ("ducklake_file_column_stats", "ducklake_table_column_stats"):
        rows = stored(lake, f"SELECT DISTINCT column_id, min_is_exact, max_is_exact FROM {table} ORDER BY 1")
        assert rows == [(1, True, True), (2, True, True), (3, False, False), (4, True, True)], table
    lake.run("insert into t values (5000, 'zzz', repeat('z', 10), null)")
    rows = stored(lake, "SELECT column_id, min_is_exact, max_is_exact FROM ducklake_table_column_stats ORDER BY 1")
    # The greatest long text is a value now, the least is what it was.
    assert rows == [(1, True, True), (2, True, True), (3, False, True), (4, True, True)]


def test_a_lake_that_was_migrated_meanwhile_is_opened_anew(session: Session) -> None:
    session.run("create table t as select 1 as id")
    transaction = session.session.lakes["lake"].transaction()
    transaction.comment_on_table("main", "t", "x")
    steps = migrate_lake(LakeDescription(session.metadata("lake"), ducklake_version="1.1"))
    assert [(step.before, step.after) for step in steps] == [("1.0", "1.1")]
    with pytest.raises(LakeMigrated, match=r"with format version 1\.0.*to 1\.1 since"):
        transaction.commit()
    with pytest.raises(LakeMigrated):
        session.run("select * from t")


def test_files_are_merged_across_columns_that_came(lake: Session) -> None:
    """At every snapshot the rows are what they were, also where a file then has columns that the snapshot has not."""
    lake.run("create table t (a int, s struct<x: int>)")
    lake.run("insert into t values (1, named_struct('x', 1))", "insert into t values (2, null)")
    lake.run("alter table t add column b int default 5", "insert into t values (3, null, 3)")
    lake.run("alter table t add column s.y int", "alter table t add column c string default 'c'")
    states = {version: lake.run(f"select * from t version as of {version}") for version in range(1, newest(lake) + 1)}
    merge = "CALL ducklake_merge_adjacent_files('lake', 't')"
    assert lake.run(merge)[0][-2:] == (3, 1)
    lake.run("insert into t values (4, named_struct('x', 4, 'y', 4), 4, 'd')")
    states[newest(lake)] = lake.run("select * from t")
    assert lake.run(merge)[0][-2:] == (2, 1)
    assert {version: lake.run(f"select * from t version as of {version}") for version in states} == states
    # What was dropped, renamed or widened is read of the files that have it.
    lake.run("alter table t drop column b", "insert into t values (5, null, 'e')")
    lake.run("alter table t rename column c to d", "insert into t values (6, null, 'f')")
    lake.run("alter table t alter column a type bigint", "insert into t values (7, null, 'g')")
    states |= {
        version: lake.run(f"select * from t version as of {version}")
        for version in range(max(states) + 1, newest(lake) + 1)
    }
    assert lake.run(merge) == []
    lake.run("insert into t values (8, null, 'h')")
    assert lake.run(merge)[0][-2:] == (2, 1)
    assert {version: lake.run(f"select * from t version as of {version}") for version in states} == states


def test_a_lake_of_1_0_keeps_such_files_apart(session: Session) -> None:
    session.run("create table t (a int)", "insert into t values (1)", "alter table t add column b int")
    session.run("insert into t values (2, 2)")
    assert session.run("CALL ducklake_merge_adjacent_files('lake', 't')") == []


def test_views_at_a_version(lake: Session) -> None:
    lake.run("create table t as select 1 as id", "create view v as select id from t version as of 1")
    lake.run("insert into t values (2)", "alter table t rename column id to other")
    assert lake.run("select * from v") == [(1,)]
    sql = stored(lake, "SELECT sql FROM ducklake_view")[0][0]
    assert '"t" AT (VERSION => 1)' in sql
    # As DuckDB would have written it, without what is kept for Spark.
    with duckdb.connect(lake.metadata("lake").removeprefix("duckdb:")) as metadata:
        metadata.execute("DELETE FROM ducklake_tag").fetchall()
    assert lake.run("select * from v") == [(1,)]


def test_row_ids_go_on_where_a_count_is_not_known(lake: Session) -> None:
    """Newer clients leave a table's count of rows open."""
    lake.run("create table t as select id from range(5)")
    with duckdb.connect(lake.metadata("lake").removeprefix("duckdb:")) as metadata:
        metadata.execute("UPDATE ducklake_table_stats SET record_count = NULL, file_size_bytes = NULL").fetchall()
    lake.run("insert into t select id from range(5, 8)", "delete from t where id = 6")
    lake.run("CALL ducklake_compact('lake', 't', deleted_share => 0.1)")
    assert stored(lake, "SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats") == [
        (None, 8, None)
    ]
    starts = stored(lake, "SELECT row_id_start FROM ducklake_data_file WHERE row_id_start IS NOT NULL ORDER BY 1")
    assert starts[0] == (0,)
    assert (5,) in starts
    assert lake.run("select * from t") == [(id,) for id in (0, 1, 2, 3, 4, 5, 7)]


def test_models_in_a_schema_within_another(tmp_path: Path) -> None:
    place = Place("duckdb", tmp_path / "lake")
    place.folder.mkdir()
    project = Project(tmp_path / "project", place, ducklake_version="1.1", schema="sales.europe")
    project.write(
        "models/orders.sql", "{{ config(materialized='incremental', unique_key='id') }} select 1 as id, 2 as v"
    )
    project.write(
        "models/seen.sql", "{{ config(persist_docs={'columns': true}) }} select id, v from {{ ref('orders') }}"
    )
    columns = [{"name": "ID", "description": "The 'key'.", "data_tests": ["unique"]}]
    models = {"models": [{"name": "seen", "columns": columns}]}
    project.write("models/models.yml", json.dumps(models))
    assert "PASS=3" in project.run("build")
    assert "PASS=3" in project.run("build")
    project.run("docs", "generate")
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text(encoding="utf-8"))
    seen = catalog["nodes"]["model.p.seen"]
    assert seen["metadata"]["schema"] == "sales.europe"
    assert [column["comment"] for column in seen["columns"].values()] == ["The 'key'.", None]
    with connect(place.describe(ducklake_version="1.1")) as lake:
        snapshot = lake.snapshot()
        assert [schema.parts for schema in snapshot.schemas()] == [("main",), ("sales",), ("sales", "europe")]
        assert snapshot.view("sales.europe", "seen").column_comments == (("id", "The 'key'."),)
        assert snapshot.files(snapshot.table("sales.europe", "orders")).data_files[0].record_count == 1


# What a second reading found.


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_table_of_sparks_own_catalog_is_merged(
    version: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with session_over(tmp_path, spark_settings(tmp_path_factory), ("lake",), version) as made:
        spark = made.session.spark.session()
        spark.sql(f"create table default.merged using parquet location '{tmp_path}/merged' as select 1 as id, 5 as v")
        try:
            made.run("create table t as select 1 as id, 2 as v")
            condition = "when matched then update set v = {0}.v when not matched then insert *"
            made.run(
                f"merge into t using spark_catalog.default.merged on t.id = merged.id {condition.format('merged')}"
            )
            assert made.run("select * from t") == [(1, 5)]
            made.run(f"merge into t using spark_catalog.default.merged s on t.id = s.id + 1 {condition.format('s')}")
            assert made.run("select * from t") == [(1, 5), (1, 5)]
            # A schema of the lake does not go before Spark's own catalogs.
            if version == "1.1":
                made.run("create schema lake.spark_catalog.default")
                made.run("create table lake.spark_catalog.default.merged as select 9 as id, 9 as v")
                assert made.run("select * from spark_catalog.default.merged") == [(1, 5)]
                assert made.run("select * from lake.spark_catalog.default.merged") == [(9, 9)]
        finally:
            spark.sql("drop table default.merged")


def test_views_at_a_version_are_read_by_duckdb(session: Session) -> None:
    session.run("create table t as select 1 as id", "create view v as select x.id from t version as of 1 as x")
    session.run("create view w as select t.id from t version as of 1 join v on v.id = t.id")
    session.run("insert into t values (2)")
    assert session.run("select * from v") == session.judged("SELECT * FROM v") == [(1,)]
    assert session.run("select * from w") == session.judged("SELECT * FROM w") == [(1,)]
    assert session.warnings == []


def test_a_view_over_another_lake_does_not_read_a_schema_of_its_name(lake: Session) -> None:
    lake.run("create schema lake.other.main", "create table lake.other.main.t as select 'nested' as v")
    lake.run("create table other.main.t as select 'other' as v", "create view w as select v from other.main.t")
    assert "t is no table of this lake" in lake.warnings[-1]
    assert lake.run("select * from w") == [("other",)]
    # Who has not that lake gets no other rows.
    lake.session.lakes = {"lake": lake.session.lakes["lake"]}
    with pytest.raises(JobFailed):
        lake.run("select * from w")


def both_kinds(lake: Session) -> None:
    """`x.y` at the top, as an older client made it, and within `x`."""
    with connect(LakeDescription(lake.metadata("lake"))) as opened:
        transaction = opened.transaction()
        transaction._create_schema(("x.y",), None)
        transaction.create_schema('"x"."y"')
        transaction.commit()
    lake.run("create table `x.y`.t as select 'top' as v", "create table x.y.t as select 'within' as v")


def test_a_name_means_the_same_schema_at_all_times(lake: Session) -> None:
    both_kinds(lake)
    then = newest(lake)
    lake.run("create view w as select v from x.y.t", "create view u as select v from `x.y`.t")
    lake.run("drop schema `x.y` cascade")
    assert lake.run(f"select v from x.y.t version as of {then}") == [("within",)]
    assert lake.run("select * from w") == [("within",)]
    with pytest.raises(NameNotFound):
        lake.run("select * from u")
    lake.run("drop schema x.y cascade")
    assert lake.run(f"select v from lake.x.y.t version as of {then}") == [("within",)]


def test_a_dropped_schema_is_not_found_by_the_name_of_another(lake: Session) -> None:
    both_kinds(lake)
    transaction = lake.session.lakes["lake"].transaction()
    top = transaction.table('"x.y"', "t")
    transaction.drop_schema('"x.y"', cascade=True)
    found = transaction.table("x.y", "t")
    assert found.schema.parts == ("x", "y")
    assert found.id != top.id
    transaction.drop_table("x.y", "t")
    transaction.commit()
    assert lake.session.lakes["lake"].snapshot().tables("x.y") == ()


def test_a_table_of_the_sessions_own_nested_schema_is_named_by_it(lake: Session) -> None:
    lake.run("create schema lake.a.b", "create schema lake.q.b")
    lake.run("create table a.b.t as select * from values (1), (2) as v(id)")
    lake.run("create table q.b.t as select * from values (2), (3) as v(id)", "use a.b")
    for outer in ("t", "a.b.t", "`a.b`.t"):
        found = lake.run(f"select id from q.b.t where exists (select 1 from {outer} where b.t.id = 1)")
        assert found == [(2,), (3,)], outer
    assert lake.run("select a.b.t.id from t") == lake.run("select `a.b`.t.id from `a.b`.t") == [(1,), (2,)]
    assert lake.run("select lake.a.b.t.* from lake.a.b.t") == [(1,), (2,)]
    lake.run("delete from t where a.b.t.id = 1")
    assert lake.run("select * from t") == [(2,)]


def test_the_health_of_tables_in_nested_schemas(lake: Session) -> None:
    for schema in ("sales.europe", "hr.europe", "europe"):
        lake.run(f"create schema `{schema}`", f"create table `{schema}`.orders as select 1 as id")
    maintenance = lake.session.lakes["lake"].maintenance
    found = {f"{one.schema}.{one.name}": one.files for one in maintenance.table_health(1000, 0.5)}
    assert found == {"sales.europe.orders": 1, "hr.europe.orders": 1, "europe.orders": 1}
    for schema in ("sales.europe", '"hr"."europe"', "europe"):
        assert [one.files for one in maintenance.table_health(1000, 0.5, schema, "orders")] == [1]
    for _ in range(3):
        lake.run("insert into sales.europe.orders values (2)")
    assert lake.run("CALL ducklake_compact('lake', 'orders', schema => 'sales.europe', small_files => 2)") != []
    assert len(lake.session.lakes["lake"].snapshot().files(
        lake.session.lakes["lake"].snapshot().table("sales.europe", "orders")).data_files) == 1  # fmt: skip


def test_bounds_do_not_outlive_a_change_of_type(lake: Session) -> None:
    """0.1 of a float is no 0.1 of a double, and DuckDB answers from bounds."""
    lake.run("create table t as select cast(0.1 as float) as x, 1 as i", "alter table t alter column x type double")
    lake.run("alter table t alter column i type bigint")
    rows = stored(lake, "SELECT column_id, max_value FROM ducklake_table_column_stats ORDER BY 1")
    assert rows == [(2, "1")]
    assert lake.run("select x > 0.1D from t") == [(True,)]


def test_columns_that_have_no_values(lake: Session) -> None:
    """DuckDB's NULL type."""
    lake.run(
        "create table t as select 1 as id, cast(null as int) as nothing, named_struct('a', cast(null as int)) as s"
    )
    with duckdb.connect(lake.metadata("lake").removeprefix("duckdb:")) as metadata:
        nulls = "UPDATE ducklake_column SET column_type = 'null' WHERE column_name IN ('nothing', 'a')"
        metadata.execute(nulls).fetchall()
    assert lake.run("select id, nothing from t") == [(1, None)]
    with pytest.raises(JobFailed, match=r"Column s of main\.t has type null, which Spark cannot read"):
        lake.run("select s from t")
    with pytest.raises(WriteRefused, match="column nothing holds the type null"):
        lake.run("insert into t values (2, null, null)")


def test_a_used_schema_stays_the_one_it_is(lake: Session) -> None:
    lake.run("create schema `a.b`", "create table a.b.t as select 'within' as v", "use a.b")
    with connect(LakeDescription(lake.metadata("lake"))) as opened:
        transaction = opened.transaction()
        transaction._create_schema(("a.b",), None)
        transaction.commit()
    lake.run("create table `a.b`.t as select 'top' as v", "insert into t values ('mine')")
    assert lake.run("select * from t") == lake.run("select * from lake.a.b.t") == [("mine",), ("within",)]
    assert lake.run("select * from `a.b`.t") == [("top",)]


def test_a_name_with_dots_is_told_by_the_snapshot_that_is_read(lake: Session) -> None:
    both_kinds(lake)
    then = newest(lake)
    assert lake.run(f"select v from `x.y`.t version as of {then}") == [("top",)]
    lake.run("drop schema `x.y` cascade")
    assert lake.run(f"select v from `x.y`.t version as of {then}") == [("top",)]
    assert lake.run("select v from `x.y`.t") == [("within",)]


def test_names_that_are_empty(lake: Session) -> None:
    lake.run("create schema a")
    for name in ("``", "a.``", "lake.``.b", "`a.`", "`.`"):
        try:
            lake.run(f"create schema {name}")
        except (ChangeRefused, NotUnderstood):
            continue
        # A name that is no path is one word, as in a lake of 1.0.
        assert name in ("`a.`", "`.`")
    assert ("",) not in lake.run("show schemas")


def test_a_catalog_of_sparks_is_not_written_as_a_lakes_schema(lake: Session) -> None:
    lake.run("create schema lake.spark_catalog.default", "create table lake.spark_catalog.default.t as select 1 as id")
    for sql in ("insert into spark_catalog.default.t values (2)", "describe spark_catalog.default.t",
                "delete from spark_catalog.default.t where id = 1", "drop table spark_catalog.default.t"):  # fmt: skip
        with pytest.raises(NotAllowed, match="spark_catalog is a catalog of Spark's"):
            lake.run(sql)
    assert lake.run("select * from lake.spark_catalog.default.t") == [(1,)]
