"""What `on_schema_change` does to a table, and what a snapshot's table needs to take its source: dbt compares columns
by name and type, this also looks within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.column import DuckLakeColumn
from dbt.adapters.ducklake.lake import Column, Table, can_widen, find, fold
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.evolution import GoneField, NewField, OtherType, differences
from dbt.adapters.ducklake.statements.kinds.describe import type_text
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.staged import ColumnChanges, Path
from dbt.adapters.ducklake.statements.types import read_type


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


def schema_changes(mode: str, table: Table, found: Mapping[str, Any]) -> ColumnChanges:
    """`found` is what `compared` returned. With append_new_columns columns and fields come and types widen, with
    sync_all_columns columns and fields also go. A type of the batch that the table's holds already needs nothing."""
    if mode not in ("append_new_columns", "sync_all_columns"):
        return ColumnChanges()
    is_sync = mode == "sync_all_columns"
    added: list[tuple[Path, Column]] = [
        ((), lake_column(column.name, column.data_type)) for column in found["source_not_in_target"]
    ]
    removed: list[Path] = [(column.name,) for column in found["target_not_in_source"]] if is_sync else []
    retyped: list[tuple[Path, Column]] = []
    for changed in found["new_target_types"]:
        there = table.column(changed["column_name"])
        wanted = lake_column(there.name, changed["new_type"])
        for difference in differences(there, wanted, (there.name,)):
            match difference:
                case NewField(path, field):
                    added.append((path[:-1], field))
                case GoneField(path) if is_sync:
                    removed.append(path)
                case OtherType(path, old, new) if can_widen(old.type, new.type):
                    retyped.append((path, new))
                case OtherType(path, old, new) if is_sync and not can_widen(new.type, old.type):
                    raise _other_type(path, table, old, new, "the model", "rebuild the table with --full-refresh")
    return ColumnChanges(tuple(added), tuple(removed), tuple(retyped))


def snapshot_changes(table: Table, source: Sequence[DuckLakeColumn]) -> ColumnChanges:
    """What a snapshot's table needs to hold its source's values as they are: new columns and fields, wider types."""
    added: list[tuple[Path, Column]] = []
    retyped: list[tuple[Path, Column]] = []
    for given in source:
        there = find(table.columns, given.name)
        if there is None:
            added.append(((), lake_column(given.name, given.data_type)))
            continue
        if "void" in given.data_type:
            continue
        for difference in differences(there, lake_column(there.name, given.data_type), (there.name,)):
            match difference:
                case NewField(path, field):
                    added.append((path[:-1], field))
                case OtherType(path, old, new) if can_widen(old.type, new.type):
                    retyped.append((path, new))
                case OtherType(path, old, new) if not _holds(old, new):
                    raise _other_type(path, table, old, new, "the snapshot's query", "snapshot it into another table")
    return ColumnChanges(tuple(added), (), tuple(retyped))


def _holds(there: Column, given: Column) -> bool:
    """Whether a column takes all values of another type: those of narrower ones, and as text those of any plain one."""
    is_text = there.type.name == "varchar" and not given.type.is_container
    return is_text or can_widen(given.type, there.type)


def lake_column(name: str, text: str) -> Column:
    """A column of a query by its name and Spark's word for its type."""
    if "void" in text:
        raise DbtRuntimeError(
            f"Column {name} has type {text}: it is NULL in every row. Cast it in the model: cast(null as string)."
        )
    try:
        return replace(read_type(text, Reader(text).place), name=name)
    except StatementError as error:
        raise DbtRuntimeError(f"Column {name} has type {text}, which a lake has not. Cast it in the model.") from error


def _other_type(path: Path, table: Table, old: Column, new: Column, giver: str, remedy: str) -> DbtRuntimeError:
    return DbtRuntimeError(
        f"Column {'.'.join(path)} of {table} is {type_text(old)} and {giver} gives {type_text(new)}, which DuckLake "
        f"cannot widen it to. Cast it in the query, or {remedy}."
    )
