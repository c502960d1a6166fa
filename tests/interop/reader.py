"""Rows of a table put together from what our client says of it: a plain reader for tests.

DuckDB reads single Parquet files here and casts values; which files, which rows of them, which columns and which
defaults is our client's word alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dbt.adapters.ducklake.lake import (
    Column,
    DataFile,
    DeleteFile,
    InlinedRow,
    MappedColumn,
    Snapshot,
    Table,
    TableFiles,
)
from dbt.adapters.ducklake.lake.backends.duckdb_values import DuckDbStorage, duckdb_type
from dbt.adapters.ducklake.lake.names import fold, quoted
from dbt.adapters.ducklake.lake.snapshot.feed import TableChanges
from dbt.adapters.ducklake.spark.puffin import positions_in
from tests.judge import Judge

ROW_ID, SNAPSHOT_ID = 2147483540, 2147483539


@dataclass
class Node:
    """A column of a Parquet file."""

    name: str
    field_id: int | None
    children: list[Node] = field(default_factory=list)


def parquet_nodes(judge: Judge, path: str) -> list[Node]:
    rows = iter(judge.rows("SELECT name, field_id, coalesce(num_children, 0) FROM parquet_schema($1)", [path]))

    def node() -> Node:
        name, field_id, children = next(rows)
        return Node(name, field_id, [node() for _ in range(children)])

    return node().children


def rows_at(judge: Judge, snapshot: Snapshot, table: Table) -> list[tuple[str, ...]]:
    """All rows of a table, each value as DuckDB's text."""
    files = snapshot.files(table)
    found = [row for file in files.data_files for row in _rows_of_file(judge, snapshot, table, files, file)]
    return sorted(found + inlined_texts(judge, table, files.inlined_rows), key=repr)


def _rows_of_file(
    judge: Judge, snapshot: Snapshot, table: Table, files: TableFiles, file: DataFile
) -> list[tuple[str, ...]]:
    conditions = list(_not_deleted(judge, file.delete_file, files.inlined_deletes.get(file.id, ()), snapshot.id))
    if file.rows_up_to is not None:
        conditions.append(f"_ducklake_internal_snapshot_id <= {file.rows_up_to}")
    mapping = files.mappings[file.mapping_id] if file.mapping_id is not None else None
    return judge.rows(select_from(judge, table, file, mapping, conditions))


def select_from(
    judge: Judge,
    table: Table,
    file: DataFile,
    mapping: Sequence[MappedColumn] | None,
    conditions: Iterable[str] = (),
    lead: str = "",
) -> str:
    nodes = parquet_nodes(judge, file.path)
    shown = (f"CAST({_top_level(column, nodes, mapping)} AS VARCHAR)" for column in table.columns)
    where = " AND ".join(["true", *conditions])
    path = file.path.replace("'", "''")
    in_path = str(any(entry.is_partition for entry in mapping or ())).lower()
    source = (
        f"read_parquet('{path}', file_row_number = true, hive_partitioning = {in_path}, hive_types_autocast = false)"
    )
    return f"SELECT {lead}{', '.join(shown)} FROM {source} AS f WHERE {where}"


def _top_level(column: Column, nodes: list[Node], mapping: Sequence[MappedColumn] | None) -> str:
    return _expression(column, nodes, mapping, "f.{}")


def _expression(column: Column, nodes: list[Node], mapping: Sequence[MappedColumn] | None, place: str) -> str:
    if part := next((e for e in mapping or () if e.is_partition and e.field_id == column.id), None):
        return f"CAST({place.format(quoted(part.name))} AS {duckdb_type(column)})"
    found, below = _found(column, nodes, mapping)
    if found is None:
        return f"CAST({_text(column.initial_default)} AS {duckdb_type(column)})"
    return _value(column, found, below, place.format(quoted(found.name)))


def _found(
    column: Column, nodes: list[Node], mapping: Sequence[MappedColumn] | None
) -> tuple[Node | None, Sequence[MappedColumn] | None]:
    if mapping is None:
        return next((node for node in nodes if node.field_id == column.id), None), None
    mapped = next((entry for entry in mapping if entry.field_id == column.id), None)
    if mapped is None:
        return None, None
    return next((node for node in nodes if fold(node.name) == fold(mapped.name)), None), mapped.children


