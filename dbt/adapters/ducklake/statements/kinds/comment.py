"""COMMENT ON a table, a view or a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import View, fold
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.kinds.describe import Describe, run_describe
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.writing import table_named, writing


@dataclass(frozen=True)
class Comment:
    """`column` is the last part of a column's name, None where the comment is on the whole."""

    name: Name
    text: str | None
    column: str | None = None


def read_comment(reader: Reader) -> Comment:
    reader.expect("ON")
    is_column = reader.accept("COLUMN")
    if not is_column and not (reader.accept("TABLE") or reader.accept("VIEW")):
        raise reader.unexpected("COMMENT ON takes TABLE, VIEW or COLUMN.")
    name, column = reader.name(), None
    if is_column:
        if len(name.parts) < 2:
            raise reader.unexpected("A column is named with its table: table.column.")
        name, column = Name(name.parts[:-1], name.place), name.parts[-1]
    reader.expect("IS")
    text = None if reader.accept("NULL") else reader.string()
    reader.finish()
    return Comment(name, text, column)


def run_comment(session: LakeSession, statement: Comment) -> Outcome:
    name = session.whole(statement.name)
    with writing(session, session.lake(name.lake)) as found:
        transaction = found.transaction
        is_view = isinstance(transaction.find(name.schema, name.name), View)
        if statement.column is None:
            comment = transaction.comment_on_view if is_view else transaction.comment_on_table
            comment(name.schema, name.name, statement.text)
        elif is_view:
            is_kept = session.lake(name.lake).keeps_comments_on_columns_of_views
            whole = Name(name.parts, statement.name.place)
            column = _column_of_view(session, whole, statement.column) if is_kept else statement.column
            transaction.comment_on_view_column(name.schema, name.name, column, statement.text)
        else:
            transaction.comment_on_column(name.schema, name.name, (statement.column,), statement.text)
    return Outcome("COMMENT", snapshot=found.snapshot)


def _column_of_view(session: LakeSession, view: Name, column: str) -> str:
    """A column as its view spells it."""
    described = run_describe(session, Describe(view)).listing
    names = [str(row[0]) for row in described.rows] if described is not None else []
    found = next((name for name in names if fold(name) == fold(column)), None)
    if found is None:
        there = f"view {view} has no such column: {', '.join(names)}"
        raise NotAllowed(f"comment on column {column}", there, "Name one of them.", view.place)
    return found


def follow_comments(session: LakeSession, asked: Name, comment: str | None, columns: Mapping[str, str]) -> Outcome:
    """Give a table and its columns these comments where they have others: one snapshot, or none."""
    name = session.whole(asked)
    with writing(session, session.lake(name.lake)) as found:
        table = table_named(found.transaction, name, f"comment on {name}", asked)
        if comment is not None and comment != table.comment:
            found.transaction.comment_on_table(name.schema, name.name, comment)
        for column in table.columns:
            wanted = columns.get(fold(column.name))
            if wanted is not None and wanted != column.comment:
                found.transaction.comment_on_column(name.schema, name.name, (column.name,), wanted)
        changed = bool(found.transaction.changes)
    return Outcome("COMMENT", snapshot=found.snapshot if changed else None)
