"""Values at the edges of their types: stored as they are and read by DuckDB, or refused with their column."""

from __future__ import annotations

import random

import duckdb
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import Column, ColumnType
from dbt.adapters.ducklake.spark.errors import JobFailed, NullsRefused, SparkRoomError, WriteRefused
from dbt.adapters.ducklake.spark.literals import literal_of_text
from dbt.adapters.ducklake.spark.query import fetched, shown
from dbt.adapters.ducklake.spark.texts import is_json
from tests.sessions import Session

ANSI = "SET spark.sql.ansi.enabled = {}"


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ("array<int>", "array(5000000000)", "c.element"),
        ("array<int>", "array(1.5)", "c.element"),
        ("map<string,tinyint>", "map('a', 300)", "c.value"),
        ("map<tinyint,string>", "map(300, 'a')", "c.key"),
        ("struct<a:int>", "named_struct('a', 'x')", "c.a"),
        ("struct<d:date>", "named_struct('d', 'nodate')", "c.d"),
        ("array<struct<a:map<string,array<smallint>>>>", "array(named_struct('a', map('k', array(70000))))",
         "c.element.a.value.element"),
        ("array<decimal(4,2)>", "array(1234.5)", "c.element"),
        ("tinyint", "300", "c"),
        ("int", "1.5", "c"),
    ],
)  # fmt: skip
def test_a_nested_value_that_does_not_fit_is_refused(
    session: Session, ansi: bool, kind: str, value: str, path: str
) -> None:
    session.run(ANSI.format(ansi), f"CREATE TABLE t (c {kind})")
    with pytest.raises(JobFailed, match=f"Column {path} of main.t has type .* does not fit it"):
        session.run(f"INSERT INTO t SELECT {value}")
    assert session.judged("SELECT count(*) FROM t") == [(0,)]
    assert not session.files()


def test_nested_values_are_cast_as_plain_ones(session: Session) -> None:
    session.run(
        "CREATE TABLE t (l array<int>, m map<bigint,string>, s struct<a:int,b:array<struct<x:bigint,y:string>>>)",
        "INSERT INTO t SELECT array('1', NULL), map('7', 8), named_struct('b', array(named_struct('y', 5, 'x', '6')))",
        "INSERT INTO t SELECT array(), NULL, named_struct('A', '3', 'b', NULL)",
    )
    found = session.judged("SELECT * FROM t ORDER BY l")
    assert found == [
        ([], None, {"a": 3, "b": None}),
        ([1, None], {7: "8"}, {"a": None, "b": [{"x": 6, "y": "5"}]}),
    ]


def test_keys_of_a_map_do_not_become_one(session: Session) -> None:
    session.run("SET spark.sql.mapKeyDedupPolicy = LAST_WIN", "CREATE TABLE t (m map<int,string>)")
    with pytest.raises(JobFailed, match="keys of m become one in its type"):
        session.run("INSERT INTO t SELECT map('1', 'a', '01', 'b')")


TEXTS = ("{0}", "array({0})", "map('k', {0})", "map({0}, 'v')", "named_struct('a', {0})",
         "array(named_struct('a', map('k', array({0}))))")  # fmt: skip


