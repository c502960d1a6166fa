from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.ducklake.lake import ColumnType, SortField, decimal
from dbt.adapters.ducklake.statements.errors import NotUnderstood, StatementError
from dbt.adapters.ducklake.statements.kinds.alter_table import AlterTable, ChangeType, RenameTo, SetPartitioning
from dbt.adapters.ducklake.statements.kinds.call import Call
from dbt.adapters.ducklake.statements.kinds.comment import Comment
from dbt.adapters.ducklake.statements.kinds.create_table import CreateTable
from dbt.adapters.ducklake.statements.kinds.describe import Show
from dbt.adapters.ducklake.statements.kinds.drop import Drop
from dbt.adapters.ducklake.statements.kinds.insert import Insert, Partition, Replaced
from dbt.adapters.ducklake.statements.kinds.query import Query
from dbt.adapters.ducklake.statements.kinds.view import CreateView
from dbt.adapters.ducklake.statements.parse import parse
from dbt.adapters.ducklake.statements.reader import statements_in
from dbt.adapters.ducklake.statements.types import Asked


def test_the_query_of_a_table_stays_as_it_was_written() -> None:
    statement: Any = parse("create or replace table `a b`.t  comment 'it\\'s' as\n  select 1 -- one\n;")
    assert isinstance(statement, CreateTable)
    assert (statement.name.parts, statement.replace, statement.comment) == (("a b", "t"), True, "it's")
    assert statement.query == "  select 1"


def test_all_clauses_of_a_table() -> None:
    statement: Any = parse(
        "create table if not exists t (id bigint not null comment 'key', s struct<a:int,b:array<decimal(10,2)>>, "
        "n int default 3, primary key (id)) using ducklake partitioned by (years(at), bucket(8, id), region) "
        "sorted by (at desc nulls first, id) tblproperties ('parquet_compression' = 'zstd')"
    )
    first, second, third = statement.columns
    assert (first.name, first.type.type, first.nullable, first.comment) == ("id", ColumnType("int64"), False, "key")
    assert [child.type.name for child in second.type.children] == ["int32", "list"]
    assert second.type.children[1].children[0].type == decimal(10, 2)
    assert third.default == Asked("3")
    assert statement.partitioned_by == (("at", "year"), ("id", "bucket(8)"), ("region", "identity"))
    assert statement.sorted_by == (SortField('"at"', True, True), SortField('"id"', False, False))
    assert statement.options == {"parquet_compression": "zstd"}


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("with a as (select 1) select * from a", Query),
        ("(select 1) union (select 2)", Query),
        ("insert into t (a, b) select 1, 2", Insert),
        ("insert into t by name select 1 as a", Insert),
        ("create temporary view v as select 1", CreateView),
        ("create or replace view main.v (a comment 'x') comment 'y' as select 1", CreateView),
        ("drop table if exists lake.main.t", Drop),
        ("drop schema s cascade;", Drop),
        ("alter table t rename to u", AlterTable),
        ("alter view v rename to w", AlterTable),
        ("comment on column main.t.a is 'x'", Comment),
        ("show tables in main like 'o*'", Show),
        ("call ducklake_set_option('lake', 'target_file_size', '64MB', table_name => 't')", Call),
    ],
)
def test_each_kind_is_known(sql: str, kind: type) -> None:
    assert isinstance(parse(sql), kind)


