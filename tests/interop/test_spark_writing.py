"""What Spark writes through us, DuckDB's extension reads: equal row for row, with its pruning on, and right counts and
bounds from the metadata alone."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.ducklake.lake import INFINITE_DAYS, INFINITE_TICKS, Column, ColumnType, Table, decimal
from dbt.adapters.ducklake.lake.backends.duckdb_values import duckdb_type
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.spark.local_rows import dataframe_of
from dbt.adapters.ducklake.spark.scan import scan
from dbt.adapters.ducklake.spark.schema import columns_from
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.spark.write import WriteSettings, write_rows
from tests.conftest import PlaceOf
from tests.interop.test_spark_reading import texts
from tests.judge import Judge
from tests.places import Place
from tests.seeds import by_turns

LEAVES: tuple[str, ...] = (
    "boolean",
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "varchar",
    "blob",
    "date",
    "timestamp",
)
LEAVES += ("timestamptz", "decimal")


class Rows:
    """Random columns of every type that Spark writes, nested ones too, and random rows of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def columns(self) -> list[Column]:
        names = self.random.sample(["id", "Name", "a b", "größe", "select", "x.y", 'q"q', "b`t", "{z}", "0"], 6)
        return [self.column(name) for name in names]

    def column(self, name: str, depth: int = 0) -> Column:
        kind = self.random.choices(["leaf", "struct", "list", "map"], [8, 1, 1, 1])[0] if depth < 3 else "leaf"
        if kind == "struct":
            fields = tuple(self.column(f"f{place}", depth + 1) for place in range(self.random.randint(1, 3)))
            return Column(name, ColumnType("struct"), fields)
        if kind == "list":
            return Column(name, ColumnType("list"), (self.column("element", depth + 1),))
        if kind == "map":
            key = Column("key", ColumnType(self.random.choice(("int32", "varchar", "date"))))
            return Column(name, ColumnType("map"), (key, self.column("value", depth + 1)))
        leaf = self.random.choice(LEAVES)
        if leaf != "decimal":
            return Column(name, ColumnType(leaf))
        precision = self.random.choice((1, 5, 9, 10, 18, 19, 38))
        return Column(name, decimal(precision, self.random.randint(0, precision)))

    def rows(self, columns: list[Column]) -> list[list[Any]]:
        count = self.random.choice((0, 1, 3, 40, 200))
        only_nulls = {column.name for column in columns if self.random.random() < 0.1}
        return [[None if c.name in only_nulls else self.value(c) for c in columns] for _ in range(count)]

    def value(self, column: Column, is_key: bool = False) -> Any:
        if not is_key and self.random.random() < 0.2:
            return None
        name = column.type.name
        if name == "struct":
            return {child.name: self.value(child) for child in column.children}
        if name == "list":
            return [self.value(column.children[0]) for _ in range(self.random.choice((0, 1, 3)))]
        if name == "map":
            key, held = column.children
            pairs = {self.value(key, is_key=True): self.value(held) for _ in range(self.random.choice((0, 1, 3)))}
            return list(pairs.items())
        return self.leaf(column)

    def leaf(self, column: Column) -> Any:
        name, pick = column.type.name, self.random.choice
        if name == "boolean":
            return pick((True, False))
        if name.startswith("int"):
            most = 1 << int(name[3:]) - 1
            return pick((0, 1, -1, most - 1, -most, self.random.randrange(-most, most)))
        if name.startswith("float"):
            value = pick(
                (0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan"), 1e-30, self.random.gauss(0, 1e6))
            )
            return value if name == "float64" else struct.unpack("f", struct.pack("f", value))[0]
        if name == "varchar":
            return pick(
                ("", "a", "Ä\u0301é", "\U0001f986", "NULL", 'it\'s "x"', "\\n\n\t", "z" * 300, "\U0010ffff" * 90)
            )
        if name == "blob":
            return pick((b"", b"\x00\xff", b"abc'\\", bytes(range(256)), b"\xff" * 300))
        if name == "date":
            return pick((0, -1, 20_000, -719_162, INFINITE_DAYS, -INFINITE_DAYS, 2_932_896))
        if name.startswith("timestamp"):
            return pick(
                (0, -1, 1_700_000_000_123_456, -(10**15), INFINITE_TICKS, -INFINITE_TICKS, 253_402_300_799_999_999)
            )
        whole = self.random.randrange(-(10**column.type.precision) + 1, 10**column.type.precision)
        return Decimal(f"{whole}e-{column.type.scale}")


def write(place: Place, spark: SparkSession, name: str, rows: DataFrame, **more: Any) -> Table:
    with place.connect() as lake:
        transaction = lake.transaction()
        table = transaction.create_table("main", name, columns_from(rows.schema), **more)
        storage = Storage(lake.data_path, {})
        files = write_rows(spark, storage, rows, table, WriteSettings.of(lake.options(), table))
        transaction.append(table, files)
        transaction.commit()
        return lake.snapshot().table("main", name)


def read(place: Place, spark: SparkSession, table: Table) -> DataFrame:
    with place.connect() as lake:
        snapshot = lake.snapshot()
        return scan(spark, Storage(lake.data_path, {}), table, snapshot.files(table), snapshot.id)


@pytest.mark.parametrize(("kind", "seed"), by_turns(4, 20, 40))
def test_the_extension_reads_what_spark_wrote(kind: str, seed: int, place_of: PlaceOf, spark: SparkSession) -> None:
    place, made = place_of(kind), Rows(seed)
    columns = made.columns()
    rows = made.rows(columns)
    written = dataframe_of(spark, columns, rows).repartition(made.random.choice((1, 3)))
    table = write(place, spark, "t", written)
    judge = Judge.of_this_process()
    expected = texts(judge, table, written)
    assert texts(judge, table, read(place, spark, table)) == expected
    with place.attached():
        shown = ", ".join(f"CAST({quoted(c.name)} AS VARCHAR)" for c in table.columns)
        assert sorted(judge.rows(f"SELECT {shown} FROM t"), key=repr) == expected
        check_predicates(judge, table, written)


def check_predicates(judge: Judge, table: Table, written: DataFrame) -> None:
    """Questions that DuckDB answers from statistics, or with their help, against the rows themselves."""
    # A table of its own: over Arrow, DuckDB's filters leave out NaN where its own order has it.
    with judge.registered("arrow_rows", written.toArrow()):
        judge.run("CREATE OR REPLACE TEMP TABLE plain_rows AS FROM arrow_rows")
    try:
        assert judge.rows("SELECT count(*) FROM t") == judge.rows("SELECT count(*) FROM plain_rows")
        for column in table.columns:
            name, kind = quoted(column.name), duckdb_type(column)
            own, plain = f"{name}", f"CAST({name} AS {kind})"
            questions = ["count({0})", "count(*) FILTER ({0} IS NULL)", "count(*) FILTER ({0} IS NOT NULL)"]
            if not column.children:
                questions += ["min({0})::VARCHAR", "max({0})::VARCHAR"]
            for question in questions:
                mine = judge.rows(f"SELECT {question.format(own)} FROM t")
                assert mine == judge.rows(f"SELECT {question.format(plain)} FROM plain_rows"), question.format(own)
            for (value,) in judge.rows(f"SELECT DISTINCT {plain} FROM plain_rows WHERE {name} IS NOT NULL LIMIT 6"):
                if column.children or isinstance(value, float):
                    continue
                for operator in ("=", "<=", ">", "<>"):
                    condition = f"WHERE {{0}} {operator} $1::{kind}"
                    mine = judge.rows(f"SELECT count(*) FROM t {condition.format(own)}", [value])
                    theirs = judge.rows(f"SELECT count(*) FROM plain_rows {condition.format(plain)}", [value])
                    assert mine == theirs, (column, operator, value)
            if column.type.name.startswith("float"):
                for text in ("'nan'", "'inf'", "'-inf'", "0.0", "1.5"):
                    for operator in ("=", "<", ">=", "<>"):
                        condition = f"WHERE {{0}} {operator} {text}::{kind}"
                        mine = judge.rows(f"SELECT count(*) FROM t {condition.format(own)}")
                        theirs = judge.rows(f"SELECT count(*) FROM plain_rows {condition.format(plain)}")
                        assert mine == theirs, (column, operator, text)
    finally:
        judge.run("DROP TABLE plain_rows")


def test_partitioned_files_lie_where_the_extension_would_put_them(place: Place, spark: SparkSession) -> None:
    """The same folders, and the same texts of the keys, for every transform."""
    rows = spark.sql(
        "SELECT id, if(id % 3 = 0, null, 'r' || (id % 3)) AS region, if(id % 7 = 0, '', 'a/b =%ü') AS odd, "
        "timestamp'2020-02-03 04:05:06' + make_dt_interval(0, cast(id AS int)) AS ts, "
        "timestamp_ntz'2020-02-03 04:05:06' AS tn, cast(id * 1.5 AS decimal(10, 1)) AS dc, "
        "cast(id % 2 AS double) + 0.1 AS db, X'00ff' AS bl, id % 2 = 0 AS bo, date'2020-01-01' AS dd FROM range(40)"
    )
    keys = [("region", "identity"), ("odd", "identity"), ("ts", "month"), ("ts", "day"), ("tn", "year"), ("ts", "hour")]
    keys += [("dc", "identity"), ("db", "identity"), ("bo", "identity"), ("dd", "identity"), ("id", "bucket(4)")]
    keys += [("odd", "bucket(3)"), ("tn", "bucket(2)"), ("ts", "bucket(2)"), ("dc", "bucket(5)"), ("bl", "bucket(3)")]
    place.options = {"data_inlining_row_limit": 0}
    write(place, spark, "ours", rows, partition_by=keys)
    with place.attached() as judge:
        spec = ", ".join(f"{t[:-1]}, {c})" if "(" in t else c if t == "identity" else f"{t}({c})" for c, t in keys)
        judge.run("CREATE TABLE theirs AS FROM ours WHERE false", f"ALTER TABLE theirs SET PARTITIONED BY ({spec})")
        judge.run("INSERT INTO theirs FROM ours")
        assert folders(judge, "ours") == folders(judge, "theirs")
        assert judge.rows("SELECT count(*) FROM ours WHERE odd = 'a/b =%ü' AND id = 8") == [(1,)]
    assert key_texts(place, "ours") == key_texts(place, "theirs")


def folders(judge: Judge, table: str) -> set[str]:
    found = judge.rows(f"SELECT data_file FROM ducklake_list_files('lake', '{table}')")
    return {path.split(f"/main/{table}/")[1].rsplit("/", 1)[0] for (path,) in found}


def key_texts(place: Place, name: str) -> set[tuple[object, ...]]:
    found = place.tables()
    table = next(int(row["table_id"]) for row in found["ducklake_table"] if row["table_name"] == name)
    by_file: dict[int, list[tuple[int, object]]] = {}
    for row in found["ducklake_file_partition_value"]:
        if int(row["table_id"]) == table:
            key = int(row["partition_key_index"]), row["partition_value"]
            by_file.setdefault(int(row["data_file_id"]), []).append(key)
    return {tuple(sorted(keys, key=repr)) for keys in by_file.values()}


def test_all_types_of_duckdb_are_read_or_refused_by_name(place_of: PlaceOf, spark: SparkSession) -> None:
    """DuckDB's `test_all_types()`, column by column, through files."""
    place = place_of("duckdb")
    place.options = {"data_inlining_row_limit": 0}
    read_, not_stored, refused = set(), set(), dict[str, str]()
    with place.attached() as judge:
        names = [row[0] for row in judge.rows("SELECT column_name FROM (DESCRIBE FROM test_all_types())")]
        # DuckDB's Parquet writer ends its whole process' database at this one.
        names.remove("time_ns")
        for name in names:
            try:
                judge.run(f"CREATE TABLE {quoted('t_' + name)} AS SELECT {quoted(name)} AS v FROM test_all_types()")
            except Exception as error:
                not_stored.add(f"{name}: {type(error).__name__}")
    stored = [name for name in names if not any(entry.startswith(f"{name}:") for entry in not_stored)]
    expected = {}
    with place.attached() as judge:
        for name in stored:
            try:
                expected[name] = sorted(judge.rows(f"SELECT v::VARCHAR FROM {quoted('t_' + name)}"), key=repr)
            except duckdb.ConversionException:
                # The outermost values of 128 bits, which DuckDB stores rounded and does not read back itself.
                expected[name] = []
    with place.connect() as lake:
        snapshot = lake.snapshot()
        for name in stored:
            table = snapshot.table("main", f"t_{name}")
            rows = scan(spark, Storage(lake.data_path, {}), table, snapshot.files(table), snapshot.id)
            try:
                found = texts(Judge.of_this_process(), table, rows)
            except Exception as error:
                refused[name] = str(error)
                continue
            assert found == (truncated(expected[name]) if name == "timestamp_ns" else expected[name]), name
            read_.add(name)
    named = ("which Spark cannot read", "more than the 38 digits")
    assert not {name: text for name, text in refused.items() if not any(words in text for words in named)}
    print(f"\nread {sorted(read_)}\nrefused {sorted(refused)}\nnot stored by DuckDB {sorted(not_stored)}")
    assert len(read_) >= 30


def truncated(rows: list[tuple[str | None]]) -> list[tuple[str | None]]:
    """Nanoseconds become microseconds in Spark."""
    cut = [(text[:26].rstrip("0").rstrip(".") if text and "." in text else text,) for (text,) in rows]
    return sorted(cut, key=repr)
