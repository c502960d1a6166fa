"""Statements on a lake, and what DuckDB finds of them afterwards."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.lake.errors import InvalidOption
from dbt.adapters.ducklake.spark.errors import FilesNotFound, JobFailed, NullsRefused, WriteRefused
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.statements.errors import NameNotFound, NotAllowed, NotUnderstood
from dbt.adapters.ducklake.statements.reader import Name
from dbt.adapters.ducklake.statements.staged import ColumnChanges, stage
from tests.sessions import Session


@pytest.fixture
def lake(session: Session) -> Session:
    return session


def test_all_that_a_column_may_say(lake: Session) -> None:
    lake.run("create table t (id int not null default 7, x int default null, s string default 'it\\'s', d date)")
    lake.run("insert into t (d) values (date'2026-01-01')")
    expected = [(7, None, "it's", "2026-01-01")]
    assert [(*row[:3], str(row[3])) for row in lake.run("select * from t")] == expected
    assert lake.judged("SELECT id, x, s, d::VARCHAR FROM t") == expected
    lake.run("insert into t values (1, 2, 'a', null)")
    with pytest.raises(NullsRefused, match="of 2 rows id is NULL in 1"):
        lake.run("insert into t values (null, 2, 'a', null), (1, 2, 'a', null)")
    assert lake.judged("SELECT count(*) FROM t") == [(2,)]


def test_two_tenants_of_one_file_in_one_statement(lake: Session, tmp_path: Path) -> None:
    given: dict[str, Any] = {"create_if_not_exists": True, "busy_timeout": 2.0}
    place = f"duckdb:{tmp_path}/tenants.ducklake"
    lakes = {name: connect(LakeDescription(place, catalog=name, **given)) for name in ("company", "acme")}
    lake.session.lakes = lakes
    lake.session.lake_name, lake.session.schema = "company", "main"
    lake.run("create table rates as select 'EUR' as c, 2 as r")
    lake.session.lake_name = "acme"
    lake.run("create table o as select o.c, r from (select 'EUR' as c) o join company.main.rates x on x.c = o.c")
    lake.run("create view v as select r from company.main.rates")
    assert lake.run("select o.c, o.r, v.r from o cross join v") == [("EUR", 2, 2)]
    lake.run("merge into o using company.main.rates s on o.c = s.c when matched then update set r = s.r + 1")
    assert lake.run("select max(r) from o where exists (select 1 from company.main.rates)") == [(3,)]
    lake.session.temporary.clear()
    for opened in lakes.values():
        opened.close()


def test_a_view_is_read_as_its_tables_were(lake: Session) -> None:
    lake.run("create table t as select 1 as a", "create view v as select a * 10 as b from t")
    then = lake.run("select id from ducklake_current_snapshot('lake')")[0][0]
    lake.run("insert into t values (2)")
    assert lake.run(f"select * from v version as of {then}") == [(10,)]
    assert lake.run("select * from v") == [(10,), (20,)]
    assert lake.judged("SELECT * FROM v ORDER BY 1") == [(10,), (20,)]


def test_a_column_with_a_dot_is_merged_and_replaced(lake: Session) -> None:
    lake.run("create table t (id int, `a.b` int)", "insert into t values (1, 10), (2, 20)")
    lake.run(
        "merge into t using (select 1 as id, 11 as `a.b` union all select 3, 30) s on t.id = s.id "
        "when matched then update set `a.b` = s.`a.b` when not matched then insert *",
        "insert into t (id, `a.b`) replace using (`a.b`) select 4, 20",
        "insert into t (id, `a.b`) replace where id = 3 select 3, 31",
    )
    assert lake.run("select * from t") == [(1, 11), (3, 31), (4, 20)]
    lake.run("create table p (id int, `a.b` int) partitioned by (id)", "insert into p select * from t")
    lake.run("insert overwrite p partition (id) select 1, 12")
    assert lake.judged('SELECT id, "a.b" FROM p ORDER BY id') == [(1, 12), (3, 31), (4, 20)]


def test_a_source_may_have_columns_of_one_name(lake: Session) -> None:
    lake.run("create table t as select 1 as id, 1 as v", "create table x as select 1 as id, 5 as v")
    lake.run(
        "merge into t using (select x1.id as k, x1.*, x2.id from x x1 join x x2 on true) s on t.id = s.k "
        "when matched then update set v = s.v when not matched then insert (id, v) values (s.k, s.v)"
    )
    assert lake.run("select * from t") == [(1, 5)]


def test_temporary_views_that_read_each_other_are_refused(lake: Session) -> None:
    lake.run("create table t as select 1 as a", "create temporary view x as select * from t")
    lake.run("create temporary view y as select * from x", "create or replace temporary view x as select * from y")
    with pytest.raises(NotAllowed, match="reads itself"):
        lake.run("select * from x")


def test_files_that_are_missing_are_an_error_whatever_the_settings(lake: Session) -> None:
    lake.run("create table t as select id from range(0, 9, 1, 1)", "delete from t where id < 3")
    [deletes] = lake.folder.rglob("*-delete.parquet")
    deletes.unlink()
    lake.run("set spark.sql.files.ignoreMissingFiles = true", "set spark.sql.files.ignoreCorruptFiles = true")
    with pytest.raises(JobFailed):
        lake.run("select * from t")


def test_what_was_staged_and_set_does_not_reach_the_next(lake: Session) -> None:
    lake.run("create table t as select 1 as id, 'keep' as x")
    name = lake.session.whole(Name(("t",), None))
    stage(lake.session, name, ColumnChanges(removed=(("x",),)))
    assert lake.run("select * from t") == [(1,)]
    lake.run("set spark.sql.sources.partitionOverwriteMode = dynamic", "set spark.sql.ansi.enabled = false")
    lake.session.renew()
    assert lake.run("select * from t") == [(1, "keep")]
    with pytest.raises(JobFailed, match="CAST_INVALID_INPUT"):
        lake.run("create table u as select cast('x' as int) as n")
    assert ("spark.sql.shuffle.partitions", "2") in lake.run("set spark.sql.shuffle.partitions")


def test_an_older_snapshot_is_read_after_its_files_were_replaced(lake: Session) -> None:
    lake.run("create table t as select id from range(0, 20, 1, 1)", "delete from t where id < 3")
    then = lake.run("select id from ducklake_current_snapshot('lake')")[0][0]
    older = f"select count(*) from t version as of {then}"
    assert lake.run("select count(*) from t", older) == lake.run(older) == [(17,)]
    # One delete file for both deletes takes the place of the first one's, for the older snapshot too.
    lake.run("delete from t where id > 16", "call ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert lake.run(older) == [(17,)]
    lake.run("insert into t values (30)", "call ducklake_rewrite_data_files('lake', delete_threshold => 0)")
    lake.run("call ducklake_merge_adjacent_files('lake')")
    lake.run("call ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert lake.run(older) == [(17,)]
    assert lake.run("select count(*) from t") == [(15,)]


def test_a_view_that_duckdb_would_answer_otherwise_is_for_spark_alone(lake: Session) -> None:
    lake.run(
        "create table t as select date'2026-11-15' as d", "create view v as select date_format(d, 'E') as n from t"
    )
    assert lake.run("select * from v") == [("Sun",)]
    with pytest.raises(duckdb.InvalidInputException, match="Read it with Spark"):
        lake.judged("SELECT * FROM v")
    assert "View lake.main.v is for Spark only" in lake.warnings[0]


def test_a_view_of_duckdb_is_read_or_refused(lake: Session) -> None:
    lake.run("create table t as select 1.7 as a")
    lake.judged("CREATE VIEW v AS SELECT a + 1 AS b FROM main.t")
    lake.judged("CREATE VIEW w AS SELECT a::INT AS b FROM main.t")
    assert [float(row[0]) for row in lake.run("select * from v")] == [2.7]
    with pytest.raises(NotAllowed, match="its DuckDB SQL may be another thing"):
        lake.run("select * from w")


def test_a_view_in_another_lake_names_its_tables_whole(lake: Session) -> None:
    lake.run("create table t as select 1 as a", "create view other.main.v as select * from t")
    assert lake.run("select * from other.main.v") == [(1,)]
    lake.run("insert into t values (2)")
    assert lake.run("select * from other.main.v") == [(1,), (2,)]


def test_names_with_dots_are_told_apart(lake: Session) -> None:
    lake.run("create schema `a`", "create schema `a.b`")
    lake.run("create table a.`b.c` as select 1 as x", "create table `a.b`.c as select 2 as x")
    assert lake.run("select * from a.`b.c` union all select * from `a.b`.c") == [(1,), (2,)]


def test_fields_of_structs_keep_their_names(lake: Session) -> None:
    lake.run("create table t (s struct<x:int,y:int>)", "insert into t select named_struct('x', 1, 'y', 2)")
    with pytest.raises(WriteRefused, match="column s is struct"):
        lake.run("insert into t select named_struct('x', 1, 'z', 2)")
    lake.run("insert into t select named_struct('y', 4, 'x', 3)", "insert into t select named_struct('Y', 5)")
    assert lake.judged("SELECT s.x, s.y FROM t ORDER BY ALL") == [(1, 2), (3, 4), (None, 5)]


def test_a_nested_column_may_be_not_null(lake: Session) -> None:
    lake.run("create table t (l array<int> not null)", "insert into t values (array(1))")
    with pytest.raises(JobFailed, match=r"Column l of main\.t is NULL in a row"):
        lake.run("insert into t values (null)")
    assert lake.judged("SELECT count(*) FROM t") == [(1,)]


def test_a_value_that_does_not_fit_fails_the_write(lake: Session) -> None:
    lake.run("create table t (a tinyint, b decimal(4, 2))")
    with pytest.raises(JobFailed, match=r"Column a of main\.t has type int8, and the value 300 does not fit it"):
        lake.run("insert into t values (300, 1)")
    with pytest.raises(JobFailed, match=r"Column b of main\.t"):
        lake.run("insert into t values (1, 1000)")
    assert not list(Path(f"{lake.folder}/lake.ducklake.files").rglob("*.parquet"))


def test_several_feeds_in_one_query(lake: Session) -> None:
    lake.run("create table a as select 1 as x", "create table b as select 2 as x")
    found = lake.run(
        "select p.x, q.x, q.change_type from ducklake_table_changes('lake', 'main', 'a', 1, 2) p "
        "cross join ducklake_table_changes('lake', 'main', 'b', 1, 2) q"
    )
    assert found == [(1, 2, "insert")]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("with c as (select 1 as a) update t set a = 1", NotUnderstood),
        ("from t insert into t select *", NotUnderstood),
        ("set spark.sql.parquet.fieldId.read.enabled = false", NotAllowed),
        ("create table u (a int) tblproperties ('foo' = '1')", InvalidOption),
        ("create table u (a int generated always as identity)", NotUnderstood),
        ("alter view t rename to u", NotAllowed),
        ("select * from nowhere", NameNotFound),
        ("drop view t", NotAllowed),
        ("insert into t by name select 1 as nope", NotAllowed),
        ("insert into t select 1, 2, 3", NotAllowed),
    ],
)
def test_what_is_refused_leaves_the_lake_as_it_was(lake: Session, sql: str, error: type[Exception]) -> None:
    lake.run("create table t as select 1 as a")
    before = lake.run("select id from ducklake_current_snapshot('lake')")
    with pytest.raises(error):
        lake.run(sql)
    assert lake.run("select id from ducklake_current_snapshot('lake')") == before


def test_what_a_node_sets_for_itself_does_not_reach_the_next(lake: Session) -> None:
    lake.run("create schema s", "use s", "create temporary view t as select 1 as a")
    lake.run("set spark.sql.session.timeZone = Asia/Tokyo", "call ducklake_set_commit_message('lake', 'me', 'mine')")
    lake.session.renew()
    assert (lake.session.schema, lake.session.said, lake.session.temporary) == ("main", None, {})
    assert lake.run("select current_timezone()") == [("UTC",)]
    lake.run("reset")
    assert lake.run("select current_timezone()") == [("UTC",)]


def test_a_message_is_for_the_next_commit(lake: Session) -> None:
    lake.run("call ducklake_set_commit_message('lake', 'me', 'mine')", "drop table if exists nope")
    lake.run("create table t as select 1 as a", "insert into t values (2)")
    said = lake.judged("SELECT author, commit_message FROM lake.snapshots() ORDER BY snapshot_id DESC LIMIT 2")
    assert said == [(None, None), ("me", "mine")]


def test_explain_is_of_the_lakes_tables(lake: Session) -> None:
    lake.run("create table t as select 1 as a")
    assert "FileScan parquet" in lake.run("explain select * from t")[0][0]


def test_files_that_cannot_be_seen_are_no_empty_table(lake: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.run("create table t as select 1 as a")
    monkeypatch.setattr(Storage, "files_below", lambda self, folder: [])
    with pytest.raises(FilesNotFound, match="must see the same storage"):
        lake.run("create or replace table t as select 2 as a")
    assert lake.judged("SELECT * FROM t") == [(1,)]


def test_not_null_is_looked_for(lake: Session) -> None:
    lake.run("create table t as select 1 as a", "alter table t alter column a set not null")
    with pytest.raises(NullsRefused):
        lake.run("insert into t values (null)")
    assert lake.run("describe t") == [("a", "int", None)]


@pytest.mark.skipif("DBT_DUCKLAKE_TEST_REMOTE" not in os.environ, reason="of sessions at a Connect server")
def test_a_session_that_was_left_is_not_collected(lake: Session) -> None:
    held = weakref.ref(lake.session.spark.session())
    lake.session.spark.close()
    gc.collect()
    assert held() is not None


TABLES_OF_ONE_NAME = (
    "CREATE SCHEMA apart",
    "CREATE TABLE t AS FROM range(3) r(i)",
    "CREATE TABLE apart.t AS SELECT 2 AS i",
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT lake.t.i FROM lake.t",
        "SELECT t.i FROM lake.t",
        "SELECT i FROM lake.t ORDER BY ALL DESC LIMIT 1",
        "SELECT COLUMNS(*) FROM lake.t WHERE lake.t.i > 1",
        "SELECT x.i, count(*) FROM lake.t AS x JOIN lake.apart.t AS y ON x.i = y.i GROUP BY ALL",
        "WITH t AS (SELECT 7 AS i) SELECT i FROM t",
    ],
)
def test_duckdb_may_name_tables_by_their_lake_alone(lake: Session, sql: str) -> None:
    with lake.judge() as judge:
        judge.run(*TABLES_OF_ONE_NAME, f"CREATE VIEW v AS {sql}")
        theirs = judge.rows("SELECT * FROM v")
    assert lake.run("select * from v") == sorted(theirs)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT lake.main.t.i FROM lake.main.t",
        "SELECT i FROM lake.t WHERE EXISTS (SELECT 1 FROM lake.apart.t WHERE lake.apart.t.i = lake.main.t.i)",
    ],
)
def test_columns_with_a_schema_are_refused(lake: Session, sql: str) -> None:
    lake.judged(f"{'; '.join(TABLES_OF_ONE_NAME)}; CREATE VIEW v AS {sql}")
    with pytest.raises(NotAllowed, match="is not known here"):
        lake.run("select * from v")


def test_a_text_with_the_lakes_place_is_refused(lake: Session) -> None:
    lake.judged("CREATE VIEW v AS SELECT '{DUCKLAKE_CATALOG}' AS x")
    with pytest.raises(NotAllowed, match="a text with"):
        lake.run("select * from v")


def test_what_is_only_for_spark_or_loses_something_is_said(lake: Session) -> None:
    with lake.judge() as judge:
        judge.run(
            "CREATE TABLE lake.main.t (moment TIMESTAMP_NS)",
            "INSERT INTO lake.main.t VALUES ('2026-01-01 00:00:00.123456789')",
        )
    for _ in range(2):
        assert lake.run("select cast(moment as string) from t") == [("2026-01-01 00:00:00.123456",)]
    lake.run("create table u as select 1 as id")
    path = next((lake.folder / "lake.ducklake.files").rglob("u/*.parquet"))
    lake.run(f"create view v as select * from parquet.`{path}`")
    lake.run(f"create view w as select * from read_files('{path}')")
    assert lake.run("select v.id, w.id from v join w on true") == [(1, 1)]
    assert [text.split(":")[0] for text in lake.warnings] == [
        "moment of main.t", "View lake.main.v is for Spark only", "View lake.main.w is for Spark only",
    ]  # fmt: skip
    with pytest.raises(duckdb.Error, match="Read it with Spark"):
        lake.judged("SELECT * FROM lake.main.v")
    with pytest.raises(NotAllowed, match="no location"):
        lake.run("select * from read_files(format => 'csv')")


def test_fields_of_structs_go_by_name_and_types_follow(lake: Session) -> None:
    lake.run(
        "create table t as select 1 as id, named_struct('a', 1, 'b', 'x') as s, array(named_struct('c', 1)) as l, "
        "map('k', named_struct('d', 1)) as m"
    )
    lake.run(
        "alter table t alter column s type struct<a: bigint, b: string, e: struct<f: int>>",
        "alter table t alter column l type array<struct<c: int, g: string>>",
        "alter table t alter column m type map<string, struct<d: int, h: int>>",
        "insert into t select 2, named_struct('b', 'y', 'a', 5000000000), array(named_struct('g', 'z', 'c', 2), null), "
        "map('k', named_struct('h', 3))",
        "alter table t alter column s type struct<a: bigint, e: struct<f: int>>",
    )
    expected = [
        (1, {"a": 1, "e": None}, [{"c": 1, "g": None}], {"k": {"d": 1, "h": None}}),
        (2, {"a": 5_000_000_000, "e": None}, [{"c": 2, "g": "z"}, None], {"k": {"d": None, "h": 3}}),
    ]
    assert lake.judged("SELECT * FROM lake.main.t ORDER BY id") == expected
    shown = "id, to_json(s, map('ignoreNullFields', 'false')) as s, l[0].g as g, m['k'].h as h"
    assert lake.run(f"select {shown} from t") == [
        (1, '{"a":1,"e":null}', None, None),
        (2, '{"a":5000000000,"e":null}', "z", 3),
    ]
    with pytest.raises(WriteRefused, match="column s is"):
        lake.run("insert into t (id, s) select 3, named_struct('a', 1, 'typo', 2)")


def test_a_table_at_another_time_in_from(lake: Session) -> None:
    lake.run("create table t as select 1 as id", "insert into t values (2)")
    assert lake.run("insert into t by name replace where true select * from t version as of 1") == 1
    assert lake.run("select * from t") == [(1,)]
    assert lake.judged("SELECT count(*) FROM lake.main.t AT (VERSION => 2)") == [(2,)]