@pytest.mark.parametrize("shape", TEXTS)
def test_text_that_is_not_utf8_is_refused(session: Session, shape: str) -> None:
    value = shape.format("cast(X'61FF' AS string)")
    with pytest.raises(JobFailed, match=r"Column c of main\.t holds text that is not UTF-8"):
        session.run(f"CREATE TABLE t AS SELECT {value} AS c FROM range(3)")
    valid = shape.format("'é'")
    session.run(f"CREATE TABLE t AS SELECT {valid} AS c")
    with pytest.raises(JobFailed, match="not UTF-8"):
        session.run(f"INSERT INTO t SELECT {value}")
    with pytest.raises(JobFailed, match="not UTF-8"):
        session.run(f"UPDATE t SET c = {value}")
    with pytest.raises(JobFailed, match="not UTF-8"):
        session.run(f"INSERT OVERWRITE t SELECT {value}")
    assert session.judged("SELECT count(c) FROM t") == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT cast(b AS string) AS c FROM bytes",
        "SELECT concat('a', cast(b AS string)) AS c FROM v",
        "SELECT c FROM w",
        "SELECT own(1) AS c",
        "SELECT value AS c FROM read_files('{folder}/latin.txt', format => 'text')",
    ],
)
def test_bytes_are_found_wherever_they_come_from(session: Session, query: str) -> None:
    (session.folder / "latin.txt").write_bytes("größe".encode("latin-1"))
    session.run(
        "CREATE TABLE bytes AS SELECT X'61FF' AS b", "CREATE VIEW v AS SELECT b FROM bytes",
        "CREATE TEMPORARY VIEW w AS SELECT cast(b AS string) AS c FROM bytes",
        "CREATE TEMPORARY FUNCTION own(n int) RETURNS string RETURN cast(X'FF' AS string)",
    )  # fmt: skip
    with pytest.raises(JobFailed, match="not UTF-8"):
        session.run(f"CREATE TABLE t AS {query.format(folder=session.folder)}")


def test_text_of_a_lake_is_not_looked_at_again(session: Session) -> None:
    """A sixth of the time of writing many texts."""
    session.run("CREATE TABLE t AS SELECT 'a' AS c", "CREATE VIEW v AS SELECT upper(c) AS c FROM t")
    shown_plan = session.run("EXPLAIN SELECT c FROM v")
    assert "is_valid_utf8" not in str(shown_plan)
    session.run("INSERT INTO t SELECT c FROM v UNION ALL SELECT 'b'")
    assert session.judged("SELECT c FROM t ORDER BY c") == [("A",), ("a",), ("b",)]


JSON = [
    '{"a":1}', '{"a":1,"a":2}', "[1, [2], {}]", '"\\ud83d\\ude00"', '"\\\\ud800"', " null ", "1e999", '{"e":"x","v":1}',
]  # fmt: skip
NO_JSON = [
    '{"a":1} xyz', "1 2", '"\\ud800"', '"\\ude00\\ud83d"', "", " ", "1,2", "1] [2", '1],"x":[2', '1,"x":2', "{a:1}",
    "'a'", '{"a":1}{"b":2}', "01", "tru", '"a', "// 1", "\x001",
]  # fmt: skip


def test_only_json_that_duckdb_reads_is_written(session: Session) -> None:
    session.run("CREATE TABLE t (id int, j json)")
    spark = session.session.spark.session()
    for text in NO_JSON:
        spark.createDataFrame([(1, text)], "id int, j string").createOrReplaceTempView("given")
        with pytest.raises(JobFailed, match=r"Column j of main\.t has type json, and this is no such value"):
            session.run(
                "INSERT INTO t SELECT * FROM parquet.`nothing`" if False else f"INSERT INTO t SELECT 1, {sql(text)}"
            )
    session.run(*(f"INSERT INTO t SELECT {place}, {sql(text)}" for place, text in enumerate(JSON)))
    assert session.judged("SELECT j::VARCHAR FROM t WHERE json_valid(j) ORDER BY id") == [(text,) for text in JSON]


def sql(text: str) -> str:
    """A text as an expression, whatever is in it."""
    return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"


def test_json_is_what_duckdb_takes_for_it(spark: SparkSession) -> None:
    rng, given = random.Random(1), [*JSON, *NO_JSON]
    for _ in range(1500):
        text = list(rng.choice(JSON + NO_JSON) + (rng.choice(JSON) if rng.random() < 0.2 else ""))
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(text) + 1)
            text[place : place + rng.randint(0, 1)] = rng.choice('{}[],:"\\0 1eEu.-+ntdc8')
        given.append("".join(text))
    rows = spark.createDataFrame(list(enumerate(given)), "at int, text string").select("at", is_json(F.col("text")))
    ours = dict(row for row in map(tuple, rows.collect()))
    with duckdb.connect() as judge:
        theirs = [bool(judge.execute("SELECT try(json_valid(?))", [text]).fetchone() == (True,)) for text in given]
    assert [text for at, text in enumerate(given) if ours[at] and not theirs[at]] == []
    # DuckDB also takes a comma at the end, and numbers that are none.
    stricter = [text for at, text in enumerate(given) if theirs[at] and not ours[at]]
    assert all("," in text or any(word in text.lower() for word in ("nan", "inf")) for text in stricter)


