"""Statements that change rows: what they say, what they refuse, and how many snapshots they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import LakeDescription, Transaction, connect
from dbt.adapters.ducklake.lake.errors import ReadOnlyLake
from dbt.adapters.ducklake.spark.errors import JobFailed, MatchedTwice, WriteRefused
from dbt.adapters.ducklake.statements import changing
from dbt.adapters.ducklake.statements.changing import Change
from dbt.adapters.ducklake.statements.errors import NotAllowed, NotUnderstood
from tests.functional.test_statements import lake  # noqa: F401  a fixture
from tests.judge import Judge
from tests.sessions import Session


def snapshot(session: Session) -> int:
    return int(session.run("select id from ducklake_current_snapshot('lake')")[0][0])


def test_a_statement_is_one_snapshot_and_none_where_nothing_changes(lake: Session) -> None:  # noqa: F811
    lake.run("create table t as select id, id % 3 as k from range(9)")
    for sql, rows in (
        ("delete from t where id = 1", 1),
        ("delete from t where id = 1", 0),
        ("update t set k = 7 where id in (2, 3)", 2),
        ("update t set k = 7 where id > 100", 0),
        ("merge into t using (select 4 as id) s on t.id = s.id when matched then update set k = null", 1),
        ("merge into t using (select 4 as id where false) s on t.id = s.id when matched then delete", 0),
        ("insert overwrite t select 1, 2 where false", 0),
    ):
        before = snapshot(lake)
        # What is overwritten by nothing is changed too.
        changes = 1 if rows or sql.startswith("insert") else 0
        assert lake.run(sql) == rows, sql
        assert snapshot(lake) - before == changes, sql


def test_plain_names_in_a_clause_of_one_side_are_that_sides(lake: Session) -> None:  # noqa: F811
    lake.run(
        "create table t as select 1 as id, 10 as v", "create table s as select * from values (1, 5), (2, 6) s(id, v)"
    )
    lake.run(
        "merge into t using s on t.id = s.id when not matched and v > 5 then insert (id, v) values (id, v + "
        "(select max(v) from t)) when not matched by source and v > 100 then delete"
    )
    assert lake.run("select * from t") == [(1, 10), (2, 16)]


def test_words_that_are_columns_and_words_that_are_not_the_end(lake: Session) -> None:  # noqa: F811
    lake.run("create table t as select 1 as start, 5 as end, 0 as hit", "create table s as select 3 as d")
    lake.run(
        "merge into t using s on s.d between start and end "
        "when matched then update set hit = case when d = 3 then 1 end"
    )
    lake.run("update t set hit = end, start = 2 where hit is distinct from end")
    assert lake.run("select * from t") == [(2, 5, 5)]
    lake.run("insert into t replace where hit is distinct from 7 select 8, 8, 8")
    assert lake.run("with c as (select 9 as x) insert into t select x, x, x from c") == 1
    assert lake.run("select start from t") == [(8,), (9,)]


def test_a_source_may_be_the_table_itself_at_another_time(lake: Session) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id, 'old' as v")
    version = snapshot(lake)
    lake.run("update t set v = 'new'")
    lake.run(f"merge into t using t version as of {version} as s on t.id = s.id when matched then update set *")
    assert lake.run("select * from t") == [(1, "old")]
    lake.run(
        "merge into t as d using t timestamp as of (current_timestamp()) s on d.id = s.id when matched then delete"
    )
    assert lake.run("select * from t") == []


def test_two_rows_of_a_source_for_one_of_the_table(lake: Session) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id, 10 as v")
    before = snapshot(lake)
    with pytest.raises(MatchedTwice, match=r"for 1 row \(2 for id = 1\)"):
        lake.run(
            "merge into t using (select 1 as id union all select 1) s on t.id = s.id when matched then update set v = 1"
        )
    assert snapshot(lake) == before
    lake.run("merge into t using (select 1 as id union all select 1) s on t.id = s.id when matched then delete")
    assert lake.run("select * from t") == []


def test_partitions_are_replaced_by_the_tables_own_keys(lake: Session) -> None:  # noqa: F811
    lake.run("create table t partitioned by (p) as select id, cast(id % 2 as decimal(10, 2)) as p from range(4)")
    lake.run("insert overwrite t partition (p) select 9, 1")
    assert [row[0] for row in lake.run("select id from t")] == [0, 2, 9]
    lake.run("insert overwrite t partition (p = 0) select 7")
    assert [row[0] for row in lake.run("select id from t")] == [7, 9]
    with pytest.raises(NotAllowed, match="partitioned by p"):
        lake.run("insert overwrite t partition (id) select 1, 1")
    lake.run("create table plain as select 1 as id")
    with pytest.raises(NotAllowed, match="partitioned by nothing"):
        lake.run("insert overwrite plain partition (id) select 1")


def test_what_an_update_would_lose_is_refused(lake: Session) -> None:  # noqa: F811
    with Judge.of_this_process().attached(f"duckdb:{lake.folder}/lake.ducklake") as judge:
        judge.run("CREATE TABLE lake.main.t AS SELECT 1 AS id, '2026-01-01 00:00:00.123456789'::TIMESTAMP_NS AS moment")
    with pytest.raises(WriteRefused, match="moment holds nanoseconds"):
        lake.run("update t set id = 2")
    assert not list((lake.folder / "lake.ducklake.files").rglob("*-delete.parquet"))
    assert lake.run("delete from t where id = 1") == 1


def test_nested_values_keep_their_ids_for_duckdb(lake: Session) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id, array(named_struct('x', 1)) as l, map('a', array(1, null)) as m")
    lake.run("update t set l = array(named_struct('x', id + 1), null)")
    assert lake.judged("SELECT rowid, * FROM lake.main.t") == [(0, 1, [{"x": 2}, None], {"a": [1, None]})]


def before_the_commit(
    lake: Session, monkeypatch: pytest.MonkeyPatch, other: str, of: type = Change  # noqa: F811
) -> None:  # fmt: skip
    """Let the next statement that changes rows be overtaken by another commit: between its reading and its writing, or
    of a Transaction when its files are written and only its own commit is left."""
    commit = of.commit  # type: ignore[attr-defined]

    def late(self: Any, *arguments: Any) -> Any:
        monkeypatch.setattr(of, "commit", commit)
        lake.run(other)
        return commit(self, *arguments)

    monkeypatch.setattr(of, "commit", late)


def test_a_statement_that_lost_against_another_runs_again(
    lake: Session, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    lake.run("create table t as select id, 0 as v from range(4)")
    before_the_commit(lake, monkeypatch, "update t set v = 1 where id = 1")
    assert lake.run("update t set v = v + 10") == 4
    assert lake.run("select * from t") == [(0, 10), (1, 11), (2, 10), (3, 10)]


def test_a_statement_that_another_only_overtook_keeps_its_work(
    lake: Session, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    lake.run("create table t as select id from range(0, 6, 1, 1)", "create table u as select 1 as id")
    lake.run("delete from t where id = 0")
    before_the_commit(lake, monkeypatch, "insert into u select 2")
    lake.run("call ducklake_set_commit_message('lake', 'me', 'mine')")
    lake.run("delete from t where id = 1")
    # The delete file says in which snapshot each row went, which is another than it was written for.
    (path,) = [row[0] for row in lake.run("select delete_file from ducklake_list_files('lake', 't')")]
    with duckdb.connect() as plain:
        rows = plain.execute(f"SELECT pos, _ducklake_internal_snapshot_id FROM read_parquet('{path}')").fetchall()
    assert rows == [(0, 3), (1, 5)]
    assert lake.judged("SELECT count(*) FROM lake.main.t AT (VERSION => 4)") == [(5,)]
    assert lake.judged("SELECT count(*) FROM lake.main.t") == [(4,)]
    lying = {found.name for found in (lake.folder / "lake.ducklake.files").rglob("*-delete.parquet")}
    scheduled = lake.judged("SELECT path FROM __ducklake_metadata_lake.ducklake_files_scheduled_for_deletion")
    assert lying == {Path(path).name, *(Path(row[0]).name for row in scheduled)}


@pytest.mark.parametrize(
    ("source", "most"),
    [
        ("select id from range(40000, 41000)", 12),
        ("select id * 100 + 7 as id from range(0, 1000, 100)", 12),
        ("select id from range(40000, 41500)", 17),
    ],
)
def test_a_merge_opens_only_the_files_that_may_have_its_keys(
    lake: Session, monkeypatch: pytest.MonkeyPatch, source: str, most: int  # noqa: F811
) -> None:  # fmt: skip
    lake.run("create table t as select id, 0 as v from range(0, 100000, 1, 1000)")
    assert lake.run("select count(*) as n from ducklake_list_files('lake', 't')") == [(1000,)]
    opened = []
    scanned = changing.scan_placed

    def counted(spark: Any, storage: Any, table: Any, files: Any, snapshot_id: Any) -> Any:
        placed = scanned(spark, storage, table, files, snapshot_id)
        # What Spark will open, by its own account.
        opened.append(len(placed.rows.inputFiles()))
        return placed

    monkeypatch.setattr(changing, "scan_placed", counted)
    keys = len(lake.run(source))
    merge = f"merge into t using ({source}) s on t.id = s.id when matched then update set v = v + 1"
    assert lake.run(f"{merge} when not matched then insert (id, v) values (s.id, -1)") == keys
    assert opened
    assert opened[0] <= most
    assert lake.run("select v, count(*) from t group by v order by v") == [(0, 100000 - keys), (1, keys)]


@pytest.mark.parametrize(
    "clause",
    [
        "when not matched then insert (id, v) values (id, v)",
        "when not matched then insert (id, v) values (s.id, t.v)",
        "when not matched and t.v > 5 then insert (id) values (s.id)",
        "when not matched by source then update set v = s.w",
        "when not matched by source and w > 1 then delete",
    ],
)
def test_a_clause_of_one_side_names_no_other(lake: Session, clause: str) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id, 10 as v", "create table s as select 2 as id, 3 as w")
    before = snapshot(lake)
    with pytest.raises(JobFailed, match="UNRESOLVED_COLUMN"):
        lake.run(f"merge into t using s on t.id = s.id {clause}")
    assert snapshot(lake) == before


def test_fields_of_structs_in_a_clause_of_one_side(lake: Session) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id, named_struct('k', 'a') as p", "create table s as select * from t")
    lake.run("insert into s select 2, named_struct('k', 'x') union all select 3, named_struct('k', 'y')")
    lake.run("merge into t using s on t.id = s.id when not matched and p.k = 'x' then insert (id, p) values (id, p)")
    assert lake.run("select id, p.k from t") == [(1, "a"), (2, "x")]


def test_a_merge_tells_tables_of_one_name_apart_by_their_schemas(lake: Session) -> None:  # noqa: F811
    lake.run("create schema o", "create table t as select id, 'old' as v from range(3)")
    lake.run("create table o.t as select id, 'new' as v from range(2, 4, 1, 1)")
    sql = "merge into t using o.t on main.t.id = o.t.id when matched then update set v = o.t.v || main.t.v "
    lake.run(f"{sql} when not matched then insert * when not matched by source and main.t.id = 0 then delete")
    assert lake.run("select * from t") == [(1, "old"), (2, "newold"), (3, "new")]
    for source in ("t", "main.t", "(select 1 as id) as t", "o.t as t"):
        with pytest.raises(NotAllowed, match="both called t"):
            lake.run(f"merge into t using {source} on true when matched then delete")


@pytest.mark.parametrize(
    "sql",
    [
        "delete from t where (id) = 1) or (true",
        "update t set id = 1) or (true where id = 2",
        "merge into t using (select 1 as id) s on t.id = s.id) or (true when matched then delete",
        "insert into t replace where (id = 1) or true) select 1",
        "insert into t select 1) union all (select 2",
    ],
)
def test_a_parenthesis_that_closes_none_is_refused(lake: Session, sql: str) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id")
    with pytest.raises(NotUnderstood, match="closes none"):
        lake.run(sql)
    assert lake.run("select * from t") == [(1,)]


def test_words_behind_a_dot_are_columns(lake: Session) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id, 0 as v", "create table s as select 1 as `when`, 5 as `from`")
    lake.run("merge into t using s on t.id = s.when when matched then update set v = s.from")
    assert lake.run("select * from t") == [(1, 5)]


def test_a_value_of_a_partition_has_its_columns_type(lake: Session) -> None:  # noqa: F811
    lake.run(
        "create table t (id int, m string) partitioned by (m)", "insert into t values (1, '01'), (2, '1'), (3, 'x')"
    )
    lake.run("insert overwrite t partition (m = 1) select 9")
    assert lake.run("select * from t") == [(1, "01"), (3, "x"), (9, "1")]


def test_a_view_for_a_statement_is_read_at_its_snapshot(
    lake: Session, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    lake.run("create table t as select 1 as k, 0 as n")
    lake.run("create or replace temporary view batch as select 1 as k, n + 1 as n from t where k = 1")
    lake.run("update t set n = 10")
    merge = "merge into t using batch on t.k = batch.k when matched then update set n = batch.n"
    lake.run(merge)
    assert lake.run("select n from t") == [(11,)]
    before_the_commit(lake, monkeypatch, "update t set n = 20")
    lake.run(merge)
    assert lake.run("select n from t") == [(21,)]
    assert "snapshot 4" in lake.warnings[-1]


@pytest.mark.parametrize(
    "sql",
    [
        "merge into t using (select 1 as id) s on t.id = s.id when not matched then insert (id) values (s.id)",
        "insert into t replace using (id) select 1",
        "insert into t replace where id = 1 select 1",
        "insert overwrite t select 1",
    ],
)
def test_a_row_that_came_meanwhile_is_not_there_twice(
    lake: Session, monkeypatch: pytest.MonkeyPatch, sql: str  # noqa: F811
) -> None:  # fmt: skip
    lake.run("create table t (id int)")
    before_the_commit(lake, monkeypatch, "insert into t values (1)", Transaction)
    lake.run(sql)
    assert lake.run("select * from t") == [(1,)]


@pytest.mark.parametrize(
    ("sql", "result"),
    [
        ("insert into t replace where id >= 2 and id < 4 select 3", [1, 3, 7]),
        ("insert into t replace using (id) select 2", [1, 2, 3, 7]),
        ("delete from t where id in (2, 3)", [1, 7]),
        ("update t set id = 4 where id between 3 and 3", [1, 2, 4, 7]),
        ("merge into t using (select 3 as id union select 4) s on t.id = s.id "
         "when matched then delete when not matched then insert *", [1, 2, 4, 7]),
    ],
)  # fmt: skip
def test_what_came_elsewhere_in_the_table_makes_no_statement_run_again(
    lake: Session, monkeypatch: pytest.MonkeyPatch, sql: str, result: list[int]  # noqa: F811
) -> None:  # fmt: skip
    lake.run("create table t (id int)", *(f"insert into t values ({id_})" for id_ in (1, 2, 3, 5)))
    before_the_commit(lake, monkeypatch, "insert into t replace where id > 4 select 7", Transaction)
    lake.run(sql)
    assert sorted(id_ for (id_,) in lake.run("select * from t")) == result
    assert not lake.warnings


def test_a_statement_that_reads_its_own_table_sees_all_that_came(
    lake: Session, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    lake.run("create table t as select 1 as id, 1 as n", "create view others as select max(n) + 1 as n from t")
    before_the_commit(lake, monkeypatch, "insert into t values (5, 10)", Transaction)
    lake.run("merge into t using (select 2 as id, n from others) s on t.id = s.id when not matched then insert *")
    assert lake.run("select n from t where id = 2") == [(11,)]
    assert "which runs again" in lake.warnings[-1]


@pytest.mark.parametrize(
    "condition",
    [
        "n = 3", "n >= 38 and n < 1000", "n in (1, 20)", "d = '2026-01-05'", "d < '2026-01-03 23:00:00+00:00'",
        "ts between '2026-01-04 00:00:00+00:00' and '2026-01-05T12:00:00'", "ts >= date '2026-02-08'", "s = 'k7'",
        "tz < timestamp '2026-01-02 05:00:00' and mod(n, 2) = 0", "n = 3 or n = 4",
        "ms = '2026-01-05'", "n <=> 12", "tz = cast('2026-01-06' as timestamp)", "'k39' <= s and t.n > -1",
    ],
)  # fmt: skip
def test_files_that_a_condition_leaves_out_are_not_opened(
    lake: Session, monkeypatch: pytest.MonkeyPatch, condition: str  # noqa: F811
) -> None:  # fmt: skip
    values = (
        "select cast(id as int) as n, date_add(date '2026-01-01', cast(id as int)) as d, "
        "timestamp_ntz '2026-01-01' + make_dt_interval(id) as ts, timestamp '2026-01-01' + make_dt_interval(id) as tz, "
        "concat('k', id) as s, cast(timestamp_ntz '2026-01-01' + make_dt_interval(id) as timestamp_ntz) as ms"
    )
    lake.run(f"create table t as {values} from range(0, 40, 1, 40)", f"create view plain as {values} from range(40)")
    expected = lake.run(f"select n from plain t where not coalesce({condition}, false) order by n")
    opened: list[int] = []
    scan = changing.scan_placed

    def counted(spark: Any, storage: Any, table: Any, files: Any, snapshot: Any) -> Any:
        opened.append(len(files.data_files))
        return scan(spark, storage, table, files, snapshot)

    monkeypatch.setattr(changing, "scan_placed", counted)
    lake.run(f"delete from t where {condition}")
    assert lake.run("select n from t order by n") == expected
    assert 0 < 40 - len(expected) <= opened[0]
    assert opened[0] <= 40 - len(expected) + 2 or " or " in condition


def test_numbers_without_a_sign_take_their_greatest_and_no_more(lake: Session) -> None:  # noqa: F811
    types = {"UTINYINT": 2**8, "USMALLINT": 2**16, "UINTEGER": 2**32, "UBIGINT": 2**64, "UHUGEINT": 10**38}
    with Judge.of_this_process().attached(f"duckdb:{lake.folder}/lake.ducklake") as judge:
        judge.run(f"CREATE TABLE lake.main.t ({', '.join(f'{name[1:2]}{at} {name}' for at, name in enumerate(types))})")
    greatest = ", ".join(f"{most - 1}" if most < 2**64 else f"{most - 1}BD" for most in types.values())
    lake.run(f"insert into t values ({greatest}), (0, 0, 0, 0, 0)")
    expected = [(0,) * 5, tuple(most - 1 for most in types.values())]
    assert lake.run("select * from t") == expected
    assert lake.judged("SELECT * FROM t ORDER BY 1") == expected
    for place, most in enumerate(types.values()):
        values = ["0"] * 5
        for wrong in ("-1", f"{most}BD"):
            if len(wrong) > 40:
                continue
            values[place] = wrong
            with pytest.raises((JobFailed, WriteRefused)):
                lake.run(f"insert into t values ({', '.join(values)})")
    assert lake.run("update t set I2 = 7 where I2 = 0") == 1


def test_a_lake_that_is_only_read_refuses_before_a_file_is_written(lake: Session, tmp_path: Path) -> None:  # noqa: F811
    lake.run("create table t as select 1 as id")
    with connect(LakeDescription(f"duckdb:{lake.folder}/lake.ducklake", read_only=True)) as read_only:
        lake.session.lakes = {"lake": read_only}
        for sql in ("update t set id = 2", "delete from t", "insert into t values (2)", "create table u as select 1 a"):
            with pytest.raises(ReadOnlyLake):
                lake.run(sql)


@pytest.mark.parametrize("sql", ["delete from t where id < 100", "truncate table t", "insert overwrite t select 9"])
def test_rows_that_the_metadata_say_are_gone_go_once(lake: Session, sql: str) -> None:  # noqa: F811
    lake.run("create table t as select cast(id as int) as id from range(0, 6, 1, 1)")
    with Judge.of_this_process().attached(f"duckdb:{lake.folder}/lake.ducklake", data_inlining_row_limit=10) as judge:
        judge.run("DELETE FROM lake.main.t WHERE id = 2")
    lake.run("delete from t where id = 3", sql)
    gone = "SELECT id FROM ducklake_table_deletions('lake', 'main', 't', 4, 4) ORDER BY id"
    assert lake.judged(gone) == [(0,), (1,), (4,), (5,)]
    left = [(9,)] if sql.startswith("insert") else []
    assert lake.run("select * from t") == lake.judged("SELECT * FROM t") == left
