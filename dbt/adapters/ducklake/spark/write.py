"""A DataFrame becomes Parquet files that a commit can register. Until then nobody sees them.

Spark writes into a folder that only this write has. What comes of it is known when all tasks are done: their footers
are read, and what must not be is found there and removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnId,
    FileToAdd,
    MappedColumn,
    NameMapping,
    Options,
    Table,
    new_uuid,
)
from dbt.adapters.ducklake.spark.arrow_files import ArrowFiles, counted_leaves, schema_with_ids
from dbt.adapters.ducklake.spark.assignment import assigned, stored
from dbt.adapters.ducklake.spark.errors import FilesNotFound, NullsRefused, WriteRefused
from dbt.adapters.ducklake.spark.footers import Footer, read_footers
from dbt.adapters.ducklake.spark.own_folder import OwnFolder, own_folder
from dbt.adapters.ducklake.spark.partition import PartitionKey, hive_folder, partition_keys, values_in_path
from dbt.adapters.ducklake.spark.schema import FIELD_ID, field_of, quoted, spark_type
from dbt.adapters.ducklake.spark.statistics import LONGEST_BOUND, column_without_utf8, nulls_in, statistics_of
from dbt.adapters.ducklake.spark.storage import WHOLE_FILES, Storage, spark_path

_CODECS = {"uncompressed": "none", "lz4": "lz4_raw"}
_ARROW_CODECS = {"uncompressed": "NONE", "lz4_raw": "LZ4"}
_LEVELS = {"zstd": "parquet.compression.codec.zstd.level", "gzip": "zlib.compress.level"}
# By Spark's bloom filters, DuckDB 1.5 does not find BLOBs, and 0.0 is not -0.0. The key may end with a column's name.
_BLOOM = "parquet.bloom.filter.enabled"
OwnColumns: TypeAlias = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class WriteSettings:
    """How a table's files are written: DuckLake's options, each with the table's, its schema's or the lake's value."""

    compression: str = "snappy"
    compression_level: str | None = None
    row_group_rows: str = "122880"
    row_group_bytes: str | None = None
    version: str = "V1"
    target_file_size: int | None = None
    hive_folders: bool = True
    sort: bool = True

    @classmethod
    def of(cls, options: Options, table: Table) -> WriteSettings:
        def value(key: str) -> str | None:
            return options.value(key, table.schema.id, table.id)

        size = value("target_file_size")
        return cls(
            compression=value("parquet_compression") or cls.compression,
            compression_level=value("parquet_compression_level"),
            row_group_rows=value("parquet_row_group_size") or cls.row_group_rows,
            row_group_bytes=value("parquet_row_group_size_bytes"),
            version=value("parquet_version") or cls.version,
            target_file_size=int(size) if size else None,
            hive_folders=value("hive_file_pattern") != "false",
            sort=value("sort_on_insert") != "false",
        )

    def writer_options(self) -> Iterator[tuple[str, str]]:
        yield "compression", _CODECS.get(self.compression, self.compression)
        if self.compression_level and self.compression in _LEVELS:
            yield _LEVELS[self.compression], self.compression_level
        yield "parquet.block.row.count.limit", self.row_group_rows
        if self.row_group_bytes:
            yield "parquet.block.size", self.row_group_bytes
        yield "parquet.writer.version", "v2" if self.version == "V2" else "v1"
        yield "parquet.statistics.truncate.length", str(LONGEST_BOUND)
        yield "parquet.column.statistics.enabled", "true"
        yield _BLOOM, "false"
        yield "mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"


def write_rows(
    spark: SparkSession,
    storage: Storage,
    rows: DataFrame,
    table: Table,
    settings: WriteSettings,
    sort_by: Sequence[Expression] = (),
    own: OwnColumns = (),
) -> list[FileToAdd]:
    """Write rows, which have values of the table's columns in their order, and describe the files for a commit.

    Rows that were there before carry columns of DuckLake's own behind the table's: their ids, and the snapshots that
    they came with.

    NullsRefused where NOT NULL columns have NULLs. After any error, or a cancelled job, no file is left.
    """
    if settings.compression == "brotli":
        raise WriteRefused(str(table), "its option parquet_compression is brotli", "Spark has zstd, gzip and snappy.")
    if own:
        refuse_nanoseconds(table)
    keys = partition_keys(table)
    with own_folder(storage, table) as folder:
        with _file_size(spark, settings):
            laid_out = _laid_out(rows, table, keys, settings, sort_by, own)
            paths: set[str] | None
            names = tuple(key.name for key in keys)
            if own and needs_mapping(table.columns):
                paths = arrow_files(storage, table, names, settings, folder.path, own).write(laid_out)
            else:
                paths = run_write(storage, laid_out, names, settings, folder.path)
        found = without_others(storage, folder.parquet_files(), paths)
        # Spark writes a file even for no rows, but none where it makes folders for the keys of rows.
        if not found and not ((keys or own) and rows.isEmpty()):
            raise FilesNotFound(str(table), folder.path)
        footers = read_footers(storage, found)
        _refuse_nulls(spark, table, footers)
        _refuse_raw_text(table, footers)
        return _described(folder, table, keys, settings, footers, is_mapped=not own)


