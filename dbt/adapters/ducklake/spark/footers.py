"""The ends of Parquet files: what their leaf columns are stored as, and where a table's columns are in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.ducklake.lake import Column, ColumnId, ColumnType, NameMapping, decimal
from dbt.adapters.ducklake.spark.errors import UnreadableFile
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.spark.stored import NOT_IN_VARIANT, NOT_OF_VARIANT

# Footers are waited for, not computed: more threads than processors pay, and most in object stores.
_AT_ONCE = 16
_LOGICAL_INT = re.compile(r"Int\(bitWidth=(\d+), isSigned=(true|false)\)")
_LOGICAL_DECIMAL = re.compile(r"Decimal\(precision=(\d+), scale=(\d+)\)")
_LOGICAL_TIME = re.compile(r"(Time|Timestamp)\(isAdjustedToUTC=(true|false), timeUnit=(\w+)")
_PLAIN = {"BOOLEAN": "boolean", "INT32": "int32", "INT64": "int64", "FLOAT": "float32", "DOUBLE": "float64"}
_PLAIN |= {"BYTE_ARRAY": "blob", "INT96": "timestamptz", "FIXED_LEN_BYTE_ARRAY": "blob"}
_LOGICAL = {"String": "varchar", "Date": "date", "JSON": "json", "UUID": "uuid", "Interval": "interval"}
_TIMESTAMPS = {"milliseconds": "timestamp_ms", "microseconds": "timestamp", "nanoseconds": "timestamp_ns"}


@dataclass(frozen=True)
class Footer:
    path: str
    size: int
    length: int
    metadata: pq.FileMetaData

    @property
    def row_groups(self) -> int:
        return int(self.metadata.num_row_groups)


def read_footers(storage: Storage, files: Sequence[tuple[str, int]]) -> list[Footer]:
    """The footers of (path, size) pairs, in their order. UnreadableFile."""

    def one(file: tuple[str, int]) -> Footer:
        return _read(storage, *file)

    if len(files) < 4:
        return list(map(one, files))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(one, files))


def _read(storage: Storage, path: str, size: int) -> Footer:
    try:
        with storage.open(path) as file:
            metadata = pq.read_metadata(file)
            file.seek(size - 8)
            length = int.from_bytes(file.read(4), "little")
    except (OSError, pa.ArrowInvalid) as error:
        raise UnreadableFile(path, str(error).rstrip(".")) from error
    return Footer(path, size, length, metadata)


def is_list(kind: pa.DataType) -> bool:
    """A list of any of Arrow's kinds; in Parquet they are one."""
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def field_ids(footer: Footer) -> list[int | None]:
    """The ids that a file's own columns have."""
    texts = [(field.metadata or {}).get(b"PARQUET:field_id") for field in footer.metadata.schema.to_arrow_schema()]
    return [None if text is None else int(text) for text in texts]


@dataclass(frozen=True)
class FileLayout:
    """Which of a table's columns a file has, at any depth, and what its leaves are stored as."""

    present: frozenset[ColumnId]
    types: tuple[tuple[ColumnId, ColumnType], ...]


def layout_of(footer: Footer, columns: Sequence[Column], mapping: NameMapping | None) -> FileLayout:
    schema = footer.metadata.schema
    leaves = iter(range(len(schema)))
    found: dict[ColumnId, ColumnType | None] = {}
    for field in schema.to_arrow_schema():
        column, below = _column_of(field, columns, mapping)
        _walk(field, column, below, leaves, schema, found)
    types = sorted((column_id, kind) for column_id, kind in found.items() if kind is not None)
    return FileLayout(frozenset(found), tuple(types))


def _walk(
    field: pa.Field,
    column: Column | None,
    mapping: NameMapping | None,
    leaves: Iterator[int],
    schema: pq.ParquetSchema,
    found: dict[ColumnId, ColumnType | None],
) -> None:
    """Go through a field depth first, taking a leaf of the file for each leaf of the field."""
    kind = field.type
    if column is not None and column.type.name == "variant" and pa.types.is_struct(kind):
        shredded = [stored_type(schema.column(next(leaves))) for _ in _leaf_types(kind)]
        # Where a file holds such values apart from others, Spark reads none.
        found[column.id] = NOT_IN_VARIANT if any(one.name in NOT_OF_VARIANT for one in shredded) else None
        return
    if pa.types.is_struct(kind):
        parts = [(child, *_column_of(child, column.children if column else (), mapping)) for child in kind]
    elif pa.types.is_map(kind):
        key, held = column.children if column and column.type.name == "map" else (None, None)
        parts = [(kind.key_field, key, _below(mapping, 0)), (kind.item_field, held, _below(mapping, 1))]
    elif is_list(kind):
        element = column.children[0] if column and column.type.name == "list" else None
        parts = [(kind.value_field, element, _below(mapping, 0))]
    else:
        leaf = schema.column(next(leaves))
        if column is not None:
            found[column.id] = stored_type(leaf)
        return
    if column is not None:
        found[column.id] = None
    for child, of_child, mapped in parts:
        _walk(child, of_child, mapped, leaves, schema, found)


def _leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    if pa.types.is_struct(kind) or pa.types.is_map(kind) or is_list(kind):
        for place in range(kind.num_fields):
            yield from _leaf_types(kind.field(place).type)
    else:
        yield kind


def _column_of(
    field: pa.Field, columns: Sequence[Column], mapping: NameMapping | None
) -> tuple[Column | None, NameMapping | None]:
    """The column that a field is, by the mapping or by its id."""
    if mapping is None:
        text = (field.metadata or {}).get(b"PARQUET:field_id")
        return next((column for column in columns if text is not None and column.id == int(text)), None), None
    mapped = next((entry for entry in mapping if entry.name.lower() == field.name.lower()), None)
    if mapped is None:
        return None, ()
    return next((column for column in columns if column.id == mapped.field_id), None), mapped.children


def _below(mapping: NameMapping | None, place: int) -> NameMapping | None:
    if mapping is None:
        return None
    return mapping[place].children if place < len(mapping) else ()


def stored_type(leaf: pq.ColumnSchema) -> ColumnType:
    """The lake type that a file's leaf would have by itself."""
    logical = str(leaf.logical_type)
    if match := _LOGICAL_INT.match(logical):
        return ColumnType(f"{'' if match[2] == 'true' else 'u'}int{match[1]}")
    if match := _LOGICAL_DECIMAL.match(logical):
        return decimal(int(match[1]), int(match[2]))
    if match := _LOGICAL_TIME.match(logical):
        return ColumnType(_time_type(match[1], match[2] == "true", match[3]))
    return ColumnType(_LOGICAL.get(logical) or _PLAIN[leaf.physical_type])


def _time_type(kind: str, is_utc: bool, unit: str) -> str:
    if kind == "Timestamp":
        return "timestamptz" if is_utc and unit != "nanoseconds" else _TIMESTAMPS[unit]
    if unit == "nanoseconds":
        return "time_ns"
    return "timetz" if is_utc else "time"
