"""Parquet files that others wrote, as files of a table: their columns found by name, and what their footers say.

Only footers are read, and no Spark is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa

from dbt.adapters.ducklake.lake import (
    Column,
    ColumnStatistics,
    FileToAdd,
    LakeError,
    MappedColumn,
    Table,
    can_widen,
    fold,
    parse_value,
    partition_text,
)
from dbt.adapters.ducklake.spark.errors import FileNotAdded
from dbt.adapters.ducklake.spark.footers import Footer, field_ids, is_list, read_footers, stored_type
from dbt.adapters.ducklake.spark.partition import partition_keys
from dbt.adapters.ducklake.spark.schema import ROW_ID_FIELD_ID, SNAPSHOT_FIELD_ID
from dbt.adapters.ducklake.spark.statistics import column_without_utf8, foreign_statistics
from dbt.adapters.ducklake.spark.storage import Storage

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Leniency:
    """What is put up with: values in the names of folders, columns that the table lacks, columns that a file lacks."""

    hive_partitioning: bool = True
    ignore_extra_columns: bool = False
    allow_missing: bool = False


def files_to_add(storage: Storage, table: Table, paths: Sequence[str], leniency: Leniency) -> list[FileToAdd]:
    """Describe the files at paths or patterns. FileNotAdded says which is not what the table takes, and why."""
    found = []
    for path in paths:
        matching = storage.matching(path)
        if not matching:
            raise FileNotAdded(str(table), path, "there is no such file", "Give the path of a file, or a pattern.")
        found += [(file.path, file.size) for file in matching]
    return [_Added(table, footer, leniency).described() for footer in read_footers(storage, found)]


@dataclass
class _Added:
    table: Table
    footer: Footer
    leniency: Leniency
    leaves: dict[int, Column] = field(default_factory=dict)

    def described(self) -> FileToAdd:
        schema = self.footer.metadata.schema
        places = iter(range(len(schema)))
        if set(field_ids(self.footer)) & {ROW_ID_FIELD_ID, SNAPSHOT_FIELD_ID}:
            raise self._refused(
                "it holds row ids of DuckLake's", "It is a file of a lake: read it there, and insert its rows."
            )
        entries = self._entries(schema.to_arrow_schema(), self.table.columns, places)
        present = {entry.field_id for entry in entries}
        in_path = self._in_path()
        statistics = foreign_statistics(self.footer, self.leaves)
        self._refuse_nulls()
        if (name := column_without_utf8(self.footer, self.leaves)) is not None:
            raise self._refused(f"its column {name} holds text that is not UTF-8", "DuckDB could not read it.")
        for column in self.table.columns:
            if column.id in present:
                continue
            if fold(column.name) in in_path:
                entries.append(MappedColumn(self._name_in_path(column), column.id, is_partition=True))
                statistics[column.id] = self._of_path(column, in_path[fold(column.name)])
            else:
                self._refuse_missing(column)
                if column.initial_default is None:
                    rows = self.footer.metadata.num_rows
                    statistics |= {leaf.id: ColumnStatistics(0, rows) for leaf in column.leaves()}
        return FileToAdd(
            path=self.footer.path,
            record_count=self.footer.metadata.num_rows,
            size=self.footer.size,
            footer_size=self.footer.length,
            columns=statistics,
            partition_values=self._partition_values(in_path),
            mapping=tuple(entries),
            row_groups=self.footer.row_groups,
        )

    def _entries(
        self, fields: Iterable[pa.Field], columns: Sequence[Column], places: Iterator[int]
    ) -> list[MappedColumn]:
        """The entries of fields that the table has. Two fields of one column cannot be."""
        found = [entry for entry in (self._mapped(one, columns, places) for one in fields) if entry is not None]
        ids = [entry.field_id for entry in found]
        if twice := [entry.name for place, entry in enumerate(found) if entry.field_id in ids[:place]]:
            raise self._refused(f"two of its columns are {twice[0]} but for their case", "Name each once.")
        return found

    def _refuse_nulls(self) -> None:
        """A NOT NULL column may have none, as far as the footer tells."""
        for place, leaf in self.leaves.items():
            groups = range(self.footer.metadata.num_row_groups)
            statistics = (self.footer.metadata.row_group(group).column(place).statistics for group in groups)
            is_own = any(column.id == leaf.id and not column.nullable for column in self.table.columns)
            if is_own and any(one is not None and one.has_null_count and one.null_count for one in statistics):
                raise self._refused(f"its column {leaf.name} has NULLs, and the table's is NOT NULL", "Fill them.")

    def _mapped(self, given: pa.Field, columns: Sequence[Column], places: Iterator[int]) -> MappedColumn | None:
        """The field's entry, with its leaves noted; None for one that the table lacks."""
        column = next((one for one in columns if fold(one.name) == fold(given.name)), None)
        if column is None and not self.leniency.ignore_extra_columns:
            there = ", ".join(one.name for one in columns)
            raise self._refused(
                f"it has a column {given.name}", f"The table has {there}. With ignore_extra_columns it is passed over."
            )
        return self._entry(given.name, given.type, column, places)

    def _entry(self, name: str, kind: pa.DataType, column: Column | None, places: Iterator[int]) -> MappedColumn | None:
        wanted = column.type.name if column else None
        nested = {"struct": pa.types.is_struct, "map": pa.types.is_map, "list": is_list}
        is_kind = next((known for known, is_it in nested.items() if is_it(kind)), None)
        if column is not None and (is_kind or wanted in nested) and is_kind != wanted:
            raise self._refused(f"its column {name} is {kind}", f"The table's is {column.type.text}.")
        if is_kind is None:
            self._leaf(name, column, next(places))
            return None if column is None else MappedColumn(name, column.id)
        below: list[MappedColumn | None]
        if is_kind == "struct":
            if column is None:
                below = [self._entry(one.name, one.type, None, places) for one in kind]
            else:
                below = list(self._entries(kind, column.children, places))
        else:
            parts = (
                [("list", kind.value_type)]
                if is_kind == "list"
                else [("key", kind.key_type), ("value", kind.item_type)]
            )
            children = column.children if column else (None, None)
            below = [self._entry(*part, child, places) for part, child in zip(parts, children, strict=False)]
        if column is None:
            return None
        return MappedColumn(name, column.id, tuple(entry for entry in below if entry is not None))

    def _leaf(self, name: str, column: Column | None, place: int) -> None:
        if column is None:
            return
        stored = stored_type(self.footer.metadata.schema.column(place))
        if stored != column.type and not can_widen(stored, column.type):
            remedy = f"The table's is {column.type.text}: write the file with that, or change the column."
            raise self._refused(f"its column {name} is {stored.text}", remedy)
        self.leaves[place] = column

    def _in_path(self) -> dict[str, str]:
        if not self.leniency.hive_partitioning:
            return {}
        pairs = (part.split("=", 1) for part in self.footer.path.split("/")[:-1] if "=" in part)
        return {fold(unquote(name)): unquote(value) for name, value in pairs}

    def _name_in_path(self, column: Column) -> str:
        parts = (part.split("=", 1)[0] for part in self.footer.path.split("/")[:-1] if "=" in part)
        return next(name for name in parts if fold(unquote(name)) == fold(column.name))

    def _of_path(self, column: Column, text: str) -> ColumnStatistics:
        rows = self.footer.metadata.num_rows
        if text == _NULL_FOLDER:
            return ColumnStatistics(0, rows)
        try:
            value = parse_value(column.type, text)
        except LakeError as error:
            raise self._refused(
                f"its folder says {column.name}={text}", f"The column is {column.type.text}."
            ) from error
        return ColumnStatistics(rows, 0, value, value, contains_nan=False)

    def _partition_values(self, in_path: dict[str, str]) -> tuple[str | None, ...] | None:
        """The texts of the table's keys, where the path says all of them."""
        keys = partition_keys(self.table)
        if not keys or not all(key.transform == "identity" and fold(key.column.name) in in_path for key in keys):
            return None
        texts = [(key, in_path[fold(key.column.name)]) for key in keys]
        return tuple(
            None
            if text == _NULL_FOLDER
            else partition_text(key.transform, key.column.type, parse_value(key.column.type, text))
            for key, text in texts
        )

    def _refuse_missing(self, column: Column) -> None:
        if not self.leniency.allow_missing:
            raise self._refused(f"it has no column {column.name}", "With allow_missing its rows get the default.")
        if not column.nullable and column.initial_default is None:
            raise self._refused(f"it has no column {column.name}, which is NOT NULL", "Add it to the file.")

    def _refused(self, found: str, remedy: str) -> FileNotAdded:
        return FileNotAdded(str(self.table), self.footer.path, found, remedy)
