"""A query: SELECT and its kin. Spark gets it letter for letter but for the names of tables."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.ducklake.spark.query import Rows, Spark, run_query
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.resolve import Reading, bound, reading
from dbt.adapters.ducklake.statements.session import LakeSession

BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "MAP", "REDUCE", "EXPLAIN")


@dataclass(frozen=True)
class Query:
    sql: str
    explain: str = ""


# Words that make a write of what began as a query.
_WRITES = (("INSERT", "INTO"), ("INSERT", "OVERWRITE"), ("DELETE", "FROM"), ("MERGE", "INTO"))
_EXPLAINS = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")


def read_query(reader: Reader) -> Query:
    start = reader.at
    while not reader.is_done:
        if any(reader.sees(*words) for words in _WRITES):
            raise reader.unexpected("A write begins with its own word; put the WITH into its query.")
        reader.at += 1
    reader.at = start
    explain = ""
    if reader.accept("EXPLAIN"):
        mode = next((word for word in _EXPLAINS if reader.accept(word)), "")
        explain = f"EXPLAIN {mode} "
    return Query(reader.rest(), explain)


def run_query_statement(session: LakeSession, query: Query) -> Outcome:
    with session.spark.job(query.sql) as spark:
        with reading(session) as found:
            sql = bound(found, spark, query.sql)
        return Outcome("SELECT", rows=run_query(spark, query.explain + sql))


def query_in(found: Reading, spark: Spark, sql: str) -> Rows:
    """A query at the snapshots of what was read before."""
    return run_query(spark, bound(found, spark, sql))
