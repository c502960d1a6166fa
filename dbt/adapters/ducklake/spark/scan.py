"""A table at a snapshot, as a DataFrame. Spark reads the Parquet; no row goes through Python but inlined ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnId,
    ColumnType,
    DataFile,
    FileId,
    MappedColumn,
    NameMapping,
    SnapshotId,
    Table,
    TableFiles,
)
from dbt.adapters.ducklake.spark.deleted import HIDDEN, file_number, without_deleted
from dbt.adapters.ducklake.spark.errors import UnsupportedType, WriteRefused
from dbt.adapters.ducklake.spark.footers import FileLayout, layout_of, read_footers
from dbt.adapters.ducklake.spark.literals import literal_of_text
from dbt.adapters.ducklake.spark.local_rows import dataframe_of, keys_dataframe
from dbt.adapters.ducklake.spark.schema import (
    ABSENT_FIELD_ID,
    FIELD_ID,
    REFUSED,
    ROW_ID_FIELD_ID,
    SNAPSHOT_COLUMN,
    SNAPSHOT_FIELD_ID,
    is_readable,
    quoted,
    spark_type,
)
from dbt.adapters.ducklake.spark.storage import WHOLE_FILES, Storage, file_uri, spark_path
from dbt.adapters.ducklake.spark.stored import AMBIGUOUS, StoredTypes, converted, needs_conversion, read_field

# What a row of a file is and when it came, beside the table's columns.
POSITION, ROW_ID, ROW_SNAPSHOT = "_ducklake_position", "_ducklake_row_id", "_ducklake_row_snapshot"
# Which file a row lies in, as a number that one scan gives it; inlined rows lie in none.
FILE, INLINED = "_ducklake_file", -1
# Characters whose lower case is another one for Java, or which it takes for that of another.
_JAVA_LOWER = {"İ": "i", "ı": "i", "ſ": "s"}
# In place of a group's number: FILE is a hash of the file's path, which costs less than a number for each row.
HASHED = -1


@dataclass(frozen=True)
class _Group:
    """Files that are read in one go, as all that matters for reading is the same in them."""

    mapping: FileId | None
    layout: FileLayout | None
    partition: tuple[tuple[ColumnId, str | None], ...]
    rows_up_to: SnapshotId | None
    has_deletes: bool
    # Above 0 where two files of a group would share a number in the join with deleted positions.
    collision: int = 0


@dataclass(frozen=True)
class Placed:
    """A table's rows with the place of each beside its columns: FILE, POSITION, and ROW_ID and ROW_SNAPSHOT where the
    file holds them.

    `files` are the data files by their numbers in FILE; POSITION of an inlined row is its place in `inlined_rows`.
    """

    rows: DataFrame
    files: Mapping[int, DataFile]
    of_table: TableFiles
    snapshot: SnapshotId


def scan_placed(spark: SparkSession, storage: Storage, table: Table, files: TableFiles, snapshot: SnapshotId) -> Placed:
    """The rows of a table with their places, for statements that change them. Every column must be one Spark reads."""
    _refuse_unreadable(table)
    groups = _grouped(storage, files, table.columns, are_placed=True)
    numbers: dict[int, DataFile] = {}
    parts = []
    for ordinal, (group, members) in enumerate(groups.items()):
        numbers |= {_file_in_group(ordinal, file): file for file in members}
        parts.append(_read_group(spark, storage, table, files, snapshot, group, members, table.columns, ordinal))
    if files.inlined_rows or not parts:
        leading = [Column(name, ColumnType("int64")) for name in (FILE, POSITION, ROW_ID, ROW_SNAPSHOT)]
        rows = ([INLINED, place, row.row_id, row.begin, *row.values] for place, row in enumerate(files.inlined_rows))
        parts.append(dataframe_of(spark, [*leading, *table.columns], rows))
    return Placed(reduce(DataFrame.unionAll, parts), numbers, files, snapshot)


def scan_versions(
    spark: SparkSession,
    storage: Storage,
    table: Table,
    files: TableFiles,
    snapshot: SnapshotId,
    groups: Sequence[Sequence[DataFile]],
) -> list[DataFrame]:
    """Of each of these groups of data files the rows that are not deleted with, behind the table's columns, the id of
    each (ROW_ID) and the snapshot that it came with (ROW_SNAPSHOT)."""
    _refuse_unreadable(table)
    members = [file for group in groups for file in group]
    # Of all groups together, what is known of the files is broadcast once; not where one of them stands in two.
    together = _owners(spark, members) if len({file.path for file in members}) == len(members) else None
    unknown = F.raise_error(F.lit(f"A data file of {table} does not say the ids of its rows")).cast("bigint")
    row_id = F.coalesce(F.col(ROW_ID), F.col("_ducklake_first") + F.col(POSITION), unknown)
    came = F.coalesce(F.col(ROW_SNAPSHOT), F.col("_ducklake_begin"))
    scanned = []
    for group in groups:
        parts = [
            _read_group(spark, storage, table, files, snapshot, alike, of_group, table.columns, HASHED)
            for alike, of_group in _grouped(storage, replace(files, data_files=tuple(group)), table.columns).items()
        ]
        owners = _owners(spark, group) if together is None else together
        owned = reduce(DataFrame.unionAll, parts).join(owners, F.col(FILE) == F.xxhash64("_ducklake_uri"))
        values = (owned[quoted(column.name)] for column in table.columns)
        scanned.append(owned.select(*values, row_id.alias(ROW_ID), came.alias(ROW_SNAPSHOT)))
    return scanned


def _owners(spark: SparkSession, members: Sequence[DataFile]) -> DataFrame:
    firsts = pa.array([None if file.row_id_start is None else int(file.row_id_start) for file in members], pa.int64())
    begins = pa.array([int(file.begin) for file in members], pa.int64())
    uris = pa.array([file_uri(file.path) for file in members])
    return F.broadcast(
        keys_dataframe(spark, ["_ducklake_uri", "_ducklake_first", "_ducklake_begin"], [uris, firsts, begins])
    )


def _refuse_unreadable(table: Table) -> None:
    unreadable = next((column for column in table.columns if not is_readable(column)), None)
    if unreadable is not None:
        raise UnsupportedType(unreadable.name, unreadable.type.text, "Spark cannot read. Change its rows with DuckDB.")
    names: dict[str, str] = {}
    for column in table.columns:
        other = names.setdefault(_as_spark_compares(column.name), column.name)
        if other != column.name:
            found = f"its columns {other} and {column.name} are one name to Spark"
            raise WriteRefused(str(table), found, "Rename one of them, or change its rows with DuckDB.")


def _as_spark_compares(name: str) -> str:
    """Names that are equal so are equal to Java, which goes by single characters."""
    return "".join(_JAVA_LOWER.get(char, char.lower()) for char in name)


def _file_in_group(ordinal: int, file: DataFile) -> int:
    return ordinal << 32 | file_number(file.path)


def scan(spark: SparkSession, storage: Storage, table: Table, files: TableFiles, snapshot: SnapshotId) -> DataFrame:
    """The rows of a table, in columns named and typed as the table's; nothing is read before the DataFrame is used.

    A column of a type that Spark cannot read raises when a query asks for it, and only then.
    """
    readable = [column for column in table.columns if is_readable(column)]
    parts = [
        _read_group(spark, storage, table, files, snapshot, group, members, readable)
        for group, members in _grouped(storage, files, readable).items()
    ]
    if files.inlined_rows or not parts:
        parts.append(_inlined(spark, table, files, readable))
    rows = reduce(DataFrame.unionAll, parts)
    return rows if len(readable) == len(table.columns) else _with_refusals(rows, table)


def _grouped(
    storage: Storage, files: TableFiles, columns: Sequence[Column], are_placed: bool = False
) -> dict[_Group, list[DataFile]]:
    """The files in groups. Those of a group have numbers of their own where these matter: in a group with deletes, or
    in all (`are_placed`)."""
    layouts = _layouts(storage, files, columns)
    groups: dict[_Group, list[DataFile]] = defaultdict(list)
    numbers: dict[_Group, set[int]] = defaultdict(set)
    for file in files.data_files:
        group = _Group(
            mapping=file.mapping_id,
            layout=layouts.get(file.id),
            partition=_hive_values(file, files.mappings),
            rows_up_to=file.rows_up_to,
            has_deletes=file.delete_file is not None or bool(files.inlined_deletes.get(file.id)),
        )
        if group.has_deletes or are_placed:
            number = file_number(file.path)
            while number in numbers[group]:
                group = replace(group, collision=group.collision + 1)
            numbers[group].add(number)
        groups[group].append(file)
    return groups


def _layouts(storage: Storage, files: TableFiles, columns: Sequence[Column]) -> dict[FileId, FileLayout]:
    """The layouts of files that may not be as the table's present definition says; only their footers tell."""
    leaves = [leaf for column in columns for leaf in column.leaves()]
    is_ambiguous = any(leaf.type.name in AMBIGUOUS for leaf in leaves)
    uncertain = [
        file
        for file in files.data_files
        if is_ambiguous or file.mapping_id is not None or any(file.begin < since for since in files.settled.values())
    ]
    footers = read_footers(storage, [(file.path, file.size) for file in uncertain])
    return {
        file.id: layout_of(footer, columns, None if file.mapping_id is None else files.mappings[file.mapping_id])
        for file, footer in zip(uncertain, footers, strict=True)
    }


