"""Rows that live in the metadata database, as values of the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.definitions import Table
from dbt.adapters.ducklake.lake.errors import InvalidMetadata
from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.lake.names import ColumnId, SnapshotId, fold, quoted
from dbt.adapters.ducklake.lake.snapshot.load import columns_from_rows, is_visible
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.types import can_widen
from dbt.adapters.ducklake.lake.values import Value, parse_value, widened
from dbt.adapters.ducklake.lake.variant import variant_of


class InlinedRow(NamedTuple):
    """A row with its values in the order of the table's columns, and where it is kept."""

    row_id: int
    begin: SnapshotId
    end: SnapshotId | None
    kept_in: str
    values: tuple[Value, ...]


def inlined_rows_at(session: MetadataSession, snapshot: SnapshotId, table: Table) -> tuple[InlinedRow, ...]:
    """The rows visible at a snapshot."""
    condition = "{begin} <= $1 AND ({end} IS NULL OR {end} > $1)"
    return _rows_where(session, table, condition, snapshot)


def inlined_rows_inserted(
    session: MetadataSession, table: Table, first: SnapshotId, last: SnapshotId
) -> tuple[InlinedRow, ...]:
    return _rows_where(session, table, "{begin} BETWEEN $1 AND $2", first, last)


def inlined_rows_ended(
    session: MetadataSession, table: Table, first: SnapshotId, last: SnapshotId
) -> tuple[InlinedRow, ...]:
    return _rows_where(session, table, "{end} BETWEEN $1 AND $2", first, last)


@dataclass(frozen=True, slots=True)
class InlinedTable:
    """An inlined table with all its rows up to a snapshot, in the columns that it was made with at `since`."""

    name: str
    since: SnapshotId
    columns: tuple[Column, ...]
    rows: tuple[InlinedRow, ...]


def all_inlined(session: MetadataSession, snapshot: SnapshotId, table: Table) -> tuple[InlinedTable, ...]:
    kept = session.read(tables.InlinedDataTables, "WHERE table_id = $1 ORDER BY schema_version", table.id)
    history = ColumnHistory(session, table.id, str(table)) if kept else None
    found = []
    for inlined in kept:
        assert history is not None
        if _is_empty(session, inlined):
            continue
        columns, since = history.columns_of(inlined), history.begin_of(inlined)
        as_written = replace(table, columns=columns)
        rows = _read(session, as_written, inlined, columns, "{begin} <= $1", [snapshot])
        if rows:
            found.append(InlinedTable(inlined.table_name, since, columns, tuple(rows)))
    return tuple(found)


def _rows_where(session: MetadataSession, table: Table, condition: str, *values: SnapshotId) -> tuple[InlinedRow, ...]:
    # Asked anew each time: a flush drops such tables, and the table may have been read before it.
    kept = session.read(tables.InlinedDataTables, "WHERE table_id = $1 ORDER BY schema_version", table.id)
    if not kept:
        return ()
    history, found = ColumnHistory(session, table.id, str(table)), []
    for inlined in kept:
        columns = history.find_columns_of(inlined)
        if not columns and _is_empty(session, inlined):
            continue
        found += _read(session, table, inlined, columns or history.columns_of(inlined), condition, values)
    return tuple(sorted(found, key=lambda row: (row.row_id, row.begin)))


def _is_empty(session: MetadataSession, inlined: tables.InlinedDataTables) -> bool:
    return not session.run_on(inlined.table_name, "SELECT 1 FROM {table} LIMIT 1")


def _read(
    session: MetadataSession,
    table: Table,
    inlined: tables.InlinedDataTables,
    columns: Sequence[Column],
    condition: str,
    values: Sequence[SnapshotId],
) -> list[InlinedRow]:
    storage = session.storage
    selected = "".join(f", {storage.inlined_selected(column, quoted(column.name))}" for column in columns)
    # Braces in a column's name would be taken for the table's place.
    escaped = selected.replace("{", "{{").replace("}", "}}")
    sql = f"SELECT {{row_id}}, {{begin}}, {{end}}{escaped} FROM {{table}} WHERE {condition} ORDER BY {{row_id}}"
    stored = {column.id: place for place, column in enumerate(columns, 3)}
    written_as = {column.id: column for column in columns}
    rows = []
    for row in session.run_on(inlined.table_name, sql, *values):
        # A column that the row was written without holds its initial default.
        now = (
            converted(
                written_as[column.id], column, storage.inlined_value(written_as[column.id], row[stored[column.id]])
            )
            if column.id in stored
            else initial_value(column)
            for column in table.columns
        )
        rows.append(InlinedRow(row[0], row[1], row[2], inlined.table_name, tuple(now)))
    return rows