def as_table(rows: DataFrame, table: Table, has_valid_text: bool = False) -> DataFrame:
    """A query's rows, whose columns are the table's in their order, as values of the table's columns and under their
    names. `has_valid_text` as in `assigned`."""
    placed = rows.toDF(*(f"_ducklake_{place}" for place in range(len(table.columns))))
    return placed.select(
        *(
            assigned(F.col(f"_ducklake_{place}"), placed.schema[place].dataType, column, table, has_valid_text).alias(
                column.name
            )
            for place, column in enumerate(table.columns)
        )
    )


def remove_files(storage: Storage, files: Iterable[FileToAdd]) -> None:
    """Remove files that no commit registered."""
    for file in files:
        storage.remove(file.path)


def _laid_out(
    rows: DataFrame,
    table: Table,
    keys: Sequence[PartitionKey],
    settings: WriteSettings,
    sort_by: Sequence[Expression],
    own: OwnColumns,
) -> DataFrame:
    """The rows as they go to files: columns of the table's types with their ids, keys beside them, sorted."""
    # The rows' own columns by place: their names may not be the table's, and may repeat.
    rows = rows.toDF(*(f"_ducklake_{place}" for place in range(len(rows.columns))))
    columns = [
        stored(F.col(f"_ducklake_{place}"), column, table).alias(column.name, metadata={FIELD_ID: int(column.id)})
        for place, column in enumerate(table.columns)
    ]
    checked = [
        _without_nulls(value, column, table, bool(own)) for value, column in zip(columns, table.columns, strict=True)
    ]
    rows = rows.select(*checked, *own_columns(own, len(columns)))
    if keys:
        named = {column.name: F.col(quoted(column.name)) for column in table.columns}
        rows = rows.select("*", *(key.text(named[key.column.name]) for key in keys))
        rows = rows.hint("rebalance", *(F.col(key.name) for key in keys))
    elif settings.target_file_size:
        rows = rows.hint("rebalance")
    if keys and own and not (sort_by and settings.sort):
        rows = rows.sortWithinPartitions(*(F.col(key.name) for key in keys))
    if sort_by and settings.sort:
        rows = rows.sortWithinPartitions(*(F.col(key.name) for key in keys), *sort_by)
    return rows


def _without_nulls(value: Expression, column: Column, table: Table, at_once: bool) -> Expression:
    """A nested NOT NULL column fails at its first NULL (`at_once`: any column): of others the footers tell how many
    there are."""
    if column.nullable or not (column.children or at_once):
        return value
    text = f"Column {column.name} of {table} is NULL in a row, and may not be (NOT NULL)."
    checked = F.coalesce(value, F.raise_error(F.lit(text)).cast(spark_type(column)))
    return checked.alias(column.name, metadata={FIELD_ID: int(column.id)})


def refuse_nanoseconds(table: Table) -> None:
    """Rows that are written again would lose them, in columns that the statement does not even name."""
    for column in table.columns:
        if any(leaf.type.name == "timestamp_ns" for leaf in column.leaves()):
            found = f"its column {column.name} holds nanoseconds, of which Spark would keep the microseconds"
            raise WriteRefused(str(table), found, "Update its rows with DuckDB, or change the column's type.")


def own_columns(own: OwnColumns, first: int) -> list[Expression]:
    """The columns from a place on as DuckLake's own."""
    return [
        F.col(f"_ducklake_{place}").alias(name, metadata={FIELD_ID: field_id})
        for place, (name, field_id) in enumerate(own, first)
    ]


def arrow_files(
    storage: Storage, table: Table, keys: tuple[str, ...], settings: WriteSettings, folder: str, own: OwnColumns
) -> ArrowFiles:
    level = settings.compression_level
    options = {
        "compression": _ARROW_CODECS.get(settings.compression, settings.compression),
        "compression_level": int(level) if level and settings.compression in _LEVELS else None,
        "data_page_version": "2.0" if settings.version == "V2" else "1.0",
        "write_statistics": counted_leaves(table.columns),
        "store_schema": False,
    }
    schema = schema_with_ids(table.columns, own)
    return ArrowFiles(storage, folder, schema, options, int(settings.row_group_rows), keys)


def run_write(
    storage: Storage, rows: DataFrame, keys: Sequence[str], settings: WriteSettings, folder: str
) -> set[str] | None:
    """Spark's own committer leaves nothing of a task that failed: all that lies there was written (None)."""
    if storage.is_local:
        # Hadoop would make these itself, and fork a chmod for each.
        storage.make_folder(f"{folder}_temporary/0/_temporary")
    writer = rows.write.mode("append")
    for name, value in settings.writer_options():
        writer = writer.option(name, value)
    for path in _leaves_without_bloom(rows.schema):
        writer = writer.option(f"{_BLOOM}#{path}", "false")
    if keys:
        writer = writer.partitionBy(*keys)
    writer.parquet(spark_path(folder))
    return None