def test_a_value_that_stays_is_not_looked_at(session: Session) -> None:
    """DuckDB takes more for JSON than is; a row with such a value can be updated."""
    with session.judge() as judge:
        judge.run("CREATE TABLE t (id INT, j JSON)", "INSERT INTO t VALUES (1, '[NaN, 1,]')")
    session.run(
        "UPDATE t SET id = 2", "MERGE INTO t USING (SELECT 2 AS k) ON id = k WHEN MATCHED THEN UPDATE SET id = 3"
    )
    assert session.judged("SELECT id, j::VARCHAR FROM t") == [(3, "[NaN, 1,]")]


DEFAULTS = {
    "DATE": ["'0044-03-15 (BC)'", "'infinity'", "'-infinity'", "'9999-12-31'", "'5000-01-01'", "'12345-01-01'"],
    "TIMESTAMP": ["'infinity'", "'-infinity'", "'0044-03-15 (BC) 10:00:00'", "'2021-03-28 02:30:00.123456'"],
    "TIMESTAMPTZ": ["'infinity'", "'-infinity'", "'2021-03-28 02:30:00+00'", "'0044-03-15 (BC) 10:00:00+00'"],
    "DOUBLE": ["'nan'", "'-inf'", "1e300", "'-0.0'"],
    "FLOAT": ["0.1", "'inf'"],
    "DECIMAL(38,10)": ["'-1234567890123456789012345678.0000000001'"],
    "HUGEINT": ["99999999999999999999999999999999999999", "'-5'"],
    "UBIGINT": ["18446744073709551615"],
    "BLOB": ["'\\x00\\xFF'", "'ab'"],
    "VARCHAR": ["'it''s \\ \"x\"'", "''", "'NULL '"],
    "BOOLEAN": ["'true'", "'f'"],
    "UUID": ["'6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b'"],
    "TIME": ["'23:59:59.999999'"],
    "JSON": ["'{\"a\": 1}'"],
}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Stockholm"])
@pytest.mark.parametrize("ansi", [True, False])
def test_defaults_of_added_columns_are_read_as_duckdb_reads_them(session: Session, zone: str, ansi: bool) -> None:
    columns = [(f"c{at}", kind, text) for at, (kind, text) in enumerate((k, t) for k, v in DEFAULTS.items() for t in v)]
    with session.judge() as judge:
        judge.run("CREATE TABLE t (id INT, n INT)", "INSERT INTO t VALUES (1, 1)")
        for name, kind, text in columns:
            judge.run(f"ALTER TABLE t ADD COLUMN {name} {kind} DEFAULT {text}")
        everything = "SELECT COLUMNS(* EXCLUDE (id, n))::VARCHAR FROM t WHERE id = {}"
        expected = judge.rows(everything.format(1))
    session.run(ANSI.format(ansi), f"SET spark.sql.session.timeZone = {zone}")
    # The default of a row that was there, as UPDATE writes it out, and of a new one, as INSERT does.
    assert session.run("UPDATE t SET n = 2") == 1
    session.run("INSERT INTO t (id) VALUES (2)")
    assert session.judged(everything.format(1)) == session.judged(everything.format(2)) == expected


