"""Parquet files as our writers will make them: field ids on every column, described for a transaction."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.ducklake.lake import Column, ColumnStatistics, DeletesToAdd, FileId, FileToAdd, SnapshotId, Table

_ARROW = {"int32": pa.int32(), "int64": pa.int64(), "varchar": pa.string(), "float64": pa.float64()}
_FILE_PATH, _POSITION, _SNAPSHOT = 2147483646, 2147483645, 2147483539


def write_file(table: Table, rows: Sequence[tuple[object, ...]]) -> FileToAdd:
    """A data file of a table with plain columns, and exact statistics."""
    schema = pa.schema([_field(column.name, _ARROW[column.type.name], column.id) for column in table.columns])
    arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    path = Path(table.location) / f"ducklake-{uuid.uuid4()}.parquet"
    size, footer = _written(path, pa.Table.from_arrays(arrays, schema=schema))
    columns = {column.id: _statistics([row[place] for row in rows]) for place, column in enumerate(table.columns)}
    return FileToAdd(str(path), len(rows), size, footer, columns)


def write_deletes(
    table: Table,
    data_file: FileId,
    deleted: Sequence[tuple[int, int]],
    replaces: FileId | None = None,
    embed_snapshots: bool = False,
) -> DeletesToAdd:
    """A delete file of (position, snapshot) pairs, with the snapshots in it or without."""
    ordered = sorted(deleted)
    fields = [_field("file_path", pa.string(), _FILE_PATH), _field("pos", pa.int64(), _POSITION)]
    arrays = [pa.array(["x"] * len(ordered)), pa.array([position for position, _ in ordered], pa.int64())]
    if embed_snapshots:
        fields.append(_field("_ducklake_internal_snapshot_id", pa.int64(), _SNAPSHOT))
        arrays.append(pa.array([snapshot for _, snapshot in ordered], pa.int64()))
    path = Path(table.location) / f"ducklake-{uuid.uuid4()}-delete.parquet"
    size, footer = _written(path, pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
    snapshots = [snapshot for _, snapshot in ordered]
    spans = (SnapshotId(min(snapshots)), SnapshotId(max(snapshots))) if embed_snapshots else None
    return DeletesToAdd(data_file, str(path), len(ordered), size, footer, replaces, spans)


def _field(name: str, type_: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(field_id)})


def _written(path: Path, rows: pa.Table) -> tuple[int, int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    # pyarrow's own statistics leave NaN out of the bounds, and DuckDB would pass over the rows that have it.
    pq.write_table(rows, path, write_statistics=False)
    content = path.read_bytes()
    return len(content), int.from_bytes(content[-8:-4], "little")


def _statistics(values: Sequence[object]) -> ColumnStatistics:
    present = [value for value in values if value is not None]
    nulls = len(values) - len(present)
    if not present:
        return ColumnStatistics(0, nulls)
    return ColumnStatistics(len(present), nulls, min(present), max(present), size=1)  # type: ignore[type-var]


def plain(*names: str) -> list[Column]:
    from dbt.adapters.ducklake.lake.columns import scalar

    return [scalar(name, "int64") for name in names]