def _leaves_without_bloom(kind: T.DataType, path: str = "") -> Iterator[str]:
    """The paths in a Parquet file of the values that a bloom filter would hide."""
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _leaves_without_bloom(field.dataType, f"{path}{field.name}.")
    elif isinstance(kind, T.ArrayType):
        yield from _leaves_without_bloom(kind.elementType, f"{path}list.element.")
    elif isinstance(kind, T.MapType):
        yield from _leaves_without_bloom(kind.keyType, f"{path}key_value.key.")
        yield from _leaves_without_bloom(kind.valueType, f"{path}key_value.value.")
    elif isinstance(kind, T.BinaryType | T.FractionalType) and not isinstance(kind, T.DecimalType):
        yield path.removesuffix(".")


def without_others(storage: Storage, found: list[tuple[str, int]], paths: set[str] | None) -> list[tuple[str, int]]:
    """The files at these paths; the others are removed."""
    if paths is None:
        return found
    for path, _ in found:
        if path not in paths:
            storage.remove(path)
    return [(path, size) for path, size in found if path in paths]


@contextmanager
def _file_size(spark: SparkSession, settings: WriteSettings) -> Iterator[None]:
    """Rows that are shuffled before they are written are cut to the size that files shall have."""
    if settings.target_file_size is None:
        yield
        return
    with set_to(spark, "spark.sql.adaptive.advisoryPartitionSizeInBytes", f"{settings.target_file_size}b"):
        yield


@contextmanager
def set_to(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """A setting of the session, in the block."""
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.unset(key) if before is None else spark.conf.set(key, before)


def _refuse_nulls(spark: SparkSession, table: Table, footers: Sequence[Footer]) -> None:
    # Those of nested columns failed at their first NULL.
    refused = {column.id: column for column in table.columns if not column.nullable and not column.children}
    counts: Counter[str] = Counter()
    uncounted: dict[ColumnId, list[str]] = {}
    for footer in footers if refused else ():
        known = nulls_in(footer, table.columns)
        for column_id, column in refused.items():
            if column_id not in known:
                uncounted.setdefault(column_id, []).append(footer.path)
            elif known[column_id]:
                counts[column.name] += known[column_id]
    for column_id, paths in uncounted.items():
        # Statistics that a setting turned off.
        if nulls := _nulls_in_files(spark, refused[column_id], paths):
            counts[refused[column_id].name] += nulls
    if counts:
        raise NullsRefused(str(table), counts, sum(footer.metadata.num_rows for footer in footers))


def _nulls_in_files(spark: SparkSession, column: Column, paths: Sequence[str]) -> int:
    reader = spark.read.schema(T.StructType([field_of(column)])).options(**WHOLE_FILES)
    return reader.parquet(*map(spark_path, paths)).where(F.col(quoted(column.name)).isNull()).count()


def _refuse_raw_text(table: Table, footers: Sequence[Footer]) -> None:
    """What was not looked at value by value shows in the bounds, if anywhere."""
    leaves = dict(enumerate(leaf for column in table.columns for leaf in column.leaves()))
    for footer in footers:
        if (column := column_without_utf8(footer, leaves)) is not None:
            found = f"column {column} holds text that is not UTF-8, which DuckDB cannot read"
            raise WriteRefused(str(table), found, "Decode it in the query, or make it BINARY.")


def _described(
    folder: OwnFolder,
    table: Table,
    keys: Sequence[PartitionKey],
    settings: WriteSettings,
    footers: Sequence[Footer],
    is_mapped: bool,
) -> list[FileToAdd]:
    mapping = name_mapping(table.columns) if needs_mapping(table.columns) and is_mapped else None
    described: list[FileToAdd] = []
    for footer in footers:
        if footer.metadata.num_rows == 0:
            folder.storage.remove(footer.path)
            continue
        texts = values_in_path(footer.path, keys) if keys else None
        below = hive_folder(keys, texts) if texts and settings.hive_folders else ""
        described.append(
            FileToAdd(
                path=folder.keep(footer.path, f"{table.location}{below}ducklake-{new_uuid()}.parquet"),
                record_count=footer.metadata.num_rows,
                size=footer.size,
                footer_size=footer.length,
                columns=statistics_of(footer, table.columns),
                partition_values=texts,
                mapping=mapping,
                row_groups=footer.row_groups,
            )
        )
    return described


def needs_mapping(columns: Iterable[Column]) -> bool:
    """Whether Spark cannot give every part of these columns an id, so that readers must find them by name."""
    return any(part.type.name in ("list", "map") for column in columns for part in column.walk())


def name_mapping(columns: Iterable[Column]) -> NameMapping:
    return tuple(_mapped(column) for column in columns)


def _mapped(column: Column, name: str | None = None) -> MappedColumn:
    # DuckDB calls the element of a list `list` here, whatever the file calls it.
    below = tuple(_mapped(child, "list" if column.type.name == "list" else None) for child in column.children)
    return MappedColumn(name or column.name, column.id, below)
