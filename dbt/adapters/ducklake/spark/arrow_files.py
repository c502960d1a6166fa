"""Files with ids on the elements of lists and on the keys and values of maps, which Spark's own writer cannot give.

Rows with ids of their own must be in such files: a file whose columns are found by name cannot hold row ids. They are
written by pyarrow, in the tasks of Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.spark import storage as storage_module
from dbt.adapters.ducklake.spark.local_rows import leaf_arrow_type
from dbt.adapters.ducklake.spark.storage import Storage

# What tasks run travels with them: Spark's workers need pyarrow, and not this package.
for _module in (sys.modules[__name__], storage_module):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_FLOATS = frozenset({"float32", "float64"})


@dataclass(frozen=True)
class ArrowFiles:
    """How files are written: `options` are those of pyarrow's writer, `keys` the names of the columns behind those of
    the schema, which make folders."""

    storage: Storage
    folder: str
    schema: pa.Schema
    options: Mapping[str, Any]
    row_group_rows: int
    keys: tuple[str, ...] = ()

    def write(self, rows: DataFrame) -> set[str]:
        """Write rows that are sorted by the keys within each task; the paths of the files.

        There may be others: of a task that failed and was run again.
        """
        # By their places: Spark takes a dot in a column's name for a field of it here.
        placed = rows.toDF(*(f"_ducklake_{place}" for place in range(len(rows.columns))))
        return {row[0] for row in placed.mapInArrow(self._write_task, "path string").collect()}

    def _write_task(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        current: _OpenFile | None = None
        for batch in batches:
            for values, part in self._by_keys(batch):
                if current is None or current.values != values:
                    if current is not None:
                        yield current.close()
                    current = _OpenFile(self, values)
                current.add(part)
        if current is not None:
            yield current.close()

    def _by_keys(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
        """The runs of rows with the same keys."""
        columns = [batch.column(place).cast(field.type) for place, field in enumerate(self.schema)]
        rows = pa.Table.from_arrays(columns, schema=self.schema)
        keys = (batch.column(len(self.schema) + place).to_pylist() for place in range(len(self.keys)))
        texts = list(zip(*keys, strict=True)) or [()] * batch.num_rows
        start = 0
        for place in range(1, len(texts) + 1):
            if place == len(texts) or texts[place] != texts[start]:
                yield texts[start], rows.slice(start, place - start)
                start = place


class _OpenFile:
    def __init__(self, files: ArrowFiles, values: tuple[str, ...]) -> None:
        folders = "".join(f"{key}={quote(value, safe='')}/" for key, value in zip(files.keys, values, strict=True))
        self.values, self._files, self._kept = values, files, pa.Table.from_batches([], files.schema)
        self.path = f"{files.folder}{folders}part-{uuid4()}.parquet"
        self._stream = files.storage.create(self.path)
        self._writer = pq.ParquetWriter(self._stream, files.schema, **files.options)

    def add(self, rows: pa.Table) -> None:
        self._kept = pa.concat_tables([self._kept, rows])
        if self._kept.num_rows >= self._files.row_group_rows:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(self._kept, row_group_size=self._files.row_group_rows)
        self._kept = self._kept.slice(0, 0)

    def close(self) -> pa.RecordBatch:
        if self._kept.num_rows:
            self._flush()
        self._writer.close()
        self._stream.close()
        return pa.RecordBatch.from_arrays([pa.array([self.path])], names=["path"])


def schema_with_ids(columns: Sequence[Column], own: Sequence[tuple[str, int]]) -> pa.Schema:
    """The columns with an id on every part, and last those of DuckLake's own."""
    last = (pa.field(name, pa.int64(), metadata=_id(field_id)) for name, field_id in own)
    return pa.schema([*(_field(column, column.name) for column in columns), *last])


def counted_leaves(columns: Sequence[Column]) -> list[str]:
    """The leaves that may have statistics: of floats pyarrow's leave NaN out, and DuckDB would skip rows by them."""
    found: list[str] = []

    def walk(column: Column, path: str) -> None:
        kind = column.type.name
        if not column.children:
            found.extend([path] if kind not in _FLOATS else [])
        for place, child in enumerate(column.children):
            step = {"list": "list.element", "map": ("key_value.key", "key_value.value")[place]}.get(kind, child.name)
            walk(child, f"{path}.{step}")

    for column in columns:
        walk(column, column.name)
    return found


def _field(column: Column, name: str, nullable: bool = True) -> pa.Field:
    return pa.field(name, _type(column), nullable, metadata=_id(column.id))


def _type(column: Column) -> pa.DataType:
    if column.type.name == "struct":
        return pa.struct([_field(child, child.name) for child in column.children])
    if column.type.name == "list":
        return pa.list_(_field(column.children[0], "element"))
    if column.type.name == "map":
        key, held = column.children
        return pa.map_(_field(key, "key", nullable=False), _field(held, "value"))
    return leaf_arrow_type(column)


def _id(field_id: int) -> dict[bytes, bytes]:
    return {b"PARQUET:field_id": str(int(field_id)).encode()}
