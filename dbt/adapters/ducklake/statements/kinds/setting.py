"""SET and RESET of Spark's own settings, and what else is Spark's alone: it touches no lake."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.ducklake.spark.query import run_query
from dbt.adapters.ducklake.spark.session import CATALOGS, is_required
from dbt.adapters.ducklake.statements.doors import refuse, refuse_setting, words_in
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.session import LakeSession


@dataclass(frozen=True)
class SparkCommand:
    code: str
    sql: str


@dataclass(frozen=True)
class Commit:
    """What dbt sends before hooks outside of a transaction. All that came before is committed already."""


def read_commit(reader: Reader) -> Commit:
    reader.finish()
    return Commit()


def run_commit(session: LakeSession, statement: Commit) -> Outcome:
    return Outcome("COMMIT")


def read_spark_command(reader: Reader, code: str) -> SparkCommand:
    reader.rest()
    return SparkCommand(code, reader.sql)


def run_spark_command(session: LakeSession, statement: SparkCommand) -> Outcome:
    key = _key(statement.sql)
    if statement.code == "CREATE FUNCTION" and {"SELECT", "FROM", "TABLE"} & set(words_in(statement.sql)):
        # Spark would look for what it reads, past the lakes.
        refuse(session, CATALOGS)
    if statement.code == "SET":
        refuse_setting(session, key)
    if key is not None and is_required(key):
        raise NotAllowed(f"{statement.code} {key}", "the lake's files are read and written by it", "Leave it as it is.")
    session.changed_settings = True
    session.has_functions |= statement.code == "CREATE FUNCTION"
    with session.spark.job(statement.code) as spark:
        rows = run_query(spark, statement.sql)
    if statement.code == "RESET":
        session.spark.settle()
    session.forget_plans()
    return Outcome(statement.code, rows=rows)


def _key(sql: str) -> str | None:
    """The setting that SET or RESET names."""
    reader = Reader(sql)
    if not (reader.accept("SET") or reader.accept("RESET")) or reader.is_done:
        return None
    return reader.text_until("=").strip().strip("`").split()[0]
