"""Checks of a lake's rows, which read them: whatever wrote a table, DuckDB has to find and to read all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import LakeError, Snapshot, Table
from dbt.adapters.ducklake.spark.checks import misplaced_files, unreadable_texts
from dbt.adapters.ducklake.spark.errors import SparkRoomError
from dbt.adapters.ducklake.spark.query import Spark
from dbt.adapters.ducklake.spark.scan import scan
from dbt.adapters.ducklake.spark.schema import is_readable, string_literal
from dbt.adapters.ducklake.statements.names import quoted
from dbt.adapters.ducklake.statements.session import LakeSession


@dataclass(frozen=True)
class Finding:
    """Something wrong with a table's rows, and how to repair it."""

    table: str
    found: str
    repair: str


def check_rows(session: LakeSession, lake: str) -> Iterator[Finding]:
    """Read all tables of a lake at its newest snapshot."""
    snapshot = session.lake(lake).snapshot()
    for table in (table for schema in snapshot.schemas() for table in snapshot.definitions(schema.name)):
        if any(column.type.name == "unknown" or not is_readable(column) for column in table.columns):
            yield Finding(str(table), "it has a column that Spark does not read", "Look at it with DuckDB.")
            continue
        try:
            with session.spark.job(f"check {table}") as spark:
                yield from _of_table(session, lake, spark, snapshot, table)
        except (LakeError, SparkRoomError) as error:
            yield Finding(str(table), f"it cannot be read: {error}", "See what the message says.")


def _of_table(session: LakeSession, lake: str, spark: Spark, snapshot: Snapshot, table: Table) -> Iterator[Finding]:
    files, storage = snapshot.files(table), session.storage(session.lake(lake))
    name = ".".join(map(quoted, (lake, table.schema.name, table.name)))
    if files.partition_specs:
        wrong = misplaced_files(spark, storage, table, files, snapshot.id)
        if wrong:
            yield Finding(
                str(table), f"{len(wrong)} of its files have rows of another partition, such as {wrong[0]}",
                f"INSERT INTO {name} REPLACE WHERE true SELECT * FROM {name} writes them anew, in one snapshot.",
            )  # fmt: skip
    own_lake, own_schema, own_name = map(string_literal, (lake, table.schema.name, table.name))
    where = f"{own_lake}, {own_name}, schema => {own_schema}"
    rewrite = f"CALL ducklake_rewrite_data_files({where}, delete_threshold => 0)"
    for column, count in unreadable_texts(scan(spark, storage, table, files, snapshot.id), table).items():
        yield Finding(
            str(table), f"{count} rows have text in {column} that DuckDB does not read",
            f"UPDATE {name} SET {quoted(column)} = ...: text has to be UTF-8, and JSON one document without more. Then "
            f"{rewrite}, as DuckDB stumbles over deleted rows too.",
        )  # fmt: skip