def _value(column: Column, node: Node, mapping: Sequence[MappedColumn] | None, sql: str) -> str:
    name = column.type.name
    if name == "struct":
        parts = (
            f"{quoted(child.name)} := {_expression(child, node.children, mapping, f'({sql}).{{}}')}"
            for child in column.children
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"
    if name == "list":
        element = node.children[0].children[0]
        below = mapping[0].children if mapping is not None else None
        variable = f"x{column.id}"
        inner = _value(column.children[0], element, below, variable)
        return f"list_transform({sql}, lambda {variable}: {inner})"
    if name == "map":
        variable, (key, held) = f"x{column.id}", node.children[0].children
        maps: list[Sequence[MappedColumn] | None] = (
            [entry.children for entry in mapping] if mapping is not None else [None, None]
        )
        pairs = (
            f"'key': {_value(column.children[0], key, maps[0], f'{variable}.key')}, "
            f"'value': {_value(column.children[1], held, maps[1], f'{variable}.value')}"
        )
        return f"map_from_entries(list_transform(map_entries({sql}), lambda {variable}: {{{pairs}}}))"
    return f"CAST({sql} AS {duckdb_type(column)})"


def _not_deleted(judge: Judge, delete_file: DeleteFile | None, inlined: Sequence[int], snapshot: int) -> Iterator[str]:
    if inlined:
        yield f"file_row_number NOT IN ({', '.join(map(str, inlined))})"
    if delete_file is not None:
        yield f"file_row_number NOT IN ({positions(judge, delete_file, f'<= {snapshot}')})"


def positions(judge: Judge, delete_file: DeleteFile, snapshots: str) -> str:
    """A query for the positions of a delete file; `snapshots` is a condition where it says when they were deleted."""
    if delete_file.format == "puffin":
        pairs = positions_in(delete_file.path, Path(delete_file.path).read_bytes())
        rows = ", ".join(f"({position}, {'NULL' if at is None else at})" for position, at in pairs)
        return (
            f"SELECT pos FROM (VALUES {rows}) AS deleted(pos, snapshot) WHERE snapshot IS NULL OR snapshot {snapshots}"
        )
    path = delete_file.path.replace("'", "''")
    has_snapshots = any(node.field_id == SNAPSHOT_ID for node in parquet_nodes(judge, delete_file.path))
    where = f" WHERE _ducklake_internal_snapshot_id {snapshots}" if has_snapshots else ""
    return f"SELECT pos FROM read_parquet('{path}'){where}"


def inlined_texts(judge: Judge, table: Table, rows: Sequence[InlinedRow]) -> list[tuple[str, ...]]:
    storage = DuckDbStorage()
    casts = ", ".join(
        f"CAST({storage.inlined_inserted(column, f'${place}')} AS VARCHAR)"
        for place, column in enumerate(table.columns, 1)
    )
    bound = ([storage.inlined_bound(c, v) for c, v in zip(table.columns, row.values, strict=True)] for row in rows)
    return [judge.rows(f"SELECT {casts}", values)[0] for values in bound]


def _text(value: str | None) -> str:
    if value is None:
        return "NULL"
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def insertions(judge: Judge, table: Table, changes: TableChanges) -> list[tuple[object, ...]]:
    """(snapshot, row id, values…) of all rows that came."""
    found: list[tuple[object, ...]] = []
    for inserted in changes.inserted:
        file = inserted.file
        conditions = [f"{_snapshot_of(inserted.by_row, file)} BETWEEN {changes.first} AND {changes.last}"]
        lead = f"{_snapshot_of(inserted.by_row, file)}, {_row_id(judge, file)}, "
        mapping = changes.mappings[file.mapping_id] if file.mapping_id is not None else None
        found += judge.rows(select_from(judge, table, file, mapping, conditions, lead))
    texts = inlined_texts(judge, table, changes.inlined_inserted)
    found += [(r.begin, r.row_id, *t) for r, t in zip(changes.inlined_inserted, texts, strict=True)]
    return sorted(found, key=repr)


def deletions(judge: Judge, table: Table, changes: TableChanges) -> list[tuple[object, ...]]:
    """(snapshot, row id, values…) of all rows that went."""
    found: list[tuple[object, ...]] = []

    def add(file: DataFile, snapshot: str, *conditions: str) -> None:
        mapping = changes.mappings[file.mapping_id] if file.mapping_id is not None else None
        lead = f"{snapshot}, {_row_id(judge, file)}, "
        found.extend(judge.rows(select_from(judge, table, file, mapping, conditions, lead)))

    for deleted in changes.deleted:
        for snapshot, chosen in _deleted_positions(judge, deleted.added, deleted.before, changes):
            places = ", ".join(map(str, chosen))
            add(deleted.file, str(snapshot), f"file_row_number IN ({places})")
    for ended in changes.ended:
        left_out = list(_not_deleted(judge, ended.before, ended.inlined_before, ended.snapshot))
        add(ended.file, str(ended.snapshot), *left_out)
    for file_id, pairs in changes.inlined_deletes.items():
        for position, snapshot in pairs:
            add(changes.files[file_id], str(snapshot), f"file_row_number = {position}")
    texts = inlined_texts(judge, table, changes.inlined_ended)
    found += [(r.end, r.row_id, *t) for r, t in zip(changes.inlined_ended, texts, strict=True)]
    return sorted(found, key=repr)


def _deleted_positions(
    judge: Judge, added: DeleteFile, before: DeleteFile | None, changes: TableChanges
) -> Iterator[tuple[int, list[int]]]:
    if any(node.field_id == SNAPSHOT_ID for node in parquet_nodes(judge, added.path)):
        for snapshot in range(changes.first, changes.last + 1):
            if chosen := [row[0] for row in judge.rows(positions(judge, added, f"= {snapshot}"))]:
                yield snapshot, chosen
    elif changes.first <= added.begin:
        earlier = {row[0] for row in judge.rows(positions(judge, before, "IS NOT NULL"))} if before else set()
        chosen = [row[0] for row in judge.rows(positions(judge, added, "")) if row[0] not in earlier]
        if chosen:
            yield added.begin, chosen


def _snapshot_of(by_row: bool, file: DataFile) -> str:
    return "_ducklake_internal_snapshot_id" if by_row else str(file.begin)


def _row_id(judge: Judge, file: DataFile) -> str:
    if any(node.field_id == ROW_ID for node in parquet_nodes(judge, file.path)):
        return "_ducklake_internal_row_id"
    return f"{file.row_id_start} + file_row_number"