def test_what_an_alter_changes() -> None:
    renamed: Any = parse("alter table a.t rename to u")
    assert isinstance(renamed.change, RenameTo)
    widened: Any = parse("alter table t alter column s.a type decimal(20,2)")
    assert isinstance(widened.change, ChangeType)
    assert (widened.change.column, widened.change.type.type) == (("s", "a"), decimal(20, 2))
    split: Any = parse("alter table t set partitioned by (month(at))")
    assert split.change == SetPartitioning((("at", "month"),))


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("vacuum t", "Line 1, column 1: `vacuum` is not supported"),
        ("update t set a = 1 from u", "UPDATE takes no FROM here. Use MERGE INTO."),
        ("delete from t using u", "DELETE takes no USING here. Use MERGE INTO"),
        ("merge into t using u on t.a = u.a", "At least one WHEN clause should stand here."),
        ("merge into t using u on t.a = u.a when not matched by source then update set *", "name the columns"),
        ("merge with schema evolution into t using u on true when matched then delete", "ALTER TABLE first"),
        ("create table t\n  using delta as select 1", "A table of a lake is USING ducklake"),
        ("create table t (a foo)", "The type `foo` is not supported"),
        (
            "create table t partitioned by (truncate(3, a)) as select 1",
            "There are year, month, day, hour, epoch_year, ",
        ),
        ("create table t", "The end of the statement is not supported"),
        ("insert into t set a = 1", "Here VALUES or a query should stand."),
        ("insert into t replace using (a) where select 1", "After WHERE a condition should stand."),
        ("alter table t frobnicate", "ALTER TABLE takes ADD COLUMNS"),
        ("drop index i", "DROP takes TABLE, VIEW or SCHEMA."),
        ("call ducklake_merge('lake')", "There are: ducklake_add_data_files, ducklake_cleanup_old_files, "),
        ("", "Here a statement should stand."),
    ],
)
def test_what_is_not_understood_is_said_by_name_and_place(sql: str, said: str) -> None:
    with pytest.raises(NotUnderstood) as error:
        parse(sql)
    assert said in str(error.value)


def test_wrong_arguments_are_said() -> None:
    from dbt.adapters.ducklake.statements.arguments import read_arguments

    with pytest.raises(StatementError, match="it was given an argument colour"):
        read_arguments("f", "'lake', colour := 1", None).taken("catalog", required=1)


def test_a_text_of_several_statements() -> None:
    assert statements_in("drop table a; insert into b values (';') ;; ") == [
        "drop table a",
        "insert into b values (';')",
    ]
    assert statements_in("select 1;") == ["select 1;"]


def test_the_clauses_of_a_merge() -> None:
    statement: Any = parse(
        "merge into lake.main.t as d using (select 1 as a) s on d.a = s.a and case when s.b then 1 end = 1 "
        "when matched and case when s.c then true end then delete when matched then update set d.a = s.a, b = default "
        "when not matched by target then insert (a, b) values (f(s.a, 2), 'x') when not matched by source then delete"
    )
    assert (statement.target.name.parts, statement.target.alias) == (("lake", "main", "t"), "d")
    assert (statement.source.text, statement.source.alias) == ("(select 1 as a) s", "s")
    assert statement.condition == "d.a = s.a and case when s.b then 1 end = 1"
    assert [(when.rows, when.kind, when.condition) for when in statement.whens] == [
        ("MATCHED", "delete", "case when s.c then true end"),
        ("MATCHED", "update", None),
        ("NOT MATCHED", "insert", None),
        ("NOT MATCHED BY SOURCE", "delete", None),
    ]
    assert [(str(one.path), one.value) for one in statement.whens[1].assignments] == [("d.a", "s.a"), ("b", None)]
    assert [(str(one.path), one.value) for one in statement.whens[2].assignments] == [("a", "f(s.a, 2)"), ("b", "'x'")]


@pytest.mark.parametrize(
    ("sql", "replaced"),
    [
        ("insert overwrite t select 1", Replaced()),
        ("insert overwrite table t partition (a = 1, month(b)) select 1",
         Replaced((Partition("a", "1"), Partition("b", transform="month")))),
        ("insert into t (a) replace using (a, b) select 1", Replaced(using=("a", "b"))),
        ("insert into t replace using (a) where b > 1 select 1", Replaced(using=("a",), condition="b > 1")),
        ("insert into t replace where b > 1 with q as (select 1) select * from q", Replaced(condition="b > 1")),
    ],
)  # fmt: skip
def test_what_an_insert_takes_the_place_of(sql: str, replaced: Replaced) -> None:
    statement: Any = parse(sql)
    assert statement.replaced == replaced


def test_ctes_before_an_insert_belong_to_its_query() -> None:
    statement: Any = parse("with a as (select 1 as x), b as (select 2) insert into t select * from a")
    assert isinstance(statement, Insert)
    assert statement.query == "with a as (select 1 as x), b as (select 2)\nselect * from a"
