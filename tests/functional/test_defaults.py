"""Defaults: the same value whether Spark or DuckDB inserts the row, or a refusal."""

from __future__ import annotations

import re

import pytest

from dbt.adapters.ducklake.spark.errors import WriteRefused
from dbt.adapters.ducklake.statements.errors import NotAllowed, StatementError
from tests.sessions import Session

VALUES = {
    "int default dayofweek(date'2024-01-07')": 1,
    "string default substring('abcdef', 0, 2)": "ab",
    "string default 'it\\'s'": "it's",
    "string default concat('a', 1 + 1)": "a2",
    "int default -7": -7,
    "tinyint default 100 + 27": 127,
    "decimal(10,2) default 1.5": 1.5,
    "double default 1e3": 1000.0,
    "double default 'NaN'": "nan",
    "boolean default 1 = 1": True,
    "date default '2024-02-29'": "2024-02-29",
    "date default date_add(date'2024-02-28', 2)": "2024-03-01",
    "timestamp default '2026-07-01 12:00:00'": "2026-07-01 10:00:00+00",
    "timestamp default timestamp'1890-01-01 00:00:00'": "1889-12-31 23:06:32+00",
    "timestamp_ntz default '2026-03-29 02:30:00'": "2026-03-29 02:30:00",
    "timestamp_ntz default timestamp_ntz'0001-01-01 00:00:00'": "0001-01-01 00:00:00",
    "binary default X'00ff27'": "\\x00\\xFF\\x27",
    "string default upper('straße')": "STRASSE",
    "bigint default 9223372036854775807": 2**63 - 1,
    "int default null": None,
    "string default cast(null as string)": None,
}


def test_both_engines_insert_the_same(session: Session) -> None:
    session.run("set time zone 'Europe/Stockholm'")
    columns = ", ".join(f"c{number} {text}" for number, text in enumerate(VALUES))
    session.run(f"create table t (id int, {columns})", "insert into t (id) values (1)")
    session.run("create table u (id int)", "insert into u values (0)")
    for number, text in enumerate(VALUES):
        kind, value = text.split(" default ", 1)
        session.run(f"alter table u add column c{number} {kind}")
        session.run(f"alter table u alter column c{number} set default {value}")
    session.run("insert into u (id) values (1)")
    shown = ", ".join(
        f"c{number}::DOUBLE::VARCHAR" if isinstance(value, float) else f"c{number}::VARCHAR"
        for number, value in enumerate(VALUES.values())
    )
    with session.judge() as judge:
        judge.run("INSERT INTO t (id) VALUES (2)", "INSERT INTO u (id) VALUES (2)")
        wanted = tuple(None if value is None else str(value).replace("True", "true") for value in VALUES.values())
        for table in "tu":
            assert judge.rows(f"SELECT DISTINCT {shown} FROM {table} WHERE id > 0") == [wanted]


def test_what_each_row_gets_anew(session: Session) -> None:
    session.run(
        "create table t (id int, moment timestamp default current_timestamp(), d date default current_date, "
        "k string default uuid(), r double default rand())",
        "insert into t (id) values (1), (2)",
    )
    with session.judge() as judge:
        judge.run("INSERT INTO t (id) VALUES (3), (4)")
        asked = "count(DISTINCT k), count(DISTINCT r), bool_and(age(moment) < INTERVAL 1 HOUR), count(d)"
        assert judge.rows(f"SELECT {asked} FROM t") == [(4, 4, True, 4)]
    session.run("insert into t (id) values (5)")
    assert session.run("select count(*), count(distinct k) from t") == [(5, 5)]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("n int default 'x'", "column n"),
        ("n int default 1.5", "column n"),
        ("n tinyint default 200", "column n"),
        ("n int default nothing", "nothing"),
        ("n int default (select 1)", "it is a query"),
        ("n int default now()", "timestamptz"),
        ("at timestamp default now() + interval 1 day", "now has another value each time"),
        ("n double default rand() * 10", "rand has another value each time"),
        ("l array<int> default array(1)", "none but NULL"),
        ("n int default", "value"),
    ],
)
def test_what_is_no_default_is_refused(session: Session, column: str, said: str) -> None:
    with pytest.raises((StatementError, WriteRefused), match=re.escape(said)):
        session.run(f"create table t ({column})")
    assert session.run("show tables") == []


def test_defaults_of_duckdb(session: Session) -> None:
    session.judged("CREATE TABLE t (id INT, a INT DEFAULT (1 + 2), b TIMESTAMPTZ DEFAULT now(), c VARCHAR DEFAULT 'x')")
    session.judged("CREATE TABLE u (id INT, s VARCHAR DEFAULT upper('ß'))")
    session.run("insert into t (id) values (1)")
    assert session.run("select a, b is not null, c from t") == [(3, True, "x")]
    with pytest.raises(NotAllowed, match="default of column s"):
        session.run("insert into u (id) values (1)")
    session.run("insert into u values (1, 'given')")
