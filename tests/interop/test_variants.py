"""VARIANT columns, which DuckDB writes: Spark reads the values that the extension reads, whether they lie in files,
apart or together, or in the metadata. What it has no value for is an error."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.lake import Column, ColumnType, IsNotNull, IsNull
from dbt.adapters.ducklake.lake.backends import backend_for
from dbt.adapters.ducklake.lake.columns import scalar
from dbt.adapters.ducklake.spark.errors import JobFailed, WriteRefused
from dbt.adapters.ducklake.spark.scan import scan
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.statements.errors import NotUnderstood
from dbt.adapters.ducklake.statements.maintenance.rows import check_rows
from tests.interop.reader import rows_at
from tests.interop.test_spark_reading import texts
from tests.judge import Judge
from tests.places import Place
from tests.sessions import Session

VALUES = {
    "boolean": ["true", "false"],
    "integers": ["1::tinyint", "300::smallint", "-70000", "5000000000", "200::utinyint", "4000000000::uinteger"],
    "wide": ["5::ubigint", "9223372036854775807::ubigint", "-5::hugeint"],
    "floats": ["1.5::float", "1e300::double", "'nan'::double", "'-inf'::float", "-0.0::double"],
    "decimals": ["1.50::decimal(4,2)", "-1.50::decimal(18,2)", "12345678901234567890.123::decimal(38,3)"],
    "texts": ["'é'", "''", f"'{'x' * 63}'", f"'{'x' * 65}'", "'null'", r"'a\b\"''c'"],
    "bytes": [r"'\xAB\x00'::blob", "''::blob"],
    "dates": ["date '1200-01-01'", "date 'infinity'", "date '5877642-06-25 (BC)'"],
    "moments": ["timestamp '1200-01-01 10:00:00.123456'", "timestamp '-infinity'"],
    "instants": ["timestamptz '2020-01-01 10:00:00+05'", "timestamptz 'infinity'"],
    "lists": ["[1, null, 2]", "[[1], [], null]", "[]::int[]"],
    "maps": ["map {'a': 1, 'b': null}"],
    "structs": ["{'a': {'b': [1, 2]}, 'c d': 'x'}", "{'a': {'b': null}, 'c d': null}"],
    "json": ["""'{"a":[1,null],"k":{"b":1.5}}'::json""", "'[]'::json", "'\"text\"'::json"],
    "mixed": ["1", "'one'", "{'a': 1}", "date '2020-01-01'", "{'a': 'one'}", "[1, 2]"],
    "unlike": ["[1, 'one'::VARIANT]", """'[1,"x",null,{"b":[1.5]}]'::json"""],
}  # fmt: skip
# DuckDB 1.5 fails to keep these in the metadata.
IN_FILES_ONLY = {"unlike"}
SAID = r"as UUID, TIME, INTERVAL or TIMESTAMP_NS|UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT"
SETTINGS = [
    "variant.allowReadingShredded = false", "variant.allowReadingShredded = true",
    "parquet.ignoreVariantAnnotation = true", "variant.pushVariantIntoScan = false", "ansi.enabled = false",
]  # fmt: skip
NOT_OF_SPARK = {
    "uuid": "uuid '12345678-1111-1111-1111-111111111111'",
    "time": "time '10:00:00.5'",
    "nanoseconds": "timestamp_ns '2020-01-01 10:00:00.123456789'",
    "within": "{'a': [{'b': time '10:00:00'}]}",
}


def fill(place: str, name: str, values: list[str], limit: int) -> None:
    """A table of values, and of a NULL after each of them, in files of a row, in one file and in the metadata."""
    with Judge.of_this_process().attached(place, data_inlining_row_limit=limit) as judge:
        judge.run("SET TimeZone = 'UTC'", f"CREATE TABLE lake.main.{name} (id INTEGER, v VARIANT)")
        rows = [f"({2 * place}, ({value})::VARIANT), ({2 * place + 1}, NULL)" for place, value in enumerate(values)]
        judge.run(f"INSERT INTO lake.main.{name} VALUES {', '.join(rows)}")
        for row in rows:
            judge.run(f"INSERT INTO lake.main.{name} VALUES {row}")
        judge.run(f"DELETE FROM lake.main.{name} WHERE id = 3")


def read_by_the_extension(place: str, name: str) -> list[tuple[object, ...]]:
    with Judge.of_this_process().attached(place, read_only=True) as judge:
        return sorted(judge.rows(f"SELECT id::VARCHAR, v::VARCHAR FROM lake.main.{name}"), key=repr)


@pytest.mark.parametrize(
    ("name", "limit"), [(name, limit) for name in VALUES for limit in (0, 10) if not limit or name not in IN_FILES_ONLY]
)
def test_values_are_those_of_the_extension(session: Session, name: str, limit: int) -> None:
    place, judge = session.metadata("lake"), Judge.of_this_process()
    fill(place, name, VALUES[name], limit)
    expected = read_by_the_extension(place, name)
    snapshot = session.lakes["lake"].snapshot()
    table = snapshot.table("main", name)
    assert bool(snapshot.files(table).inlined_rows) == bool(limit)
    assert rows_at(judge, snapshot, table) == expected
    for setting in SETTINGS if name in ("structs", "mixed") else SETTINGS[:1]:
        session.run(f"SET spark.sql.{setting}")
        rows = session.outcome(f"SELECT * FROM {name}").rows
        assert rows is not None
        with session.session.spark.job("read"):
            assert texts(judge, table, rows) == expected
    # NULL as DuckDB has it, whatever the file has for it.
    for condition in ("v IS NULL", "v IS NOT NULL"):
        with Judge.of_this_process().attached(place, read_only=True) as attached:
            count = attached.rows(f"SELECT count(*), count(v) FROM lake.main.{name} WHERE {condition}")
        assert session.run(f"SELECT count(*), count(v) FROM {name} WHERE {condition}") == count


@pytest.mark.parametrize("name", NOT_OF_SPARK)
def test_what_spark_has_no_value_for_is_an_error(session: Session, name: str) -> None:
    place = session.metadata("lake")
    fill(place, name, [NOT_OF_SPARK[name], "42"], 0)
    with Judge.of_this_process().attached(place, data_inlining_row_limit=0) as judge:
        judge.run(f"INSERT INTO lake.main.{name} VALUES (9, {{'n': 7}})")
    for value in ("false", "true"):
        session.run(f"SET spark.sql.legacy.parquet.nanosAsLong = {value}")
        with pytest.raises(JobFailed, match=SAID):
            session.run(f"SELECT to_json(v) FROM {name}")
    # Its other columns are read, and the files that hold none such.
    assert session.run(f"SELECT id FROM {name} WHERE id > 3") == [(9,)]
    assert session.run(f"SELECT variant_get(v, '$.n', 'int') FROM {name} WHERE id = 9") == [(7,)]


def test_fields_are_found_in_files_that_hold_them_apart(session: Session) -> None:
    fill(session.metadata("lake"), "t", ["{'a': 1, 'b': {'c': 'x'}}", "{'a': 'one'}", "{'b': {'c': 5}}"], 0)
    for value in ("true", "false"):
        session.run(f"SET spark.sql.variant.pushVariantIntoScan = {value}")
        assert session.run("SELECT id, v:b.c::string FROM t WHERE id IN (0, 2) ORDER BY id") == [
            (0, "x"), (0, "x"), (2, None), (2, None),
        ]  # fmt: skip
        assert session.run("SELECT DISTINCT id FROM t WHERE try_variant_get(v, '$.a', 'int') = 1") == [(0,)]
        assert session.run("SELECT count(*) FROM t WHERE variant_get(v, '$.b') IS NULL") == [(6,)]


def test_rows_are_deleted_and_not_written(session: Session) -> None:
    place = session.metadata("lake")
    fill(place, "t", ["{'a': 1}", "{'a': 2}", "'x'"], 1)
    for sql in (
        "UPDATE t SET id = 7 WHERE id = 0",
        "INSERT INTO t VALUES (7, NULL)",
        "INSERT INTO t SELECT id + 10, v FROM t",
        "MERGE INTO t USING (SELECT 0 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 7",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    ):
        with pytest.raises(WriteRefused, match="column v holds the type variant"):
            session.run(sql)
    with pytest.raises(NotUnderstood, match="writes no"):
        session.run("CREATE TABLE other (v VARIANT)")
    assert session.run("DELETE FROM t WHERE variant_get(v, '$.a', 'int') = 1") == 2
    session.run("MERGE INTO t USING (SELECT 4 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    session.run("CALL ducklake_compact('lake', 't', deleted_share => 0.01)")
    expected = [("1", None), ("1", None), ("2", "{'a': 2}"), ("2", "{'a': 2}"), ("5", None), ("5", None)]
    assert read_by_the_extension(place, "t") == expected
    assert session.run("SELECT id, to_json(v) FROM t WHERE v IS NOT NULL") == [(2, '{"a":2}'), (2, '{"a":2}')]
    feed = "ducklake_table_changes('lake', 'main', 't', 2, 2)"
    assert session.run(f"SELECT change_type, id, v:a::int FROM {feed} WHERE id = 0") == [("insert", 0, 1)]


def test_columns_that_came_later_have_their_default(session: Session) -> None:
    place = session.metadata("lake")
    for limit in (0, 10):
        name = f"t{limit}"
        with Judge.of_this_process().attached(place, data_inlining_row_limit=limit) as judge:
            judge.run(f"CREATE TABLE lake.main.{name} (id INTEGER)", f"INSERT INTO lake.main.{name} VALUES (1)")
            judge.run(f"ALTER TABLE lake.main.{name} ADD COLUMN v VARIANT DEFAULT 42")
            judge.run(
                f"ALTER TABLE lake.main.{name} ADD COLUMN w VARIANT", f"INSERT INTO lake.main.{name}(id) VALUES (2)"
            )
        shown_here = session.run(f"SELECT id, schema_of_variant(v), v::string, w IS NULL FROM {name}")
        with Judge.of_this_process().attached(place, read_only=True) as judge:
            kinds = judge.rows(f"SELECT id, variant_typeof(v), v::VARCHAR, w IS NULL FROM lake.main.{name} ORDER BY id")
        # DuckDB takes the default's text for the value.
        assert kinds == [(1, "VARCHAR", "42", True), (2, "VARCHAR", "42", True)]
        assert shown_here == [(1, "STRING", "42", True), (2, "STRING", "42", True)]


def test_views_over_variants(session: Session) -> None:
    """DuckDB casts them to texts and numbers otherwise, and `v:a` is another name of `v` to it."""
    place = session.metadata("lake")
    fill(place, "t", ["{'a': 1}"], 0)
    session.run("CREATE VIEW whole AS SELECT id, v FROM t", "CREATE VIEW path AS SELECT v:a FROM t")
    session.run("CREATE VIEW text AS SELECT v::string AS v FROM t", "CREATE VIEW other AS SELECT t.v:a.b FROM t")
    with Judge.of_this_process().attached(place, read_only=True) as judge:
        assert judge.rows("SELECT id, v::VARCHAR FROM lake.main.whole WHERE v IS NOT NULL LIMIT 1") == [(0, "{'a': 1}")]
        for name in ("path", "text", "other"):
            with pytest.raises(Exception, match="Read it with Spark"):
                judge.rows(f"SELECT * FROM lake.main.{name}")
    assert session.run("SELECT DISTINCT a::int FROM path WHERE a IS NOT NULL") == [(1,)]
    assert [text.partition(" is for Spark only")[0] for text in session.warnings] == [
        f"View lake.main.{name}" for name in ("path", "text", "other")
    ]


def test_files_are_not_left_out_by_their_counts(session: Session) -> None:
    """DuckDB counts the NULLs of a VARIANT as values."""
    fill(session.metadata("lake"), "t", ["42", "43"], 0)
    snapshot = session.lakes["lake"].snapshot()
    table = snapshot.table("main", "t")
    column = table.column("v").id
    assert len(snapshot.files(table, [IsNull(column)]).data_files) == 3
    assert len(snapshot.files(table, [IsNotNull(column)]).data_files) == 3


def wide(count: int) -> str:
    fields = ", ".join(f'"k{number:02}":{number}' for number in range(count - 1, -1, -1))
    return f"'{{{fields}}}'::json"


def test_wide_objects_are_searched(session: Session) -> None:
    """From 32 fields on Spark looks for one by halves, and DuckDB keeps them as they came."""
    place = session.metadata("lake")
    values = [*map(wide, (31, 32, 60, 300)), f"{{'b': [0, 1], 'a': [{{'x': ({wide(60)})::VARIANT}}]}}"]
    fill(place, "t", values, 10)
    found = session.run("SELECT DISTINCT id, v:k00::int, v:k07::int, v:k30::int FROM t WHERE id < 8 AND v IS NOT NULL")
    assert found == [(id, 0, 7, 30) for id in (0, 2, 4, 6)]
    assert session.run("SELECT DISTINCT v:a[0].x.k59::int FROM t WHERE id = 8") == [(59,)]
    assert session.run("DELETE FROM t WHERE v:k00::int = 0") == 8
    assert {row[0] for row in read_by_the_extension(place, "t") if row[1] is not None} == {"8"}


def test_a_text_of_64_bytes(session: Session) -> None:
    """DuckDB 1.5 says of it that it has none."""
    fill(session.metadata("lake"), "t", [f"'{'x' * 64}'", f"{{'b': 1, 'a': ['{'x' * 64}', '']}}"], 10)
    assert session.run("SELECT DISTINCT id, to_json(v) FROM t WHERE v IS NOT NULL") == [
        (0, f'"{"x" * 64}"'), (2, f'{{"a":["{"x" * 64}",""],"b":1}}'),
    ]  # fmt: skip


NOT_OF_PARQUET = [
    "INTERVAL 1 DAY", "{'a': TIMETZ '10:00:00+01'}", "18446744073709551615::UBIGINT", "TIMESTAMP_S '2020-01-01'",
]  # fmt: skip


@pytest.mark.parametrize("value", NOT_OF_PARQUET)
def test_inlined_values_that_parquet_has_not(session: Session, value: str) -> None:
    fill(session.metadata("lake"), "t", ["1", value], 10)
    assert session.run("SELECT DISTINCT id FROM t") == [(0,), (1,), (2,)]
    assert session.run("SELECT DISTINCT to_json(v) FROM t WHERE id = 0") == [("1",)]
    with pytest.raises(JobFailed, match="UNKNOWN_PRIMITIVE_TYPE_IN_VARIANT"):
        session.run("SELECT to_json(v) FROM t")
    assert session.run("DELETE FROM t WHERE id = 2") == 2
    session.run("TRUNCATE TABLE t")
    assert session.run("SELECT id FROM t") == []


@pytest.mark.parametrize("limit", [0, 10])
def test_columns_of_other_types_that_became_variants(session: Session, limit: int) -> None:
    place = session.metadata("lake")
    kinds = {
        "INTEGER": "-7", "UTINYINT": "200", "VARCHAR": "'it''s'", "DOUBLE": "0.1", "FLOAT": "0.1", "BOOLEAN": "true",
        "TIMESTAMP": "'2020-01-01 10:00:00.5'", "TIMESTAMPTZ": "'2020-01-01 10:00:00+05'", "DATE": "'1200-01-01'",
        "DECIMAL(18,3)": "-1.5", "BLOB": "'\\xAB'::BLOB",
    }  # fmt: skip
    lost = {"UUID": "uuid()", "TIME": "'10:00:00'", "INTERVAL": "INTERVAL 1 DAY"}
    with Judge.of_this_process().attached(place, data_inlining_row_limit=limit) as judge:
        judge.run("SET TimeZone = 'UTC'")
        for number, (kind, value) in enumerate((kinds | lost).items()):
            judge.run(f"CREATE TABLE lake.main.t{number} (id INTEGER, v {kind})",
                      f"INSERT INTO lake.main.t{number} VALUES (1, {value}), (2, NULL)",
                      f"ALTER TABLE lake.main.t{number} ALTER v TYPE VARIANT",
                      f"INSERT INTO lake.main.t{number} VALUES (3, 5::VARIANT)")  # fmt: skip
    snapshot = session.lakes["lake"].snapshot()
    for number in range(len(kinds)):
        table = snapshot.table("main", f"t{number}")
        rows = session.outcome(f"SELECT * FROM t{number}").rows
        assert rows is not None
        with session.session.spark.job("read"):
            assert texts(Judge.of_this_process(), table, rows) == read_by_the_extension(place, f"t{number}")
    for number in range(len(kinds), len(kinds | lost)):
        assert session.run(f"SELECT id FROM t{number}") == [(1,), (2,), (3,)]
        assert session.run(f"SELECT to_json(v) FROM t{number} WHERE id = 3") == [("5",)]
        with pytest.raises(JobFailed, match=SAID):
            session.run(f"SELECT to_json(v) FROM t{number}")


def test_paths_beside_other_tables(session: Session) -> None:
    place = session.metadata("lake")
    fill(place, "t", ["{'a': 1, 'd': '2020-05-01'}"], 0)
    session.run("CREATE SCHEMA s", "CREATE TABLE s.t AS SELECT 7 AS id", "CREATE TABLE u AS SELECT 0 AS id",
                "CREATE TABLE v AS SELECT 9 AS id")  # fmt: skip
    assert session.run("""SELECT DISTINCT parse_json('{"a":1}'):a::int FROM t, u""") == [(1,)]
    assert session.run("SELECT DISTINCT t.id FROM t, u WHERE t.id = u.id AND t.v:a::int = 1") == [(0,)]
    sql = "SELECT DISTINCT main.t.id, s.t.id, main.t.v:a::int FROM main.t JOIN s.t ON true WHERE main.t.id = 0"
    assert session.run(sql) == [(0, 7, 1)]
    assert session.run("SELECT DISTINCT extract(year FROM v:d::date) FROM t WHERE id = 0") == [(2020,)]
    assert session.run("WITH x AS (WITH u AS (SELECT 5 AS id) SELECT * FROM u) SELECT DISTINCT x.id, u.id, t.v:a::int "
                       "FROM x, u, t WHERE t.id = 0") == [(5, 0, 1)]  # fmt: skip
    assert session.run("DELETE FROM t WHERE v:a::int = 1 AND EXISTS (SELECT 1 FROM u WHERE u.id = t.id)") == 2


def test_the_doctor_reads_tables_with_variants(session: Session) -> None:
    place = session.metadata("lake")
    fill(place, "t", ["1", "'a'"], 0)
    with Judge.of_this_process().attached(place, data_inlining_row_limit=0) as judge:
        judge.run("CREATE TABLE lake.main.p (v VARIANT)", "ALTER TABLE lake.main.p SET PARTITIONED BY (v)",
                  "INSERT INTO lake.main.p VALUES (1::VARIANT), ('a'::VARIANT), (NULL)")  # fmt: skip
    assert list(check_rows(session.session, "lake")) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_inlined_variants_as_bytes(
    kind: str, place: Place, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So DuckDB 2.0 keeps them in SQLite and PostgreSQL: as Parquet's bytes, and within others as a text of these."""
    judge, held = Judge.of_this_process(), "CAST(variant_to_parquet_variant(v) AS STRUCT(metadata BLOB, value BLOB))"
    bytes_of = f"SELECT p.metadata || p.value FROM (SELECT {held} AS p FROM (SELECT ({{}})::VARIANT AS v))"
    given = ("{'a': [1, 'x'::VARIANT]}", "'it''s'", "true")
    values = [judge.rows(bytes_of.format(value))[0][0] for value in given]
    storage = type(backend_for(place.describe(ducklake_version="1.1")).storage)
    with monkeypatch.context() as patched, place.connect(ducklake_version="1.1") as lake:
        patched.setattr(storage, "can_inline", lambda *_: True)
        made = lake.transaction()
        table = made.create_table("main", "t", [scalar("id", "int32"), scalar("v", "variant")])
        made.insert_inlined(table, [(place, value) for place, value in enumerate(values)])
        made.insert_inlined(table, [(9, None)])
        made.commit()
        snapshot = lake.snapshot()
        table = snapshot.table("main", "t")
        assert [row.values[1] for row in snapshot.files(table).inlined_rows] == [*values, None]
        rows = scan(spark, Storage(lake.data_path, {}), table, snapshot.files(table), snapshot.id)
        assert [tuple(row) for row in rows.selectExpr("id", "to_json(v)").orderBy("id").collect()] == [
            (0, '{"a":[1,"x"]}'), (1, '"it\'s"'), (2, "true"), (9, None),
        ]  # fmt: skip
    column = Column("s", ColumnType("struct"), (scalar("v", "variant"), scalar("n", "int32")))
    many = Column("l", ColumnType("list"), (scalar("element", "variant"),))
    for value in values:
        text, of_list = judge.rows("SELECT {'v': $1::BLOB, 'n': 1}::VARCHAR, [$1::BLOB, NULL]::VARCHAR", [value])[0]
        assert storage().inlined_value(column, text) == {"v": value, "n": 1}
        assert storage().inlined_value(many, of_list) == [value, None]