def _hive_values(file: DataFile, mappings: Mapping[FileId, NameMapping]) -> tuple[tuple[ColumnId, str | None], ...]:
    """The values that a mapped file has in its path and not in itself."""
    if file.mapping_id is None:
        return ()
    in_path = dict(part.split("=", 1) for part in file.path.split("/") if "=" in part)
    return tuple(
        (entry.field_id, _hive_value(in_path.get(entry.name)))
        for entry in mappings[file.mapping_id]
        if entry.is_partition
    )


def _hive_value(text: str | None) -> str | None:
    return None if text is None or text == "__HIVE_DEFAULT_PARTITION__" else unquote(text)


def _read_group(
    spark: SparkSession,
    storage: Storage,
    table: Table,
    files: TableFiles,
    snapshot: SnapshotId,
    group: _Group,
    members: Sequence[DataFile],
    columns: Sequence[Column],
    ordinal: int | None = None,
) -> DataFrame:
    """The rows of a group of files, with their places where the group has an ordinal."""
    stored: StoredTypes = dict(group.layout.types) if group.layout else {}
    in_path = {column_id for column_id, _ in group.partition}
    inside = [column for column in columns if column.id not in in_path]
    fields = [read_field(column, stored) for column in inside]
    if group.mapping is not None:
        fields = _named_by(files.mappings[group.mapping], inside, fields)
    if group.rows_up_to is not None:
        fields.append(T.StructField(SNAPSHOT_COLUMN, T.LongType(), metadata={FIELD_ID: SNAPSHOT_FIELD_ID}))
    if ordinal is not None and group.mapping is None:
        fields.append(T.StructField(ROW_ID, T.LongType(), metadata={FIELD_ID: ROW_ID_FIELD_ID}))
        if group.rows_up_to is None:
            fields.append(T.StructField(ROW_SNAPSHOT, T.LongType(), metadata={FIELD_ID: SNAPSHOT_FIELD_ID}))
    reader = spark.read.schema(T.StructType(fields)).options(**WHOLE_FILES)
    rows = reader.parquet(*(spark_path(file.path) for file in members))
    if ordinal is not None:
        # Before any join: behind one, the scan's hidden columns are out of sight.
        rows = rows.withColumns(_place(rows, group, ordinal))
    if group.has_deletes:
        rows = without_deleted(spark, storage, rows, members, files.inlined_deletes, snapshot)
    if group.rows_up_to is not None:
        rows = rows.where(F.col(SNAPSHOT_COLUMN) <= F.lit(int(group.rows_up_to)))
    if ordinal is not None:
        if group.rows_up_to is not None:
            rows = rows.withColumnRenamed(SNAPSHOT_COLUMN, ROW_SNAPSHOT)
        return rows.select(FILE, POSITION, ROW_ID, ROW_SNAPSHOT, *_values(rows, columns, group, stored))
    return _as_table(rows, columns, group, stored)


