"""INSERT: a query's rows, by place or by name; `replace.py` runs those that take the place of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.ducklake.lake import Column, Table, fold
from dbt.adapters.ducklake.spark.query import Rows, arranged, run_query
from dbt.adapters.ducklake.spark.write import WriteSettings, as_table
from dbt.adapters.ducklake.statements.again import again_where_others_were_faster
from dbt.adapters.ducklake.statements.clauses import read_partition_key
from dbt.adapters.ducklake.statements.defaults import default_of
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.outcome import Outcome, written
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.writing import writing

_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES")


@dataclass(frozen=True)
class Partition:
    """One key of PARTITION (...): a column, and its value; without one, the partitions are those in the rows, by the
    column or a transform of it."""

    column: str
    value: str | None = None
    transform: str = "identity"


@dataclass(frozen=True)
class Replaced:
    """Which rows go as the new ones come: all; those of partitions; those with the same values in the columns `using`,
    or of the expressions `by`, and those that a condition finds, or both."""

    partition: tuple[Partition, ...] = ()
    using: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    condition: str | None = None


@dataclass(frozen=True)
class Insert:
    """`columns` are those named after the table; without them the query has all, in their order, or `by_name`. `fixed`
    are the keys of PARTITION with their values, which the query does not have."""

    name: Name
    query: str
    columns: tuple[str, ...] = ()
    by_name: bool = False
    replaced: Replaced | None = None
    alias: str | None = None
    fixed: tuple[Partition, ...] = ()


def read_insert(reader: Reader) -> Insert:
    is_overwrite = reader.accept("OVERWRITE")
    if not is_overwrite:
        reader.expect("INTO")
    reader.accept("TABLE")
    name = reader.name()
    alias = reader.name_part() if reader.accept("AS") else None
    keys = _read_partition(reader)
    replaced = Replaced(partition=keys) if is_overwrite else None
    columns: tuple[str, ...] = ()
    by_name = reader.accept("BY", "NAME")
    is_query = reader.sees("(") and any(reader.sees("(", word) for word in _QUERIES)
    if not by_name and reader.sees("(") and not is_query:
        columns = reader.in_parentheses(reader.name_part)
    if not is_overwrite and reader.accept("REPLACE"):
        replaced = _read_replaced(reader)
    if reader.word() not in (*_QUERIES, "("):
        raise reader.unexpected("Here VALUES or a query should stand.")
    fixed = tuple(key for key in keys if key.value is not None)
    return Insert(name, reader.rest(), columns, by_name, replaced, alias, fixed)


def _read_partition(reader: Reader) -> tuple[Partition, ...]:
    def one() -> Partition:
        column, transform = read_partition_key(reader)
        return Partition(column, reader.text_until(",", ")") if reader.accept("=") else None, transform)

    return reader.in_parentheses(one) if reader.accept("PARTITION") else ()


def _read_replaced(reader: Reader) -> Replaced:
    replaced = Replaced()
    if reader.accept("USING"):
        replaced = _read_keys(reader)
        if not reader.accept("WHERE"):
            return replaced
    else:
        reader.expect("WHERE")
    condition = reader.text_until("SELECT", "WITH", "FROM", "VALUES", "TABLE")
    if not condition:
        raise reader.unexpected("After WHERE a condition should stand.")
    return replace(replaced, condition=condition)


def _read_keys(reader: Reader) -> Replaced:
    """`(a, b)`, or `(concat(a, '-', b))`: columns, or expressions of both the rows that go and those that come."""
    start = reader.at
    texts = reader.in_parentheses(lambda: reader.text_until(",", ")"))
    after, reader.at = reader.at, start
    if all(len(Reader(text).tokens) == 1 for text in texts):
        return Replaced(using=reader.in_parentheses(reader.name_part))
    reader.at = after
    return Replaced(by=texts)


def run_insert(session: LakeSession, statement: Insert) -> Outcome:
    return again_where_others_were_faster(session, statement.name, lambda: _insert(session, statement))


def _insert(session: LakeSession, statement: Insert) -> Outcome:
    with session.spark.job(f"INSERT INTO {statement.name}") as spark:
        name = session.whole(statement.name)
        lake = session.lake(name.lake)
        with reading(session) as found:
            base = found.of(name.lake)
            sql = bound(found, spark, statement.query)
            options = lake.options()
        with writing(session, lake, base) as work:
            table = work.table(name, f"insert into {statement.name}", statement.name)
            rows = for_table(statement, table, run_query(spark, sql))
            values = as_table(rows, table, found.has_valid_text)
            work.add_rows(spark, values, table, WriteSettings.of(options, table))
    return written("INSERT", work.files, work.snapshot if work.files else None)


def for_table(statement: Insert, table: Table, rows: Rows) -> Rows:
    """The rows with the table's columns in their order; those that are not given have their defaults."""
    fixed = {fold(key.column): key.value for key in statement.fixed}
    given = tuple(rows.columns) if statement.by_name else statement.columns or _all_of(statement, table, rows, fixed)
    if len(given) != len(rows.columns):
        raise refused(statement, f"{len(given)} columns are named and the query has {len(rows.columns)}", table)
    places = {fold(name): place for place, name in enumerate(given)}
    check_known(statement, table, (*given, *fixed))
    if len(places) != len(given) or places.keys() & fixed.keys():
        raise refused(statement, "a column is named twice", table)

    def value(column: Column) -> int | str:
        name = fold(column.name)
        return places[name] if name in places else fixed.get(name) or default_of(column)

    return arranged(rows, list(map(value, table.columns)))


def _all_of(statement: Insert, table: Table, rows: Rows, fixed: Mapping[str, object]) -> tuple[str, ...]:
    wanted = tuple(column.name for column in table.columns if fold(column.name) not in fixed)
    if len(rows.columns) != len(wanted):
        raise refused(statement, f"the query has {len(rows.columns)} columns and the table {len(wanted)}", table)
    return wanted


def check_known(statement: Insert, table: Table, names: Sequence[str]) -> None:
    known = {fold(column.name) for column in table.columns}
    if unknown := [name for name in names if fold(name) not in known]:
        raise refused(statement, f"there is no column {unknown[0]}", table)


def refused(statement: Insert, found: str, table: Table) -> NotAllowed:
    there = ", ".join(column.name for column in table.columns)
    return NotAllowed(f"insert into {statement.name}", found, f"Its columns are: {there}.", statement.name.place)
