"""CREATE VIEW: in the lake for all its readers, or temporary for this session alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import Table, fold
from dbt.adapters.ducklake.spark.pinned import pinned
from dbt.adapters.ducklake.spark.query import Spark, query_columns, run_query, setting, show_as
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import QueryNames, TableUse, names_in, place_in, quoted, replaced
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import Reading, bound, is_of_lake, meant_by, reading, tables_in
from dbt.adapters.ducklake.statements.scopes import Located
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession
from dbt.adapters.ducklake.statements.translation.typed import Untranslatable
from dbt.adapters.ducklake.statements.translation.views import (
    SPARK_COLUMNS,
    SPARK_SQL,
    only_for_spark,
    query_for_duckdb,
    reason_of,
)
from dbt.adapters.ducklake.statements.writing import writing

_CODE = "CREATE VIEW"
# Settings that change what a query means, with the values for which views are translated.
_READ_BY = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false", "spark.sql.orderByOrdinal": "true",
    "spark.sql.groupByOrdinal": "true", "spark.sql.groupByAliases": "true",
    "spark.sql.parser.escapedStringLiterals": "false", "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "timestamp_ltz", "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
}  # fmt: skip


@dataclass(frozen=True)
class CreateView:
    """The rows of a temporary view that is `pinned` are computed now, and once."""

    name: Name
    query: str
    replace: bool = False
    temporary: bool = False
    pinned: bool = False
    if_not_exists: bool = False
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    comments_on: tuple[tuple[str, str], ...] = ()


def read_create_view(reader: Reader, is_replace: bool, is_temporary: bool) -> CreateView:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    columns: tuple[tuple[str, str | None], ...] = ()
    if reader.sees("("):

        def column() -> tuple[str, str | None]:
            own = reader.name_part()
            return own, reader.string() if reader.accept("COMMENT") else None

        columns = reader.in_parentheses(column)
    comment = None
    comments_on = tuple((own, text) for own, text in columns if text is not None)
    while reader.accept("COMMENT"):
        if reader.accept("ON", "COLUMN"):
            comments_on += reader.in_parentheses(lambda: (reader.name_part(), reader.string()))
        else:
            comment = reader.string()
    reader.expect("AS")
    return CreateView(
        name, reader.query(), is_replace, is_temporary, if_not_exists=if_not_exists, columns=columns, comment=comment,
        comments_on=comments_on,
    )  # fmt: skip


def run_create_view(session: LakeSession, statement: CreateView) -> Outcome:
    return _temporary(session, statement) if statement.temporary else _in_lake(session, statement)


def _temporary(session: LakeSession, statement: CreateView) -> Outcome:
    if len(statement.name.parts) != 1:
        raise NotAllowed(
            f"create temporary view {statement.name}", "it belongs to no lake", "Name it by one word.",
            statement.name.place,
        )  # fmt: skip
    with session.spark.job(f"{_CODE} {statement.name}") as spark:
        with reading(session) as found:
            rows = run_query(spark, bound(found, spark, statement.query))
        if statement.columns:
            rows = rows.toDF(*(name for name, _ in statement.columns))
        if statement.pinned:
            rows = pinned(rows)
        show_as(rows, statement.name.parts[0])
    own = fold(statement.name.parts[0])
    is_fixed = statement.pinned or statement.columns or own in _plain_names(statement.query)
    session.temporary[own] = None if is_fixed else statement.query
    if statement.pinned:
        session.pinned[own] = lambda: _temporary(session, statement)
    return Outcome(_CODE)


def _plain_names(query: str) -> set[str]:
    return {fold(use.name.parts[0]) for use in names_in(query).tables if len(use.name.parts) == 1}


def _in_lake(session: LakeSession, statement: CreateView) -> Outcome:
    name = session.whole(statement.name)
    lake = session.lake(name.lake)
    if statement.if_not_exists and lake.snapshot().find(name.schema, name.name) is not None:
        return Outcome(_CODE)
    made = _analysed(session, statement)
    in_duckdb = _for_duckdb(session, name, made)
    with writing(session, lake) as found:
        if statement.replace and isinstance(found.transaction.find(name.schema, name.name), Table):
            found.transaction.drop_table(name.schema, name.name)
        make = found.transaction.replace_view if statement.replace else found.transaction.create_view
        aliases = [column for column, _ in statement.columns]
        make(
            name.schema, name.name, in_duckdb or only_for_spark(str(name)), aliases, statement.comment,
            tags=[(SPARK_SQL, made.sql), (SPARK_COLUMNS, json.dumps(made.named))],
            column_comments=_comments(statement, made) if lake.keeps_comments_on_columns_of_views else (),
        )  # fmt: skip
    return Outcome(_CODE, snapshot=found.snapshot)


def _comments(statement: CreateView, made: Analysed) -> list[tuple[str, str]]:
    """The comments on columns that the view has, under the names that it gives them."""
    wanted = {fold(column): text for column, text in statement.comments_on}
    return [(name, wanted[fold(name)]) for name, _ in made.named if wanted.get(fold(name))]


@dataclass(frozen=True)
class Analysed:
    """The view's query with whole names, the names and types that Spark finds for its columns, the session's time zone,
    and a setting by which Spark reads the query in another way than usual. `named` are the columns under the names that
    the view gives them."""

    sql: str
    columns: list[tuple[str, str]]
    named: list[tuple[str, str]]
    zone: str
    unusual: str | None


def _analysed(session: LakeSession, statement: CreateView) -> Analysed:
    with session.spark.job(f"{_CODE} {statement.name}") as spark, reading(session) as found:
        columns = query_columns(spark, bound(found, spark, statement.query))
        zone = setting(spark, "spark.sql.session.timeZone", "UTC")
        changed = (key for key, usual in _READ_BY.items() if setting(spark, key, usual).lower() != usual)
        unusual = next(changed, None)
        names = names_in(statement.query)
        in_spark = _with_whole_names(found, spark, statement, names, tables_in(found, spark, statement.query, names))
    named = [name for name, _ in statement.columns] or [name for name, _ in columns]
    folded = [fold(name) for name in named]
    if twice := next((name for name in named if folded.count(fold(name)) > 1), None):
        raise NotAllowed(
            f"create view {statement.name}", f"column {twice} is there twice", "Names are compared without case.",
            statement.name.place,
        )  # fmt: skip
    if len(named) != len(columns):
        raise NotAllowed(
            f"create view {statement.name}", f"it names {len(named)} columns and its query has {len(columns)}",
            "Name them all or none.", statement.name.place,
        )  # fmt: skip
    return Analysed(
        in_spark, columns, [(name, kind) for name, (_, kind) in zip(named, columns, strict=True)], zone, unusual
    )


def _with_whole_names(
    found: Reading, spark: Spark, statement: CreateView, names: QueryNames, tables: Mapping[int, Located]
) -> str:
    """The query with every table's schema, so that it means the same to readers with another schema of their own.

    The lake's own name is left out: others attach it under another.
    """
    session, whole = found.session, {}
    home = session.whole(statement.name)
    for use in names.tables:
        if use.arguments is not None:
            continue
        _refuse_temporary(session, statement, use)
        if not is_of_lake(found, spark, use, session.lake_name):
            continue
        meant = meant_by(found, spark, use, LakeName(session.lake_name, session.schema, ""))
        is_home = fold(meant.lake) == fold(home.lake)
        parts = (meant.schema, meant.name) if is_home else meant.parts
        whole[use.start] = ".".join(map(quoted, parts)) + _travel_text(statement.query, use)
    return replaced(statement.query, names, whole, tables)


def _travel_text(query: str, use: TableUse) -> str:
    if use.travel is None:
        return ""
    kind = "VERSION" if use.travel.is_version else "TIMESTAMP"
    return f" {kind} AS OF {use.travel.expression}"


def _refuse_temporary(session: LakeSession, statement: CreateView, use: TableUse) -> None:
    if len(use.name.parts) == 1 and fold(use.name.parts[0]) in session.temporary:
        raise NotAllowed(
            f"create view {statement.name}", f"{use.name} is a temporary view, which others do not see",
            "Make it a view or table of the lake.", place_in(statement.query, use),
        )  # fmt: skip


def _for_duckdb(session: LakeSession, name: LakeName, made: Analysed) -> str | None:
    try:
        if made.unusual is not None:
            raise Untranslatable(None, f"the session's setting {made.unusual} gives the query another meaning")
        return query_for_duckdb(session.lake(name.lake).snapshot(), name.lake, made.sql, made.columns, made.zone)
    except Untranslatable as refused:
        session.warn(f"View {name} is for Spark only: {reason_of(refused)}.")
    return None