def test_a_default_that_spark_has_not_is_an_error_of_those_who_read_it(session: Session) -> None:
    with session.judge() as judge:
        judge.run("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)")
        judge.run("ALTER TABLE t ADD COLUMN h HUGEINT DEFAULT 100000000000000000000000000000000000001")
    assert session.run("SELECT id FROM t") == [(1,)]
    with pytest.raises(JobFailed, match=r"Column h has the value 1000.*1, which has more than the 38 digits"):
        session.run("SELECT h FROM t")


@pytest.mark.parametrize("ansi", [True, False])
def test_buckets_of_decimals_do_not_depend_on_settings(session: Session, ansi: bool) -> None:
    values = [
        "0",
        "0.000000001",
        "-0.0000001",
        "1",
        "-12345678901234567890.5",
        "0.1",
        "99999999999999999999999999.999999999999",
    ]
    session.run(ANSI.format(ansi), "CREATE TABLE t (v decimal(38,12)) PARTITIONED BY (bucket(97, v))")
    session.run(f"INSERT INTO t VALUES {', '.join(f'(cast({value!r} AS decimal(38,12)))' for value in values)}")
    with session.judge() as judge:
        for value in values:
            assert judge.rows(f"SELECT count(*) FROM t WHERE v = {value}::DECIMAL(38,12)") == [(1,)]


def test_a_query_shows_what_python_has_not(session: Session) -> None:
    with session.judge() as judge:
        judge.run(
            "CREATE TABLE t (d DATE, z TIMESTAMPTZ, n TIMESTAMP, l DATE[], s STRUCT(n TIMESTAMP))",
            "INSERT INTO t VALUES "
            "('infinity', '-infinity', 'infinity', ['infinity', '2026-01-01'], {'n': '-infinity'}), "
            "('12026-01-01', '0044-03-15 (BC) 00:00:00+00', '0001-01-01', ['0044-03-15 (BC)'], {'n': '2026-01-01'})",
        )
    found = fetched(session.outcome("SELECT * FROM t ORDER BY l").rows)  # type: ignore[arg-type]
    texts = [[str(value) for value in row] for row in found]
    assert texts == [
        ["12026-01-01", "0044-03-15 (BC) 00:00:00+00", "0001-01-01 00:00:00", "['0044-03-15 (BC)']",
         "{'n': datetime.datetime(2026, 1, 1, 0, 0)}"],
        ["infinity", "-infinity", "infinity", "['infinity', datetime.date(2026, 1, 1)]", "{'n': '-infinity'}"],
    ]  # fmt: skip


def test_what_is_shown_to_people_is_text(session: Session) -> None:
    rows = session.outcome(
        "SELECT X'7A7AFF' AS b, map('k', 1) AS m, parse_json('{\"a\":[1]}') AS v, INTERVAL '1-2' YEAR TO MONTH AS i, "
        "array(map(1, X'00')) AS n, array(1) AS l, named_struct('a', 1) AS s"
    ).rows
    assert rows is not None
    assert fetched(shown(rows)) == [
        ("7A7AFF", '{"k":1}', '{"a":[1]}', "INTERVAL '1-2' YEAR TO MONTH", '[{"1":"AA=="}]', [1], {"a": 1})
    ]


ODD = ("a.b", "a`b", "_metadata", "_uri", "_first", "_begin", "_pos", "_snapshot", "_number", "snapshot_id", "rowid",
       "file_path", "pos", "rows", "clause", "x y", "İ", "value", "größe")  # fmt: skip


