"""INSERT INTO a table: a query's rows, by place or by name."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.ducklake.lake import Table, fold
from dbt.adapters.ducklake.spark.query import Rows, arranged, run_query
from dbt.adapters.ducklake.spark.write import WriteSettings
from dbt.adapters.ducklake.statements.defaults import default_of
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.outcome import Outcome, written
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.writing import table_named, writing

_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES")


@dataclass(frozen=True)
class Insert:
    """`columns` are those named after the table; without them the query has all, in their order, or `by_name`."""

    name: Name
    query: str
    columns: tuple[str, ...] = ()
    by_name: bool = False


def read_insert(reader: Reader) -> Insert:
    if reader.sees("OVERWRITE"):
        raise reader.unexpected("INSERT OVERWRITE comes in a later version. Rebuild the table, or use INSERT INTO.")
    reader.expect("INTO")
    reader.accept("TABLE")
    name = reader.name()
    columns: tuple[str, ...] = ()
    by_name = reader.accept("BY", "NAME")
    is_query = reader.sees("(") and any(reader.sees("(", word) for word in _QUERIES)
    if not by_name and reader.sees("(") and not is_query:
        columns = reader.in_parentheses(reader.name_part)
    if reader.word() not in (*_QUERIES, "("):
        raise reader.unexpected("Here VALUES or a query should stand.")
    return Insert(name, reader.rest(), columns, by_name)


def run_insert(session: LakeSession, statement: Insert) -> Outcome:
    with session.spark.job(f"INSERT INTO {statement.name}") as spark:
        name = session.whole(statement.name)
        lake = session.lake(name.lake)
        with reading(session) as found:
            base = found.of(name.lake)
            sql = bound(found, spark, statement.query)
            options = lake.options()
        with writing(session, lake, base) as work:
            table = table_named(work.transaction, name, f"insert into {statement.name}", statement.name)
            rows = _for_table(statement, table, run_query(spark, sql))
            work.add_rows(spark, rows, table, WriteSettings.of(options, table))
    return written("INSERT", work.files, work.snapshot)


def _for_table(statement: Insert, table: Table, rows: Rows) -> Rows:
    """The rows with the table's columns in their order; those that are not given have their defaults."""
    given = tuple(rows.columns) if statement.by_name else statement.columns or _all_of(statement, table, rows)
    if len(given) != len(rows.columns):
        raise _refused(statement, f"{len(given)} columns are named and the query has {len(rows.columns)}", table)
    places = {fold(name): place for place, name in enumerate(given)}
    if unknown := [name for name in given if fold(name) not in {fold(column.name) for column in table.columns}]:
        raise _refused(statement, f"there is no column {unknown[0]}", table)
    if len(places) != len(given):
        raise _refused(statement, "a column is named twice", table)
    return arranged(rows, [places.get(fold(column.name), default_of(column)) for column in table.columns])


def _all_of(statement: Insert, table: Table, rows: Rows) -> tuple[str, ...]:
    if len(rows.columns) != len(table.columns):
        raise _refused(
            statement, f"the query has {len(rows.columns)} columns and the table {len(table.columns)}", table
        )
    return tuple(column.name for column in table.columns)


def _refused(statement: Insert, found: str, table: Table) -> NotAllowed:
    there = ", ".join(column.name for column in table.columns)
    return NotAllowed(f"insert into {statement.name}", found, f"Its columns are: {there}.", statement.name.place)
