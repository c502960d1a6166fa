"""Text → statement. What is not known is refused by name, with its line and column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from dbt.adapters.ducklake.statements.kinds.alter_table import AlterTable, read_alter
from dbt.adapters.ducklake.statements.kinds.call import Call, Checkpoint, read_call, read_checkpoint
from dbt.adapters.ducklake.statements.kinds.comment import Comment, read_comment
from dbt.adapters.ducklake.statements.kinds.create_table import CreateTable, read_create_table
from dbt.adapters.ducklake.statements.kinds.delete import Delete, read_delete
from dbt.adapters.ducklake.statements.kinds.describe import Describe, Show, read_describe, read_show
from dbt.adapters.ducklake.statements.kinds.drop import Drop, Truncate, read_drop, read_truncate
from dbt.adapters.ducklake.statements.kinds.insert import Insert, read_insert
from dbt.adapters.ducklake.statements.kinds.merge import Merge, read_merge
from dbt.adapters.ducklake.statements.kinds.query import BEGINNINGS, Query, read_query
from dbt.adapters.ducklake.statements.kinds.schema import (
    CreateSchema,
    Use,
    read_create_schema,
    read_use,
)
from dbt.adapters.ducklake.statements.kinds.setting import Commit, SparkCommand, read_commit, read_spark_command
from dbt.adapters.ducklake.statements.kinds.update import Update, read_update
from dbt.adapters.ducklake.statements.kinds.view import CreateView, read_create_view
from dbt.adapters.ducklake.statements.reader import Reader

Statement: TypeAlias = (
    Query | CreateTable | CreateView | CreateSchema | Use | Insert | Update | Delete | Merge
    | Drop | Truncate | AlterTable | Comment | Describe
    | Show | Call | Checkpoint | SparkCommand | Commit
)  # fmt: skip

_READERS: dict[str, Callable[[Reader], Statement]] = {
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
    "DROP": read_drop,
    "TRUNCATE": read_truncate,
    "ALTER": read_alter,
    "COMMENT": read_comment,
    "DESCRIBE": read_describe,
    "DESC": read_describe,
    "SHOW": read_show,
    "CALL": read_call,
    "CHECKPOINT": read_checkpoint,
    "USE": read_use,
    "COMMIT": read_commit,
    "SET": lambda reader: read_spark_command(reader, "SET"),
    "RESET": lambda reader: read_spark_command(reader, "RESET"),
}


def parse(sql: str) -> Statement:
    reader = Reader(sql)
    if reader.is_done:
        raise reader.unexpected("Here a statement should stand.")
    first = reader.word()
    if first == "WITH" and (before := _ctes_before(reader, "INSERT")):
        statement = read_insert(reader)
        return replace(statement, query=f"{before}\n{statement.query}")
    if first in BEGINNINGS:
        return read_query(reader)
    if first == "CREATE":
        return _read_create(reader)
    for word, read in _READERS.items():
        if reader.accept(word):
            return read(reader)
    raise reader.unexpected(
        "There are queries, CREATE, INSERT, UPDATE, DELETE, MERGE, ALTER, DROP, TRUNCATE, COMMENT ON, DESCRIBE, SHOW, "
        "USE, SET, CALL and CHECKPOINT."
    )


def _ctes_before(reader: Reader, verb: str) -> str | None:
    """The CTEs that stand before a verb, behind which the reader stands then; None where something else comes."""
    start = reader.at
    reader.expect("WITH")
    reader.text_until("SELECT", "FROM", "VALUES", "TABLE", "MERGE", "UPDATE", "DELETE", verb)
    before = reader.between(start, reader.at)
    if reader.accept(verb):
        return before
    if reader.word() in ("MERGE", "UPDATE", "DELETE"):
        raise reader.unexpected("WITH stands before queries and INSERT. Put it into a subquery of the statement.")
    reader.at = start
    return None


def _read_create(reader: Reader) -> Statement:
    reader.expect("CREATE")
    is_replace = reader.accept("OR", "REPLACE")
    if reader.accept("TABLE"):
        return read_create_table(reader, is_replace)
    is_temporary = reader.accept("GLOBAL", "TEMPORARY") or reader.accept("TEMPORARY") or reader.accept("TEMP")
    if is_temporary and reader.word() == "FUNCTION":
        return read_spark_command(reader, "CREATE FUNCTION")
    if reader.accept("VIEW"):
        return read_create_view(reader, is_replace, is_temporary)
    if reader.accept("SCHEMA") or reader.accept("DATABASE"):
        return read_create_schema(reader)
    raise reader.unexpected("CREATE takes TABLE, VIEW, TEMPORARY VIEW, TEMPORARY FUNCTION or SCHEMA.")
