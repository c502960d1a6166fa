"""A query: SELECT and its kin. Spark gets it letter for letter but for the names of tables."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.ducklake.spark.query import run_query
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading
from dbt.adapters.ducklake.statements.session import LakeSession

BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "MAP", "REDUCE", "EXPLAIN")


@dataclass(frozen=True)
class Query:
    sql: str


def read_query(reader: Reader) -> Query:
    return Query(reader.rest())


def run_query_statement(session: LakeSession, query: Query) -> Outcome:
    with session.spark.job(query.sql) as spark:
        with reading(session) as found:
            sql = bound(found, spark, query.sql)
        return Outcome("SELECT", rows=run_query(spark, sql))
