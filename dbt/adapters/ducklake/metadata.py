"""What dbt asks of schemas, relations, columns and docs: answered of a snapshot, with no Spark and no SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dbt.adapters.ducklake.lake import CommitInfo, Lake, NotFound, Snapshot, Table, View, fold
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.kinds.describe import Describe, run_describe, type_text
from dbt.adapters.ducklake.statements.reader import Name
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.staged import table_as_staged
from dbt.adapters.ducklake.statements.translation.views import SPARK_COLUMNS
from dbt.adapters.ducklake.statements.writing import row_count

CATALOG_COLUMNS = (
    "table_database", "table_schema", "table_name", "table_type", "table_comment", "table_owner", "column_name",
    "column_index", "column_type", "column_comment", "stats:row_count:label", "stats:row_count:value",
    "stats:row_count:description", "stats:row_count:include", "stats:bytes:label", "stats:bytes:value",
    "stats:bytes:description", "stats:bytes:include", "stats:files:label", "stats:files:value",
    "stats:files:description", "stats:files:include", "stats:snapshot:label", "stats:snapshot:value",
    "stats:snapshot:description", "stats:snapshot:include",
)  # fmt: skip


@dataclass(frozen=True)
class RelationFound:
    schema: str
    name: str
    is_view: bool


@dataclass(frozen=True)
class ColumnFound:
    name: str
    type: str
    comment: str | None = None


def schema_names(lake: Lake) -> list[str]:
    return [schema.name for schema in lake.snapshot().schemas()]


def relations_in(lake: Lake, schema: str) -> list[RelationFound]:
    """The tables and views of a schema; none where there is no such schema, as dbt asks before it creates it."""
    with lake.reading() as snapshot:
        found = snapshot.find_schema(schema)
        if found is None:
            return []
        tables = [RelationFound(found.name, table.name, False) for table in snapshot.tables(found.name)]
        return tables + [RelationFound(found.name, view.name, True) for view in snapshot.views(found.name)]


def columns_of(session: LakeSession, parts: Sequence[str]) -> list[ColumnFound]:
    """The columns of a table or view; none where there is no such relation. Only a temporary view needs Spark."""
    name = Name(tuple(parts))
    if len(parts) == 1 and fold(parts[0]) in session.temporary:
        return columns_of_query(session, f"SELECT * FROM {quoted(parts[0])}")
    whole = session.whole(name)
    try:
        with session.lake(whole.lake).reading() as snapshot:
            there = snapshot.find(whole.schema, whole.name)
    except NotFound:
        return []
    if isinstance(there, Table):
        there = table_as_staged(session, whole, snapshot, there)
        return [ColumnFound(column.name, type_text(column), column.comment) for column in there.columns]
    if there is None:
        return []
    columns = columns_of_query(session, f"SELECT * FROM {'.'.join(map(quoted, parts))}")
    return [replace(column, comment=there.comment_on(column.name)) for column in columns]


def columns_of_query(session: LakeSession, query: str) -> list[ColumnFound]:
    """The columns of a query's rows; none is computed."""
    listing = run_describe(session, Describe(None, query)).listing
    assert listing is not None
    return [ColumnFound(name, kind, comment) for name, kind, comment in listing.rows]


def catalog_rows(lake: Lake, lake_name: str, wanted: Iterable[tuple[str, str | None]]) -> Iterator[list[Any]]:
    """The rows of the docs' catalog for (schema, relation or None for all of them) pairs."""
    by_schema: dict[str, set[str] | None] = {}
    for schema, relation in wanted:
        names = by_schema.setdefault(fold(schema), set())
        if relation is None:
            by_schema[fold(schema)] = None
        elif names is not None:
            names.add(fold(relation))
    with lake.reading() as snapshot:
        for found in snapshot.schemas():
            if fold(found.name) not in by_schema:
                continue
            names = by_schema[fold(found.name)]
            for table in snapshot.definitions(found.name):
                if names is None or fold(table.name) in names:
                    yield from _table_rows(snapshot, lake_name, table)
            for view in snapshot.views(found.name):
                if names is None or fold(view.name) in names:
                    yield from _view_rows(lake_name, view)


def _table_rows(snapshot: Snapshot, lake: str, table: Table) -> Iterator[list[Any]]:
    files = snapshot.files(table)
    size = sum(file.size for file in files.data_files)
    newest = max((file.begin for file in files.data_files), default=table.named.since)
    newest = max([newest, *(row.begin for row in files.inlined_rows)])
    stats = [
        "Rows", row_count(files), "Rows at the newest snapshot", True,
        "Bytes", size, "Bytes of its data files", True,
        "Files", len(files.data_files), "Data files at the newest snapshot", True,
        "Snapshot", newest, "The snapshot that last added rows", True,
    ]  # fmt: skip
    for place, column in enumerate(table.columns, 1):
        head = [lake, table.schema.name, table.name, "BASE TABLE", table.comment, None]
        yield [*head, column.name, place, type_text(column), column.comment, *stats]


def _view_rows(lake: str, view: View) -> Iterator[list[Any]]:
    """A view's columns are those it was made with; of a view that DuckDB made, only DuckDB knows them."""
    kept = view.tag(SPARK_COLUMNS)
    columns = json.loads(kept) if kept else [(name, "") for name in view.column_aliases]
    for place, (name, kind) in enumerate(columns, 1):
        head = [lake, view.schema.name, view.name, "VIEW", view.comment, None]
        yield [*head, name, place, kind, view.comment_on(name), *[None, None, None, False] * 4]


def last_data_change(lake: Lake, schema: str, name: str) -> datetime | None:
    """When rows of a table last changed: comments, renames and compaction do not count. None if they never did."""
    with lake.reading() as snapshot:
        if isinstance(snapshot.find(schema, name), View):
            raise NotAllowed(
                f"tell when {schema}.{name} last changed", "it is a view, of which the metadata say nothing",
                "Give the source a `loaded_at_field`.",
            )  # fmt: skip
        table = snapshot.table(schema, name)
        words = tuple(f"{word}:{table.id}" for word in _DATA_CHANGES)
        times = {one.id: one.time for one in lake.snapshots() if _mentions(one, words)}
    return times[max(times)] if times else None


_DATA_CHANGES = ("inserted_into_table", "deleted_from_table", "inlined_insert", "inlined_delete")


def _mentions(commit: CommitInfo, words: Sequence[str]) -> bool:
    changes = (commit.changes or "").split(",")
    return any(word in changes for word in words)
