"""A query over a lake's tables gives what plain Spark gives over temporary views of the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.spark.session import SparkHandle, new_session
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import spark_settings

CORPUS = Path(__file__).parents[1] / "fixtures" / "queries" / "spark.sql"
TABLES = {
    "customers": """
        select * from values
            (1, 'Ada', 'Köln'), (2, 'José', null), (3, 'ben', 'Oslo'), (4, 'Chloé', 'Köln'), (5, null, 'Rome')
        as t(id, name, city)
    """,
    "orders": """
        select
            id, customer_id, status, cast(amount as decimal(10, 2)) as amount,
            timestamp'2026-01-30 22:00:00' + make_dt_interval(id) as ordered_at,
            if(id % 3 = 0, null, concat('n', id)) as note,
            if(id = 4, null, array('new', status)) as tags,
            map('k', status, 'z', null) as props,
            named_struct('x', id, 'y', amount * 1.5) as spot
        from values
            (1, 1, 'paid', 12.50), (2, 1, 'open', 30.00), (3, 2, 'paid', 99.99), (4, 3, 'refunded', 5.00),
            (5, 4, 'paid', 45.10), (6, null, 'open', 20.00), (7, 2, 'paid', 61.00)
        as t(id, customer_id, status, amount)
    """,
    "items": """
        select * from values (1, 1, 'A', 2), (1, 2, 'B', 1), (2, 1, 'A', 5), (3, 1, 'C', null), (9, 1, 'B', 4)
        as t(id, line, sku, quantity)
    """,
}


def corpus() -> Iterator[object]:
    for block in CORPUS.read_text().split("--- ")[1:]:
        title, sql = block.split("\n", 1)
        yield pytest.param(sql.strip(), id=title)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Spark without a lake: the tables are temporary views."""
    session = new_session(spark_settings(tmp_path_factory))
    for name, sql in TABLES.items():
        session.sql(sql).createOrReplaceTempView(name)
    return session


@pytest.fixture(scope="module")
def lake_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeSession]:
    folder = tmp_path_factory.mktemp("fidelity")
    with connect(LakeDescription(f"duckdb:{folder}/lake.ducklake")) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory)))
        for name, sql in TABLES.items():
            run(session, f"create table {name} as {sql}")
        yield session


@pytest.mark.parametrize("sql", list(corpus()))
def test_a_query_gives_what_plain_spark_gives(sql: str, plain: SparkSession, lake_session: LakeSession) -> None:
    expected, outcome = plain.sql(sql), run(lake_session, sql)
    assert outcome.rows is not None
    assert columns(outcome.rows) == columns(expected)
    assert rows(outcome.rows, sql) == rows(expected, sql)


def columns(found: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in found.schema.fields]


def rows(found: DataFrame, sql: str) -> list[str]:
    """The rows in their order, where the query gives one to its whole result."""
    texts = [repr(row) for row in found.collect()]
    return texts if "order by" in sql.lower().rsplit(")", 1)[-1] else sorted(texts)


def test_the_corpus_is_large() -> None:
    assert len(list(corpus())) >= 150
