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


def schema_changes(mode: str, table: Table, found: Mapping[str, Any]) -> SchemaChanges:
    """`found` is what dbt says of the batch and the table. With append_new_columns columns and fields come; with
    sync_all_columns they also go, and types widen: a type of the batch that the table's holds already needs nothing."""
    if mode not in ("append_new_columns", "sync_all_columns"):
        return SchemaChanges()
    is_sync = mode == "sync_all_columns"
    added, widened = list(found["source_not_in_target"]), []
    removed = list(found["target_not_in_source"]) if is_sync else []
    gone = {fold(column.name) for column in found["target_not_in_source"]}
    for changed in found["new_target_types"]:
        there = table.column(changed["column_name"])
        if fold(there.name) in gone:
            continue
        wanted = read_type(changed["new_type"], Reader(changed["new_type"]).place)
        for difference in differences(there, wanted, (there.name,)):
            match difference:
                case NewField(path, field):
                    added.append(_column(path, type_text(field)))
                case GoneField(path) if is_sync:
                    removed.append(_column(path, ""))
                case OtherType(path, old, new) if is_sync and not can_widen(new.type, old.type):
                    if not can_widen(old.type, new.type):
                        raise DbtRuntimeError(
                            f"Column {'.'.join(path)} of {table} is {type_text(old)} and the model gives "
                            f"{type_text(new)}, which DuckLake cannot widen it to. Cast it in the model, or rebuild "
                            "the table with --full-refresh."
                        )
                    widened.append(_column(path, type_text(new)))
    return SchemaChanges(added, removed, widened)


def _column(path: tuple[str, ...], kind: str) -> FieldColumn:
    return FieldColumn(path[-1], kind, path=path)