@pytest.mark.parametrize("extra", ["n int", "l array<int>", "m map<string,int>, s struct<`c.d`:int>"])
def test_columns_may_have_any_name(session: Session, extra: str) -> None:
    """In each way that rows are read and written: by Spark's own writer, and by Arrow for lists and maps."""
    names = [f"`{name.replace('`', '``')}`" for name in ODD]
    listed, ones = ", ".join(names), ", ".join(["1"] * len(names))
    declared = ", ".join(f"{name} int" for name in names)
    session.run(f"CREATE TABLE t (id int, {declared}, {extra}) PARTITIONED BY (`a.b`)")
    for at in range(3):
        session.run(f"INSERT INTO t (id, {listed}) SELECT id + {at * 4}, {ones} FROM range(4)")
    with session.judge() as judge:
        judge.run("DELETE FROM t WHERE id = 11")
    session.run("UPDATE t SET `a.b` = 2 WHERE id < 3", "DELETE FROM t WHERE id = 5")
    merge = "MERGE INTO t USING (SELECT 6 AS k UNION ALL SELECT 50) ON t.id = k WHEN MATCHED THEN UPDATE SET "
    session.run(f"{merge} `_metadata` = 9 WHEN NOT MATCHED THEN INSERT (id, _pos) VALUES (k, 7)")
    whole = f"SELECT id, {listed} FROM t"
    expected = session.run(whole)
    for procedure in ("merge_adjacent_files", "rewrite_data_files", "flush_inlined_data"):
        session.run(f"CALL ducklake_{procedure}('lake')")
        assert session.run(whole) == expected
    # DuckDB takes double quotes.
    assert sorted(session.judged(whole.replace("``", "\0").replace("`", '"').replace("\0", "`")), key=repr) == expected
    last = session.run("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
    feed = f"ducklake_table_changes('lake', 'main', 't', 1, {last})"
    changed = session.run(f"SELECT change_type, snapshot_id_1, rowid_1, _pos FROM {feed} WHERE id = 50")
    assert changed == [("insert", None, None, 7)]


def test_names_that_spark_does_not_tell_apart_are_refused(session: Session) -> None:
    with session.judge() as judge:
        judge.run('CREATE TABLE t ("İ" INT, i INT, k INT)', "INSERT INTO t VALUES (1, 2, 3)")
    assert session.run("SELECT k FROM t") == [(3,)]
    for sql in ("UPDATE t SET k = 4", "DELETE FROM t WHERE k = 3"):
        with pytest.raises(WriteRefused, match="its columns İ and i are one name to Spark"):
            session.run(sql)


def test_nulls_are_refused_whatever_the_settings(session: Session) -> None:
    for setting in ("parquet.column.statistics.enabled", "parquet.column.statistics.enabled#id"):
        session.run(f"SET `{setting}` = false", "CREATE OR REPLACE TABLE t (id int NOT NULL, v int)")
        with pytest.raises(NullsRefused):
            session.run("INSERT INTO t VALUES (1, 1), (NULL, 2)")
        session.run("INSERT INTO t VALUES (1, NULL)", "DELETE FROM t WHERE id = 1", f"RESET `{setting}`")
        assert session.judged("SELECT count(*) FROM t") == [(0,)]


def test_literals_mean_the_same_with_any_settings() -> None:
    text = literal_of_text(Column("c", ColumnType("timestamptz")), "2021-06-01 12:00:00+02")
    assert text == "timestamp_micros(CAST('1622541600000000' AS BIGINT))"
    assert literal_of_text(Column("c", ColumnType("varchar")), None) == "CAST(NULL AS string)"


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("INSERT INTO t SELECT 1, X'00'", WriteRefused),
        ("INSERT INTO t SELECT 1, array('a')", WriteRefused),
        ("INSERT INTO t SELECT named_struct('a', 1), 'a'", WriteRefused),
    ],
)
def test_values_of_another_kind_are_refused(session: Session, sql: str, error: type[SparkRoomError]) -> None:
    session.run("CREATE TABLE t (id int, s string)")
    with pytest.raises(error, match="Cast it in the query"):
        session.run(sql)


def test_the_first_number_past_the_greatest_long_is_refused(session: Session) -> None:
    session.run("CREATE TABLE t (i bigint)", "INSERT INTO t SELECT -9223372036854775808D")
    for number in ("9223372036854775807E18D", "9223372036854775808D", "cast('Infinity' as double)"):
        with pytest.raises(JobFailed, match="does not fit it"):
            session.run(f"INSERT INTO t SELECT {number}")
    assert session.run("SELECT * FROM t") == [(-(2**63),)]
