"""DESCRIBE and SHOW: what the metadata say, without Spark wherever they say it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dbt.adapters.ducklake.lake import Column, ColumnType, Table, View
from dbt.adapters.ducklake.spark.query import query_columns
from dbt.adapters.ducklake.spark.schema import is_readable, spark_type
from dbt.adapters.ducklake.spark.schema import type_text as spark_text
from dbt.adapters.ducklake.statements.outcome import Listing, Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading
from dbt.adapters.ducklake.statements.session import LakeSession

_COLUMN_LIST = ("col_name", "data_type", "comment")


@dataclass(frozen=True)
class Describe:
    """A table or view by its name, or a query."""

    name: Name | None
    query: str | None = None


@dataclass(frozen=True)
class Show:
    """`kind` is TABLES, VIEWS, SCHEMAS or COLUMNS; `of` the schema, lake or table whose they are."""

    kind: str
    of: Name | None = None
    pattern: str | None = None


def read_describe(reader: Reader) -> Describe:
    reader.accept("QUERY")
    if reader.word() in ("SELECT", "WITH", "FROM", "VALUES"):
        return Describe(None, reader.rest())
    reader.accept("TABLE")
    _ = reader.accept("EXTENDED") or reader.accept("FORMATTED")
    statement = Describe(reader.name())
    reader.finish()
    return statement


def read_show(reader: Reader) -> Show:
    kind = next((word for word in ("TABLES", "VIEWS", "SCHEMAS", "DATABASES", "COLUMNS") if reader.accept(word)), None)
    if kind is None:
        raise reader.unexpected("SHOW takes TABLES, VIEWS, SCHEMAS or COLUMNS.")
    of = reader.name() if reader.accept("IN") or reader.accept("FROM") else None
    if kind == "COLUMNS" and of is None:
        raise reader.unexpected("SHOW COLUMNS IN takes a table.")
    reader.accept("LIKE")
    pattern = None if reader.is_done else reader.string()
    reader.finish()
    return Show("SCHEMAS" if kind == "DATABASES" else kind, of, pattern)


def run_describe(session: LakeSession, statement: Describe) -> Outcome:
    if statement.name is None:
        return _listing("DESCRIBE", _COLUMN_LIST, _columns_of_query(session, statement.query or ""))
    name = session.whole(statement.name)
    with session.lake(name.lake).reading() as snapshot:
        there = snapshot.find(name.schema, name.name)
        if there is None:
            snapshot.table(name.schema, name.name)
    if isinstance(there, View):
        query = "SELECT * FROM " + ".".join(f"`{part}`" for part in statement.name.parts)
        columns = _columns_of_query(session, query)
        commented = [(column, kind, there.comment_on(str(column))) for column, kind, _ in columns]
        return _listing("DESCRIBE", _COLUMN_LIST, commented)
    assert isinstance(there, Table)
    return _listing("DESCRIBE", _COLUMN_LIST, [(c.name, type_text(c), c.comment) for c in there.columns])


def run_show(session: LakeSession, statement: Show) -> Outcome:
    if statement.kind == "COLUMNS":
        assert statement.of is not None
        name = session.whole(statement.of)
        table = session.lake(name.lake).snapshot().table(name.schema, name.name)
        return _listing("SHOW", ("col_name",), [(column.name,) for column in table.columns])
    if statement.kind == "SCHEMAS":
        lake = session.lake(statement.of.parts[0] if statement.of else session.lake_name)
        names = (schema.name for schema in lake.snapshot().schemas())
        return _listing("SHOW", ("namespace",), [(name,) for name in names if _matches(name, statement.pattern)])
    return _show_relations(session, statement)


def _show_relations(session: LakeSession, statement: Show) -> Outcome:
    lake_name, of = session.schema_named(statement.of or Name((session.schema,)))
    with session.lake(lake_name).reading() as snapshot:
        schema = snapshot.schema(of).name
        views = [(schema, view.name, False) for view in snapshot.views(schema)]
        tables = [(schema, table.name, False) for table in snapshot.tables(schema)]
    found = views if statement.kind == "VIEWS" else [*tables, *views]
    own = "viewName" if statement.kind == "VIEWS" else "tableName"
    rows = sorted(row for row in found if _matches(row[1], statement.pattern))
    return _listing("SHOW", ("namespace", own, "isTemporary"), rows)


def _matches(name: str, pattern: str | None) -> bool:
    """Spark's patterns: `*` is anything, `|` separates, case does not count."""
    if pattern is None:
        return True
    return any(fnmatchcase(name.lower(), one.strip().lower()) for one in pattern.split("|"))


def _columns_of_query(session: LakeSession, query: str) -> list[tuple[Any, ...]]:
    with session.spark.job("DESCRIBE") as spark:
        with reading(session) as found:
            sql = bound(found, spark, query)
        return [(name, kind, None) for name, kind in query_columns(spark, sql)]


def type_text(column: Column) -> str:
    """A column's type as Spark spells it; DuckLake's own word where Spark has none."""
    return spark_text(spark_type(column)) if is_readable(column) else column.type.text


def _listing(code: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Outcome:
    kinds = {"isTemporary": "boolean"}
    columns = tuple(Column(name, ColumnType(kinds.get(name, "varchar"))) for name in names)
    return Outcome(code, listing=Listing(columns, tuple(rows)))