def test_variants_within_others(session: Session) -> None:
    """Parquet holds none, so they are in the metadata."""
    place, judge = session.metadata("lake"), Judge.of_this_process()
    with judge.attached(place, data_inlining_row_limit=10):
        judge.run("CREATE TABLE lake.main.t (id INTEGER, s STRUCT(v VARIANT, n INTEGER), l VARIANT[])",
                  "INSERT INTO lake.main.t VALUES (1, {'v': {'a': 1}, 'n': 1}, ['x'::VARIANT, NULL, 'y'::VARIANT]), "
                  "(2, NULL, NULL), (3, {'v': NULL, 'n': 3}, [])")  # fmt: skip
    snapshot = session.lakes["lake"].snapshot()
    table = snapshot.table("main", "t")
    assert rows_at(judge, snapshot, table) == [
        ("1", "{'v': {'a': 1}, 'n': 1}", "[x, NULL, y]"), ("2", None, None), ("3", "{'v': NULL, 'n': 3}", "[]"),
    ]  # fmt: skip
    found = session.run("SELECT id, to_json(s), to_json(l), s.v IS NULL, get(l, 1) IS NULL FROM t WHERE id <> 2")
    assert found == [
        (1, '{"v":{"a":1},"n":1}', '["x",null,"y"]', False, True),
        (3, '{"n":3}', "[]", True, True),
    ]
