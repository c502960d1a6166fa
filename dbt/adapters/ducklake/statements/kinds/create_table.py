"""CREATE [OR REPLACE] TABLE, with a query or with columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbt.adapters.ducklake.lake import Column, Snapshot, SortField, Table, Transaction, View, fold
from dbt.adapters.ducklake.spark.query import Rows, Spark, run_query
from dbt.adapters.ducklake.spark.schema import columns_from
from dbt.adapters.ducklake.spark.write import WriteSettings, as_table
from dbt.adapters.ducklake.statements.clauses import read_partitioning, read_properties, read_sorting
from dbt.adapters.ducklake.statements.defaults import declared_column
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.outcome import Outcome, written
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.types import DeclaredColumn, read_column
from dbt.adapters.ducklake.statements.writing import writing

_CODE = "CREATE TABLE"


@dataclass(frozen=True)
class CreateTable:
    """With a query, `columns` may name some of its columns, for a comment, a type or NOT NULL."""

    name: Name
    replace: bool = False
    if_not_exists: bool = False
    columns: tuple[DeclaredColumn, ...] = ()
    partitioned_by: tuple[tuple[str, str], ...] = ()
    sorted_by: tuple[SortField, ...] = ()
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None


def read_create_table(reader: Reader, is_replace: bool) -> CreateTable:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    statement = CreateTable(reader.name(), is_replace, if_not_exists)
    if reader.sees("(") and not reader.sees("(", "SELECT") and not reader.sees("(", "WITH"):
        statement = replace(statement, columns=_columns(reader))
    while not reader.is_done:
        if reader.accept("AS") or reader.sees("SELECT") or reader.sees("WITH") or reader.sees("("):
            return replace(statement, query=reader.query())
        statement = _clause(reader, statement)
    if not statement.columns:
        raise reader.unexpected("A table needs columns, or a query after AS.")
    return statement


def _columns(reader: Reader) -> tuple[DeclaredColumn, ...]:
    found: list[DeclaredColumn] = []

    def column_or_constraint() -> None:
        if reader.word().split(" ")[0] in ("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK"):
            # Stated, not enforced, as dbt tells the user of each.
            reader.text_until(",", ")")
        else:
            found.append(read_column(reader, needs_type=False))

    reader.in_parentheses(column_or_constraint)
    return tuple(found)


def _clause(reader: Reader, statement: CreateTable) -> CreateTable:
    if reader.accept("USING"):
        kind = reader.name_part()
        if fold(kind) != "ducklake":
            raise reader.unexpected("A table of a lake is USING ducklake, or says nothing.")
        return statement
    if reader.accept("PARTITIONED", "BY"):
        return replace(statement, partitioned_by=read_partitioning(reader))
    if reader.accept("SORTED", "BY"):
        return replace(statement, sorted_by=read_sorting(reader))
    if reader.accept("COMMENT"):
        return replace(statement, comment=reader.string())
    if reader.accept("TBLPROPERTIES") or reader.accept("OPTIONS"):
        return replace(statement, options=read_properties(reader))
    raise reader.unexpected(
        "After the name come columns, PARTITIONED BY, SORTED BY, COMMENT, TBLPROPERTIES, and AS with a query."
    )


def run_create_table(session: LakeSession, statement: CreateTable) -> Outcome:
    if statement.query is None:
        return _create(session, statement, None, None, None)
    with session.spark.job(f"{_CODE} {statement.name}") as spark:
        with reading(session) as found:
            base = found.of(session.whole(statement.name).lake)
            if statement.if_not_exists and _is_there(base, session, statement):
                return Outcome(_CODE)
            sql = bound(found, spark, statement.query)
        return _create(session, statement, spark, run_query(spark, sql), base, found.has_valid_text)


def create_from_rows(
    session: LakeSession, statement: CreateTable, spark: Spark, rows: Rows, has_valid_text: bool = False
) -> Outcome:
    """The same with rows that no SQL gave: a Python model's, a seed's."""
    return _create(session, statement, spark, rows, None, has_valid_text)


def _create(
    session: LakeSession, statement: CreateTable, spark: Spark | None, rows: Rows | None, base: Snapshot | None,
    has_valid_text: bool = False,
) -> Outcome:  # fmt: skip
    name = session.whole(statement.name)
    lake = session.lake(name.lake)
    if rows is None and statement.if_not_exists and _is_there(lake.snapshot(), session, statement):
        return Outcome(_CODE)
    options = lake.options().with_values(statement.options)
    if statement.sorted_by and not lake.keeps_sort_keys:
        session.warn(
            f"{statement.name} is sorted by this statement alone: metadata that are shared between tenants keep no "
            "sort keys, so what is inserted later is not sorted."
        )
    with writing(session, lake, base) as found:
        table = _made(found.transaction, session, statement, _all_columns(session, statement, rows))
        if rows is not None and spark is not None:
            values = as_table(rows, table, has_valid_text)
            found.add_rows(spark, values, table, WriteSettings.of(options, table))
    for key, value in statement.options.items():
        lake.set_option(key, value, name.schema, name.name)
    return written(_CODE, found.files, found.snapshot)


def _is_there(snapshot: Snapshot, session: LakeSession, statement: CreateTable) -> bool:
    name = session.whole(statement.name)
    return snapshot.find(name.schema, name.name) is not None


def _made(transaction: Transaction, session: LakeSession, statement: CreateTable, columns: Sequence[Column]) -> Table:
    name = session.whole(statement.name)
    if statement.replace:
        if isinstance(transaction.find(name.schema, name.name), View):
            transaction.drop_view(name.schema, name.name)
        make = transaction.replace_table
    else:
        make = transaction.create_table
    return make(name.schema, name.name, columns, statement.partitioned_by, statement.sorted_by, statement.comment)


def _all_columns(session: LakeSession, statement: CreateTable, rows: Rows | None) -> Sequence[Column]:
    """The columns of the query with what the statement says of them, or those that it declares."""
    if rows is None:
        untyped = [column.name for column in statement.columns if column.type is None]
        if untyped:
            raise NotAllowed(
                f"create table {statement.name}", f"column {untyped[0]} has no type", "Write one after its name.",
                statement.name.place,
            )  # fmt: skip
        return [declared_column(session, str(statement.name), declared) for declared in statement.columns]
    declared = {fold(column.name): column for column in statement.columns}
    given = columns_from(rows.schema)
    known = {fold(column.name) for column in given}
    missing = [column for name, column in declared.items() if name not in known]
    if required := [column.name for column in missing if column.type or not column.nullable]:
        there = ", ".join(column.name for column in given)
        raise NotAllowed(
            f"create table {statement.name}", f"its query has no column {required[0]}", f"It has: {there}.",
            statement.name.place,
        )  # fmt: skip
    if missing:
        names = ", ".join(column.name for column in missing)
        session.warn(f"The following columns are specified in the schema but are not present in the database: {names}")
    found = []
    for column in given:
        own = declared.get(fold(column.name))
        found.append(column if own is None else declared_column(session, str(statement.name), own, column))
    return found