class ColumnHistory:
    """The columns that a table had at earlier schema versions: what its older inlined tables are made of."""

    def __init__(self, session: MetadataSession, table_id: int, table: str) -> None:
        self._session, self._table = session, table
        self._rows = session.read(tables.Column, "WHERE table_id = $1", table_id)
        # In layouts that do not say which table a version changed, each version may be this table's.
        self._layouts = session.query(
            "SELECT schema_version, begin_snapshot FROM {schema_versions} "
            "WHERE table_id = $1 OR table_id IS NULL ORDER BY schema_version",
            table_id,
        )

    def find_columns_of(self, inlined: tables.InlinedDataTables) -> tuple[Column, ...]:
        """The columns that an inlined table was made with. None where the metadata no longer tell."""
        return self._columns_at(self.begin_of(inlined))

    def columns_of(self, inlined: tables.InlinedDataTables) -> tuple[Column, ...]:
        columns = self.find_columns_of(inlined)
        if not columns:
            raise InvalidMetadata(
                f"nothing says which columns {inlined.table_name} of {self._table} was made with",
                "Flush the inlined rows with DuckDB (ducklake_flush_inlined_data).",
            )
        return columns

    def begin_of(self, inlined: tables.InlinedDataTables) -> SnapshotId:
        """The snapshot at which the table's columns were those of the inlined table; -1 where the metadata no longer
        tell. Where no version is told that is just its own, the columns that it has decide."""
        said = [(version, begin) for version, begin in self._layouts if version <= inlined.schema_version]
        if said and said[-1][0] == inlined.schema_version:
            return SnapshotId(said[-1][1])
        names = [fold(name) for name in self._session.columns_of(inlined.table_name)[3:]]
        others = sorted({row.begin_snapshot for row in self._rows}, reverse=True)
        candidates = [*(begin for _, begin in said[-1:]), *others]
        return SnapshotId(next((one for one in candidates if self._names_at(one) == names), -1))

    def _names_at(self, snapshot: int) -> list[str]:
        return [fold(column.name) for column in self._columns_at(snapshot)]

    def _columns_at(self, snapshot: int) -> tuple[Column, ...]:
        return columns_from_rows(row for row in self._rows if is_visible(row, snapshot))


def values_under(before: Table, after: Table, values: Sequence[Value]) -> tuple[Value, ...]:
    """The values of a row in the columns of another definition of its table."""
    places = {column.id: (place, column) for place, column in enumerate(before.columns)}
    found = []
    for column in after.columns:
        if column.id not in places:
            found.append(initial_value(column))
            continue
        place, old = places[column.id]
        found.append(converted(old, column, values[place]))
    return tuple(found)


def initial_value(column: Column) -> Value:
    """What rows hold that were written before the column was added."""
    if column.initial_default is None or column.type.is_container:
        return None
    return parse_value(column.type, column.initial_default)


def converted(old: Column, new: Column, value: Value) -> Value:
    """A value of a column as it was, as a value of the column as it is: fields by their ids, types widened."""
    if value is None:
        return None
    if new.type.name == "struct" and old.type.name == "struct":
        before: dict[ColumnId, Column] = {child.id: child for child in old.children}
        return {
            child.name: converted(before[child.id], child, value[before[child.id].name])
            if child.id in before
            else initial_value(child)
            for child in new.children
        }
    if new.type.name == "list" and old.type.name == "list":
        return [converted(old.children[0], new.children[0], element) for element in value]
    if new.type.name == "map" and old.type.name == "map":
        pairs = zip(old.children, new.children, strict=True)
        (old_key, new_key), (old_held, new_held) = pairs
        return [(converted(old_key, new_key, key), converted(old_held, new_held, held)) for key, held in value]
    if old.type == new.type:
        return value
    if new.type.name == "variant" and not old.type.is_container:
        # Nothing but DuckDB makes such columns.
        return variant_of(old.type, value)
    if not can_widen(old.type, new.type):
        raise InvalidMetadata(
            f"column {new.name} was {old.type} and is {new.type}", "No such change of type is allowed."
        )
    return widened(old.type, new.type, value)