def _place(rows: DataFrame, group: _Group, ordinal: int) -> dict[str, Expression]:
    hidden = rows.metadataColumn(HIDDEN)
    path = hidden["file_path"]
    if ordinal == HASHED:
        number = F.xxhash64(path)
    else:
        number = F.lit(ordinal << 32).cast("bigint").bitwiseOR(F.crc32(F.encode(path, "UTF-8")))
    found = {FILE: number, POSITION: hidden["row_index"]}
    # A mapped file has no columns of DuckLake's own.
    none = F.lit(None).cast("bigint")
    return found if group.mapping is None else {**found, ROW_ID: none, ROW_SNAPSHOT: none}


def rows_of_file(
    spark: SparkSession, storage: Storage, table: Table, file: DataFile, mapping: NameMapping | None
) -> DataFrame:
    """All rows of one file, deleted ones too, with their positions, row ids and the snapshots embedded in the file.

    A row's id is the one that the file holds for it, else it counts from the file's first.
    """
    columns = [column for column in table.columns if is_readable(column)]
    layout = layout_of(read_footers(storage, [(file.path, file.size)])[0], columns, mapping)
    stored = dict(layout.types)
    hive = () if file.mapping_id is None or mapping is None else _hive_values(file, {file.mapping_id: mapping})
    group = _Group(file.mapping_id, layout, hive, None, False)
    in_path = {column_id for column_id, _ in group.partition}
    inside = [column for column in columns if column.id not in in_path]
    fields = [read_field(column, stored) for column in inside]
    embedded = []
    if mapping is not None:
        fields = _named_by(mapping, inside, fields)
    else:
        # A mapped file has none of these.
        embedded = [
            T.StructField(ROW_ID, T.LongType(), metadata={FIELD_ID: ROW_ID_FIELD_ID}),
            T.StructField(ROW_SNAPSHOT, T.LongType(), metadata={FIELD_ID: SNAPSHOT_FIELD_ID}),
        ]
    rows = spark.read.schema(T.StructType([*fields, *embedded])).options(**WHOLE_FILES).parquet(
        spark_path(file.path)
    )  # fmt: skip
    place = rows.metadataColumn(HIDDEN)["row_index"]
    counted = place + F.lit(file.row_id_start).cast("bigint")
    row_id = F.coalesce(F.col(ROW_ID), counted) if embedded else counted
    snapshot = F.col(ROW_SNAPSHOT) if embedded else F.lit(None).cast("bigint")
    values = _values(rows, columns, group, stored)
    return rows.select(*values, place.alias(POSITION), row_id.alias(ROW_ID), snapshot.alias(ROW_SNAPSHOT))


