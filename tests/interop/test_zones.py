"""Moments in sessions of many time zones: what is stored, and where, is the same in all of them, and what is read."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import INFINITE_TICKS
from dbt.adapters.ducklake.spark.times import date_in_utc, hour_in_utc, micros_of_naive, naive_from_micros
from tests.judge import Judge
from tests.seeds import ALL
from tests.sessions import Session

# With summer time in the north and in the south, half hours and quarters of it, half an hour of summer time, the far
# ends of the day, offsets of seconds in the past, and days that a country skipped.
ZONES = (
    "Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns", "Asia/Kathmandu",
    "Pacific/Apia", "America/Sao_Paulo", "Pacific/Kiritimati", "Africa/Monrovia", "Europe/Dublin", "Etc/GMT+12",
)  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


# Around the hours that zones skip and repeat, at the ends of days, and long ago.
MOMENTS = [
    micros(text) + shift
    for text in ("2021-03-28 01:00:00", "2021-10-31 01:00:00", "2021-03-14 07:00:00", "2021-11-07 06:00:00",
                 "2021-04-03 15:00:00", "2021-10-02 15:30:00", "2011-12-30 10:00:00", "1970-01-01 00:00:00",
                 "1916-05-01 00:00:00", "1890-01-01 00:00:00", "1582-10-15 00:00:00", "0001-01-01 00:00:00",
                 "2024-02-29 23:59:59", "9999-12-31 12:00:00")
    for shift in (-3_600_000_000, -1_800_000_001, -1, 0, 1, 1_799_999_999, 3_599_999_999, 5_400_000_000)
    if shift >= 0 or not text.startswith("0001")
]  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
def test_conversions_do_not_depend_on_the_session(zone: str, spark: SparkSession) -> None:
    outermost = [INFINITE_TICKS, -INFINITE_TICKS, INFINITE_TICKS - 1, 10**18, -(10**18), -62_135_596_800_000_001]
    chosen = [*MOMENTS, *outermost, *(random.Random(zone).randint(-(10**17), 10**17) for _ in range(300))]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = spark.createDataFrame([(value,) for value in chosen], "m long")
        naive, zoned = naive_from_micros(F.col("m")), F.timestamp_micros("m")
        shown = rows.select(
            "m", micros_of_naive(naive), F.unix_date(date_in_utc(zoned)), hour_in_utc(zoned), F.hour(naive)
        )
        for value, back, day, hour, of_naive in shown.collect():
            assert (back, day, hour, of_naive) == (value, value // 86_400_000_000, value // 3_600_000_000 % 24, hour)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


KEYS = (
    "bucket(16, n)", "bucket(7, z)", "hour(z)", "day(z), bucket(3, n)", "month(z), year(n)", "day(n), hour(n)", "n",
    "z", "day(d)", "year(z), hour(n)", "bucket(5, d)", "month(n), day(z)",
)  # fmt: skip
SHOWN = "id, epoch_us(n), epoch_us(z), epoch_us(d::TIMESTAMP), k"


def clock(value: int) -> str:
    return (EPOCH + timedelta(microseconds=value)).strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")


def day_of(value: int) -> int:
    return value // 86_400_000_000


def row(number: int, n: int, z: int, d: int) -> str:
    """A row in Spark's SQL, by words that mean the same in every zone."""
    return f"({number}, timestamp_ntz'{clock(n)}', timestamp'{clock(z)}+00:00', date_from_unix_date({day_of(d)}), 0)"


def judged_row(number: int, n: int, z: int, d: int) -> str:
    return f"({number}, '{clock(n)}', '{clock(z)}+00', '{clock(d)[:10]}', 0)"


def found_by_value(judge: Judge, column: str, kind: str, value: int) -> list[list[list[tuple[Any, ...]]]]:
    """The rows with a value, and those up to it, as DuckDB finds them with its pruning and without."""
    text = f"{kind} '{clock(value)}{'+00' if kind == 'TIMESTAMPTZ' else ''}'"
    conditions = [f"{column} {operator} {text}" for operator in ("=", "<=", ">")]
    answers = []
    for disabled in ("", "filter_pushdown,statistics_propagation"):
        judge.run(f"SET disabled_optimizers = '{disabled}'")
        answers.append([judge.rows(f"SELECT {SHOWN} FROM t WHERE {one} ORDER BY id") for one in conditions])
    judge.run("SET disabled_optimizers = ''")
    return answers


@pytest.mark.parametrize("keys", KEYS if ALL else [None])
@pytest.mark.parametrize("zone", ZONES)
def test_what_is_written_in_a_zone_is_found(zone: str, keys: str | None, session: Session) -> None:
    rng = random.Random(f"{zone}{keys}")
    keys = keys or KEYS[ZONES.index(zone)]
    rows = [(number, *(rng.choice(MOMENTS) for _ in range(3))) for number in range(40)]
    session.run(f"SET spark.sql.session.timeZone = {zone}")
    session.run(f"CREATE TABLE t (id int, n timestamp_ntz, z timestamp, d date, k int) PARTITIONED BY ({keys})")
    session.run(f"INSERT INTO t VALUES {', '.join(row(*one) for one in rows[:20])}")
    with session.judge() as judge:
        judge.run(f"INSERT INTO t VALUES {', '.join(judged_row(*one) for one in rows[20:])}")
    session.run("UPDATE t SET k = 1 WHERE id % 2 = 0")
    expected = [(i, n, z, day_of(d) * 86_400_000_000, 1 - i % 2) for i, n, z, d in rows]
    assert session.run("SELECT id, unix_micros(z), unix_date(d) FROM t") == sorted(
        ((i, z, day_of(d)) for i, _, z, d in rows), key=repr
    )
    with session.judge() as judge:
        assert judge.rows(f"SELECT {SHOWN} FROM t ORDER BY id") == expected
        for _, n, z, d in rng.sample(rows, 12):
            for column, kind, value in (("n", "TIMESTAMP", n), ("z", "TIMESTAMPTZ", z), ("d", "DATE", d)):
                pruned, whole = found_by_value(judge, column, kind, value)
                assert pruned == whole, (column, clock(value))
                assert pruned[0]


