"""Schemas, tables and views as the metadata rows of one snapshot say them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeVar

from dbt.adapters.ducklake.lake.columns import Column, Default
from dbt.adapters.ducklake.lake.definitions import (
    Macro,
    PartitionField,
    Partitioning,
    Schema,
    SortField,
    Table,
    TableName,
    View,
)
from dbt.adapters.ducklake.lake.errors import InvalidMetadata
from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.lake.names import (
    ColumnId,
    SchemaId,
    SnapshotId,
    TableId,
    exact_path,
    fold,
    path_in,
    path_text,
    quoted,
)
from dbt.adapters.ducklake.lake.paths import stored_path
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.types import type_from_text

T = TypeVar("T")

# In every query here $1 is the snapshot.
VISIBLE = "begin_snapshot <= $1 AND (end_snapshot IS NULL OR end_snapshot > $1)"
# lower() differs between databases beyond A to Z, but never tells apart what DuckLake compares as equal.
NAMED = "lower({}) = lower($2)"

# Which tables to load: one, or all of a schema.
OF_TABLE = "= $2"
OF_SCHEMA = f"IN (SELECT table_id FROM {{table}} WHERE schema_id = $2 AND {VISIBLE})"


def is_visible(row: tables.Column | tables.Tag, snapshot: int) -> bool:
    return row.begin_snapshot <= snapshot and (row.end_snapshot is None or row.end_snapshot > snapshot)


def load_schemas(session: MetadataSession, snapshot: SnapshotId, name: str | None = None) -> tuple[Schema, ...]:
    """All schemas, or those that may have a name; where they may lie in others, all."""
    where, values = f"WHERE {VISIBLE}", [snapshot]
    if name is not None and not session.layout.nests_schemas:
        return _schemas(session.read(tables.Schema, f"{where} AND {NAMED.format('schema_name')}", *values, name), False)
    rows = session.read(tables.Schema, f"{where} ORDER BY schema_id", *values)
    return _schemas(rows, session.layout.nests_schemas)


def _schemas(rows: Iterable[tables.Schema], nests: bool) -> tuple[Schema, ...]:
    by_id = {row.schema_id: row for row in rows}
    paths = {id: path for id in by_id if (path := _path_of(by_id, id)) is not None}
    taken = {fold(path[0]) for path in paths.values() if len(path) == 1}
    return tuple(
        Schema(
            id=SchemaId(id),
            uuid=by_id[id].schema_uuid,
            name=schema_name(path, taken) if nests else path[0],
            path=stored_path(by_id[id].path, by_id[id].path_is_relative),
            since=SnapshotId(by_id[id].begin_snapshot),
            parts=path,
            parent=None if by_id[id].parent_schema_id is None else SchemaId(by_id[id].parent_schema_id or 0),
        )
        for id, path in paths.items()
    )


def schema_name(parts: tuple[str, ...], taken: Container[str]) -> str:
    """What a schema is found by, beside those at the top, which may have dots in their names (`taken`, folded)."""
    if len(parts) == 1:
        # One that would be taken apart is found in quotes.
        return exact_path(parts) if parts[0] == exact_path(path_in(parts[0])) else parts[0]
    name = path_text(parts)
    return ".".join(map(quoted, parts)) if fold(name) in taken else name


def _path_of(rows: Mapping[int, tables.Schema], id: int) -> tuple[str, ...] | None:
    """The names from the top down to a schema. None where one above it is no more: then neither is it."""
    path: list[str] = []
    at: int | None = id
    while at is not None:
        if at not in rows:
            return None
        if len(path) > len(rows):
            raise InvalidMetadata(f"schema {rows[id].schema_name} lies within itself", "DuckDB cannot read it either.")
        path.insert(0, rows[at].schema_name)
        at = rows[at].parent_schema_id
    return tuple(path)


def load_table_names(
    session: MetadataSession, snapshot: SnapshotId, schema: Schema, name: str | None = None
) -> tuple[TableName, ...]:
    if name is not None:
        rest = f"WHERE {VISIBLE} AND {NAMED.format('table_name')} AND schema_id = $3"
        rows = session.read(tables.Table, rest, snapshot, name, schema.id)
    else:
        rest = f"WHERE {VISIBLE} AND schema_id = $2 ORDER BY table_id"
        rows = session.read(tables.Table, rest, snapshot, schema.id)
    return tuple(
        TableName(
            id=TableId(row.table_id),
            uuid=row.table_uuid,
            schema=schema,
            name=row.table_name,
            path=stored_path(row.path, row.path_is_relative),
            since=SnapshotId(row.begin_snapshot),
        )
        for row in rows
    )


def load_views(
    session: MetadataSession, snapshot: SnapshotId, schema: Schema, name: str | None = None
) -> tuple[View, ...]:
    if name is not None:
        rest = f"WHERE {VISIBLE} AND {NAMED.format('view_name')} AND schema_id = $3"
        rows = session.read(tables.View, rest, snapshot, name, schema.id)
    else:
        rest = f"WHERE {VISIBLE} AND schema_id = $2 ORDER BY view_id"
        rows = session.read(tables.View, rest, snapshot, schema.id)
    if not rows:
        return ()
    of_schema = f"(SELECT view_id FROM {{view}} WHERE schema_id = $2 AND {VISIBLE})"
    tags = session.read(tables.Tag, f"WHERE {VISIBLE} AND object_id IN {of_schema}", snapshot, schema.id)
    column_comments = _comments_on_columns(session, of_schema, snapshot, schema)
    comments = _comments(tags, lambda tag: tag.object_id)
    others: dict[int, tuple[tuple[str, str], ...]] = defaultdict(tuple)
    for tag in tags:
        if tag.key != "comment" and tag.value is not None:
            others[tag.object_id] += ((tag.key, tag.value),)
    return tuple(
        View(
            id=TableId(row.view_id),
            uuid=row.view_uuid,
            schema=schema,
            name=row.view_name,
            sql=row.sql,
            dialect=row.dialect or "duckdb",
            column_aliases=aliases_from_text(row.column_aliases),
            comment=comments.get(row.view_id),
            tags=tuple(sorted(others[row.view_id])),
            column_comments=tuple(sorted(column_comments[row.view_id])),
        )
        for row in rows
    )


def _comments_on_columns(
    session: MetadataSession, of_schema: str, snapshot: SnapshotId, schema: Schema
) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    if session.layout.has(tables.ViewColumnTag):
        where = f"WHERE {VISIBLE} AND view_id IN {of_schema}"
        for tag in session.read(tables.ViewColumnTag, where, snapshot, schema.id):
            if tag.key == "comment" and tag.value is not None:
                found[tag.view_id].append((tag.column_name, tag.value))
    return found


def load_macros(session: MetadataSession, snapshot: SnapshotId, schema: Schema) -> tuple[Macro, ...]:
    rows = session.read(tables.Macro, f"WHERE {VISIBLE} AND schema_id = $2 ORDER BY macro_id", snapshot, schema.id)
    if not rows:
        return ()
    kinds = {impl.macro_id: impl.type for impl in session.read(tables.MacroImpl)}
    return tuple(
        Macro(row.macro_id, row.macro_name, is_of_tables=kinds.get(row.macro_id, "").lower() == "table") for row in rows
    )


def load_tables(
    session: MetadataSession, snapshot: SnapshotId, names: Sequence[TableName], data_path: str, which: str, value: int
) -> tuple[Table, ...]:
    """Whole definitions of the tables that `which` (OF_TABLE or OF_SCHEMA, of `value`) selects, named by `names`."""
    all_columns = _by(session.read(tables.Column, f"WHERE table_id {which} AND begin_snapshot <= $1", snapshot, value))
    column_tags = session.read(tables.ColumnTag, f"WHERE {VISIBLE} AND table_id {which}", snapshot, value)
    column_comments = _comments(column_tags, lambda tag: (tag.table_id, tag.column_id))
    tags = session.read(tables.Tag, f"WHERE {VISIBLE} AND object_id {which}", snapshot, value)
    comments = _comments(tags, lambda tag: tag.object_id)
    partitionings = _partitionings(session, snapshot, which, value)
    sorts = _sorts(session, snapshot, which, value)
    return tuple(
        Table(
            named=named,
            columns=columns_from_rows(
                [row for row in all_columns[named.id] if is_visible(row, snapshot)],
                {column: text for (table, column), text in column_comments.items() if table == named.id},
            ),
            location=named.path.under(named.schema.path.under(data_path)),
            partitioning=partitionings.get(named.id),
            sort=sorts.get(named.id, ()),
            comment=comments.get(named.id),
            next_column_id=1 + max((row.column_id for row in all_columns[named.id]), default=0),
        )
        for named in names
    )


def columns_from_rows(rows: Iterable[tables.Column], comments: dict[int, str] | None = None) -> tuple[Column, ...]:
    below: dict[int | None, list[tables.Column]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.column_order, row.column_id)):
        below[row.parent_column].append(row)

    def column(row: tables.Column) -> Column:
        return Column(
            name=row.column_name,
            type=type_from_text(row.column_type),
            children=tuple(column(child) for child in below[row.column_id]),
            nullable=row.nulls_allowed,
            default=Default(
                None if row.default_value in (None, "NULL") else row.default_value,
                row.default_value_type or "",
                row.default_value_dialect,
            ),
            initial_default=row.initial_default,
            comment=(comments or {}).get(row.column_id),
            id=ColumnId(row.column_id),
            order=row.column_order,
            since=row.begin_snapshot,
        )

    return tuple(column(row) for row in below[None])


_ALIAS = re.compile(r'"((?:[^"]|"")*)"')


def aliases_from_text(text: str | None) -> tuple[str, ...]:
    """Column aliases of a view: `"a","b c"`, the empty text for none."""
    return tuple(alias.replace('""', '"') for alias in _ALIAS.findall(text or ""))


def aliases_text(aliases: Iterable[str]) -> str:
    return ",".join('"' + alias.replace('"', '""') + '"' for alias in aliases)


def _by(rows: Iterable[tables.Column]) -> dict[int, list[tables.Column]]:
    grouped: dict[int, list[tables.Column]] = defaultdict(list)
    for row in rows:
        grouped[row.table_id].append(row)
    return grouped


Tagged = TypeVar("Tagged", tables.Tag, tables.ColumnTag)


def _comments(tags: Iterable[Tagged], key: Callable[[Tagged], T]) -> dict[T, str]:
    return {key(tag): tag.value for tag in tags if tag.key == "comment" and tag.value is not None}


def _partitionings(session: MetadataSession, snapshot: SnapshotId, which: str, value: int) -> dict[int, Partitioning]:
    infos = session.read(tables.PartitionInfo, f"WHERE {VISIBLE} AND table_id {which}", snapshot, value)
    if not infos:
        return {}
    rows = session.read(
        tables.PartitionColumn,
        "WHERE partition_id IN (SELECT partition_id FROM {partition_info} "
        f"WHERE {VISIBLE} AND table_id {which}) ORDER BY partition_id, partition_key_index",
        snapshot,
        value,
    )
    found: dict[int, Partitioning] = {}
    for row in rows:
        earlier = found.get(row.table_id, Partitioning(row.partition_id, ()))
        if earlier.id != row.partition_id:
            raise InvalidMetadata(f"table {row.table_id} has two partition specs at once", "End one of them.")
        fields = (*earlier.fields, PartitionField(ColumnId(row.column_id), row.transform))
        found[row.table_id] = Partitioning(row.partition_id, fields)
    return found


def _sorts(session: MetadataSession, snapshot: SnapshotId, which: str, value: int) -> dict[int, tuple[SortField, ...]]:
    if not session.read(tables.SortInfo, f"WHERE {VISIBLE} AND table_id {which}", snapshot, value):
        return {}
    rows = session.read(
        tables.SortExpression,
        "WHERE sort_id IN (SELECT sort_id FROM {sort_info} "
        f"WHERE {VISIBLE} AND table_id {which}) ORDER BY sort_id, sort_key_index",
        snapshot,
        value,
    )
    found: dict[int, tuple[SortField, ...]] = {}
    for row in rows:
        is_descending, nulls_first = row.sort_direction.upper() == "DESC", row.null_order.upper() == "NULLS_FIRST"
        field = SortField(row.expression, is_descending, nulls_first, row.dialect)
        found[row.table_id] = (*found.get(row.table_id, ()), field)
    return found