def _as_table(rows: DataFrame, columns: Sequence[Column], group: _Group, stored: StoredTypes) -> DataFrame:
    is_plain = group.mapping is None and not group.partition and not _lacking(columns, group)
    is_plain = is_plain and not any(needs_conversion(column, stored) for column in columns)
    if is_plain and rows.columns == [column.name for column in columns]:
        return rows
    return rows.select(*_values(rows, columns, group, stored))


def _lacking(columns: Sequence[Column], group: _Group) -> set[ColumnId]:
    """The columns that a file lacks and that are not NULL in it."""
    if group.layout is None:
        return set()
    added = (column for column in columns if column.initial_default is not None)
    return {column.id for column in added if column.id not in group.layout.present}


def _values(rows: DataFrame, columns: Sequence[Column], group: _Group, stored: StoredTypes) -> list[Expression]:
    """The table's columns of a file's rows, whose own come first and in the same order."""
    in_path, lacking = dict(group.partition), _lacking(columns, group)
    places = iter(range(len(columns)))
    return [
        _literal(column, in_path[column.id])
        if column.id in in_path
        else _of_file(rows, next(places), column, column.id in lacking, stored)
        for column in columns
    ]


def _of_file(rows: DataFrame, place: int, column: Column, is_lacking: bool, stored: StoredTypes) -> Expression:
    if is_lacking:
        return _literal(column, column.initial_default)
    read = rows[quoted(rows.columns[place])]
    if column.children and needs_conversion(column, stored):
        # In a mapped file the fields have its own names, in the order of ours.
        read = read.cast(_with_names_of(column, rows.schema[place].dataType))
    value = converted(read, column, stored)
    # A nested value is cast only for the names of its fields, which are the file's in a mapped file.
    return (value.cast(spark_type(column)) if column.children else value).alias(column.name)