@pytest.mark.parametrize("zone", ZONES)
def test_partitions_are_replaced_by_the_moments_of_utc(zone: str, session: Session) -> None:
    """Rows of DuckDB's, in the partitions that a batch has rows in, go; others stay."""
    rng = random.Random(zone)
    rows = [(number, *(rng.choice(MOMENTS) for _ in range(3))) for number in range(60)]
    session.run("CREATE TABLE t (id int, n timestamp_ntz, z timestamp, d date, k int) PARTITIONED BY (day(z), hour(n))")
    with session.judge() as judge:
        judge.run(f"INSERT INTO t VALUES {', '.join(judged_row(*one) for one in rows[:50])}")
    session.run(f"SET spark.sql.session.timeZone = {zone}")
    session.run(f"INSERT OVERWRITE t PARTITION (day(z), hour(n)) VALUES {', '.join(row(*one) for one in rows[50:])}")

    def partition(one: tuple[int, ...]) -> tuple[int, int]:
        # Of a day its number within the month, as in DuckLake.
        return (EPOCH + timedelta(microseconds=one[2])).day, one[1] // 3_600_000_000 % 24

    replaced = {partition(one) for one in rows[50:]}
    left = [one[0] for one in rows[:50] if partition(one) not in replaced]
    assert len(left) < 50
    with session.judge() as judge:
        assert judge.rows("SELECT id FROM t ORDER BY id") == [(number,) for number in [*left, *range(50, 60)]]


@pytest.mark.parametrize("zone", ZONES)
def test_widened_columns_are_read_as_duckdb_reads_them(zone: str, session: Session) -> None:
    with session.judge() as judge:
        judge.run("CREATE TABLE t (id INT, a TIMESTAMP, b DATE, c TIMESTAMP_S, e TIMESTAMP_MS, k INT)")
        rows = [(at, value) for at, value in enumerate(MOMENTS)]
        values = (f"({at}, '{clock(v)}', '{clock(v)[:10]}', '{clock(v)[:19]}', '{clock(v)[:23]}', 0)" for at, v in rows)
        judge.run(f"INSERT INTO t VALUES {', '.join(values)}")
        judge.run("INSERT INTO t VALUES (-1, '-infinity', 'infinity', 'infinity', '-infinity', 0)")
        for column, kind in (("a", "TIMESTAMPTZ"), ("b", "TIMESTAMPTZ"), ("c", "TIMESTAMP"), ("e", "TIMESTAMP")):
            judge.run(f"ALTER TABLE t ALTER COLUMN {column} SET TYPE {kind}")
        judge.run("SET TimeZone = 'Europe/Stockholm'")
        judge.run("ALTER TABLE t ADD COLUMN f TIMESTAMPTZ DEFAULT '2021-06-01 12:00:00'")
        judge.run("ALTER TABLE t ADD COLUMN g TIMESTAMP DEFAULT '2021-03-28 02:30:00'")
        judge.run("SET TimeZone = 'UTC'")
        shown = "id, epoch_us(a), epoch_us(b), epoch_us(c), epoch_us(e), epoch_us(f), epoch_us(g)"
        expected = judge.rows(f"SELECT {shown} FROM t WHERE id >= 0 ORDER BY id")
        endless = judge.rows("SELECT a::VARCHAR, b::VARCHAR, c::VARCHAR, e::VARCHAR FROM t WHERE id < 0")
    session.run(f"SET spark.sql.session.timeZone = {zone}")
    naive = ", ".join(f"cast({column} as string)" for column in ("c", "e", "g"))
    found = session.run(f"SELECT id, unix_micros(a), unix_micros(b), unix_micros(f), {naive} FROM t WHERE id >= 0")
    assert [row[:4] for row in sorted(found)] == [(row[0], row[1], row[2], row[5]) for row in expected]
    for at, _, _, _, c, e, g in found:
        assert [micros(text) for text in (c, e, g)] == [expected[at][place] for place in (3, 4, 6)]
    assert session.run("UPDATE t SET k = 1") == len(MOMENTS) + 1
    with session.judge() as judge:
        assert judge.rows(f"SELECT {shown} FROM t WHERE id >= 0 ORDER BY id") == expected
        assert judge.rows("SELECT a::VARCHAR, b::VARCHAR, c::VARCHAR, e::VARCHAR FROM t WHERE id < 0") == endless


def test_plans_do_not_outlive_a_change_of_settings(session: Session) -> None:
    session.run("CREATE TABLE t AS SELECT 1 AS id", "SELECT * FROM t")
    for statement in ("SET spark.sql.session.timeZone = Asia/Tokyo", "RESET"):
        assert session.run("SELECT * FROM t") == [(1,)]
        assert session.session.shown
        session.run(statement)
        assert not session.session.shown
