"""A statement → an outcome. A write is one snapshot, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt.adapters.ducklake.statements.doors import refuse_in_text
from dbt.adapters.ducklake.statements.kinds.alter_table import AlterTable, run_alter
from dbt.adapters.ducklake.statements.kinds.call import Call, Checkpoint, run_call, run_checkpoint
from dbt.adapters.ducklake.statements.kinds.comment import Comment, run_comment
from dbt.adapters.ducklake.statements.kinds.create_table import CreateTable, run_create_table
from dbt.adapters.ducklake.statements.kinds.delete import Delete, run_delete
from dbt.adapters.ducklake.statements.kinds.describe import Describe, Show, run_describe, run_show
from dbt.adapters.ducklake.statements.kinds.drop import Drop, Truncate, run_drop, run_truncate
from dbt.adapters.ducklake.statements.kinds.insert import Insert
from dbt.adapters.ducklake.statements.kinds.merge import Merge, run_merge
from dbt.adapters.ducklake.statements.kinds.query import Query, run_query_statement
from dbt.adapters.ducklake.statements.kinds.replace import run_insert_or_replace
from dbt.adapters.ducklake.statements.kinds.schema import CreateSchema, Use, run_create_schema, run_use
from dbt.adapters.ducklake.statements.kinds.setting import Commit, SparkCommand, run_commit, run_spark_command
from dbt.adapters.ducklake.statements.kinds.update import Update, run_update
from dbt.adapters.ducklake.statements.kinds.view import CreateView, run_create_view
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.parse import Statement, parse
from dbt.adapters.ducklake.statements.reader import statements_in
from dbt.adapters.ducklake.statements.session import LakeSession

_RUNNERS: dict[type, Callable[[LakeSession, Any], Outcome]] = {
    Query: run_query_statement,
    CreateTable: run_create_table,
    CreateView: run_create_view,
    CreateSchema: run_create_schema,
    Use: run_use,
    Insert: run_insert_or_replace,
    Update: run_update,
    Delete: run_delete,
    Merge: run_merge,
    Drop: run_drop,
    Truncate: run_truncate,
    AlterTable: run_alter,
    Comment: run_comment,
    Describe: run_describe,
    Show: run_show,
    Call: run_call,
    Checkpoint: run_checkpoint,
    SparkCommand: run_spark_command,
    Commit: run_commit,
}


def run(session: LakeSession, sql: str) -> Outcome:
    """Run a statement, or several with semicolons between, each a transaction of its own; the last one's outcome.

    A query's rows are not computed yet: whoever takes them runs the job. Errors are a StatementError, the lake's or
    Spark's own.
    """
    refuse_in_text(session, sql)
    *before, last = [parse(text) for text in statements_in(sql)]
    for statement in before:
        _run(session, statement)
    return _run(session, last)


def _run(session: LakeSession, statement: Statement) -> Outcome:
    return _RUNNERS[type(statement)](session, statement)
