"""What `on_schema_change` does to a table: dbt compares columns by name and type; within them, this does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.column import DuckLakeColumn
from dbt.adapters.ducklake.lake import Table, can_widen, fold
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.statements.evolution import GoneField, NewField, OtherType, differences
from dbt.adapters.ducklake.statements.kinds.describe import type_text
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.types import read_type


@dataclass
class FieldColumn(DuckLakeColumn):
    """A column, or a field within one; `path` are the names that lead to it."""

    path: tuple[str, ...] = ()

    @property
    def quoted(self) -> str:
        return ".".join(map(quoted, self.path))


@dataclass(frozen=True)
class SchemaChanges:
    added: Sequence[DuckLakeColumn] = ()
    removed: Sequence[DuckLakeColumn] = ()
    widened: Sequence[DuckLakeColumn] = ()


def compared(batch: Sequence[DuckLakeColumn], table: Sequence[DuckLakeColumn]) -> dict[str, Any]:
    """The two sides' columns in dbt's words. An untyped NULL is of every type."""
    given = {fold(column.name): column for column in batch}
    there = {fold(column.name): column for column in table}
    new = [column for name, column in given.items() if name not in there]
    gone = [column for name, column in there.items() if name not in given]
    types = [
        {"column_name": there[name].name, "new_type": column.data_type}
        for name, column in given.items()
        if name in there and column.data_type != there[name].data_type and "void" not in column.data_type
    ]
    return {
        "schema_changed": bool(new or gone or types),
        "source_not_in_target": new,
        "target_not_in_source": gone,
        "source_columns": list(batch),
        "target_columns": list(table),
        "new_target_types": types,
    }


def schema_changes(mode: str, table: Table, found: Mapping[str, Any]) -> SchemaChanges:
    """`found` is what `compared` says. With append_new_columns columns and fields come and types widen, with
    sync_all_columns columns and fields also go. A type of the batch that the table's holds already needs nothing."""
    if mode not in ("append_new_columns", "sync_all_columns"):
        return SchemaChanges()
    is_sync = mode == "sync_all_columns"
    added, widened = list(found["source_not_in_target"]), []
    removed = list(found["target_not_in_source"]) if is_sync else []
    for changed in found["new_target_types"]:
        there = table.column(changed["column_name"])
        wanted = read_type(changed["new_type"], Reader(changed["new_type"]).place)
        for difference in differences(there, wanted, (there.name,)):
            match difference:
                case NewField(path, field):
                    added.append(_column(path, type_text(field)))
                case GoneField(path) if is_sync:
                    removed.append(_column(path, ""))
                case OtherType(path, old, new) if can_widen(old.type, new.type):
                    widened.append(_column(path, type_text(new)))
                case OtherType(path, old, new) if is_sync and not can_widen(new.type, old.type):
                    raise DbtRuntimeError(
                        f"Column {'.'.join(path)} of {table} is {type_text(old)} and the model gives "
                        f"{type_text(new)}, which DuckLake cannot widen it to. Cast it in the model, or rebuild "
                        "the table with --full-refresh."
                    )
    return SchemaChanges(added, removed, widened)


def _column(path: tuple[str, ...], kind: str) -> FieldColumn:
    return FieldColumn(path[-1], kind, path=path)