def _with_names_of(column: Column, kind: T.DataType) -> T.DataType:
    """The type with the names that the column has for its fields."""
    below = column.children
    if isinstance(kind, T.StructType):
        pairs = zip(below, kind.fields, strict=True)
        return T.StructType(
            [T.StructField(child.name, _with_names_of(child, field.dataType)) for child, field in pairs]
        )
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_with_names_of(below[0], kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(_with_names_of(below[0], kind.keyType), _with_names_of(below[1], kind.valueType))
    return kind


def _literal(column: Column, text: str | None) -> Expression:
    if column.children:
        # Only NULL: no other value of a nested column has a text.
        return F.lit(None).cast(spark_type(column)).alias(column.name)
    return F.expr(literal_of_text(column, text)).alias(column.name)


def _named_by(mapping: NameMapping, columns: Sequence[Column], fields: list[T.StructField]) -> list[T.StructField]:
    """The fields under the names that a mapped file has for them, without ids, which it may not have."""
    by_id = {entry.field_id: entry for entry in mapping}
    return [_mapped_field(by_id.get(column.id), column, field) for column, field in zip(columns, fields, strict=True)]


def _mapped_field(entry: MappedColumn | None, column: Column, field: T.StructField) -> T.StructField:
    # A column that the mapping does not name is not in the file; a name that no file has makes it NULL.
    is_there = entry is not None and field.metadata.get(FIELD_ID) != ABSENT_FIELD_ID
    name = entry.name if entry and is_there else f"_ducklake_absent_{column.id}"
    return T.StructField(name, _mapped_type(entry, column, field.dataType))


def _mapped_type(entry: MappedColumn | None, column: Column, kind: T.DataType) -> T.DataType:
    below = entry.children if entry else ()
    if isinstance(kind, T.StructType):
        return T.StructType(_named_by(below, column.children, list(kind.fields)))
    inner = [below[place] if place < len(below) else None for place in range(len(column.children))]
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_mapped_type(inner[0], column.children[0], kind.elementType))
    if isinstance(kind, T.MapType):
        key, held = column.children
        return T.MapType(_mapped_type(inner[0], key, kind.keyType), _mapped_type(inner[1], held, kind.valueType))
    return kind


def _inlined(spark: SparkSession, table: Table, files: TableFiles, columns: Sequence[Column]) -> DataFrame:
    places = [place for place, column in enumerate(table.columns) if column in columns]
    rows = ([row.values[place] for place in places] for row in files.inlined_rows)
    found = dataframe_of(spark, columns, rows)
    # Of rows that it holds itself, the planner would compute the refusals, too, though nobody asks for them.
    return found if len(columns) == len(table.columns) else found.coalesce(1)


def _with_refusals(rows: DataFrame, table: Table) -> DataFrame:
    return rows.select(
        *(
            F.col(quoted(column.name)) if is_readable(column) else _refusal(table, column).alias(column.name)
            for column in table.columns
        )
    )


def _refusal(table: Table, column: Column) -> Expression:
    if column.type.name == "null":
        # It has no values, and what stands in the files for them is of any type.
        return F.lit(None).cast("int")
    kinds = ", ".join(sorted({part.type.text for part in column.walk() if part.type.name in REFUSED}))
    text = f"Column {column.name} of {table} has type {kinds}, which Spark cannot read. Cast it with DuckDB."
    return F.raise_error(F.lit(text)).cast("string")
