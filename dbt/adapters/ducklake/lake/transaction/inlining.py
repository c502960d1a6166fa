"""Inlined rows of a commit: the tables they live in, the rows that come and the rows that end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from dbt.adapters.ducklake.lake.backends.base import Storage
from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.definitions import Table
from dbt.adapters.ducklake.lake.errors import ChangeRefused
from dbt.adapters.ducklake.lake.metadata import MetadataSession, places
from dbt.adapters.ducklake.lake.names import TableId, quoted
from dbt.adapters.ducklake.lake.nested_text import NotAsText
from dbt.adapters.ducklake.lake.options import Options
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import deletes_table_of, rows_table_of
from dbt.adapters.ducklake.lake.spec.layout import InlinedColumns, Layout
from dbt.adapters.ducklake.lake.transaction.effects import TableEffect
from dbt.adapters.ducklake.lake.transaction.numbering import Numbering
from dbt.adapters.ducklake.lake.transaction.rows import Batch
from dbt.adapters.ducklake.lake.types import INTEGERS
from dbt.adapters.ducklake.lake.values import Value, fits

_VALUES_AT_ONCE = 400


def can_inline(storage: Storage, layout: Layout, columns: Sequence[Column]) -> bool:
    """Whether DuckDB inlines rows of a table with these columns."""
    every = [part for column in columns for part in column.walk()]
    return not any(layout.is_reserved(column.name) for column in columns) and all(map(storage.can_inline, every))


def current_table(session: MetadataSession, table_id: TableId) -> str | None:
    """The inlined table that has the table's present columns, if it is there."""
    rows = session.query(
        "SELECT table_name FROM {inlined_data_tables} WHERE table_id = $1 AND schema_version >= "
        "(SELECT coalesce(max(schema_version), 0) FROM {schema_versions} WHERE table_id = $1) "
        "ORDER BY schema_version DESC",
        table_id,
    )
    return rows[0][0] if rows else None


def create_tables(session: MetadataSession, batch: Batch, effect: TableEffect, options: Options) -> None:
    """The inlined table of a new layout, which DuckDB makes whenever inlining is on, or of rows that have none yet."""
    table = effect.table
    assert table is not None
    if session.layout.is_shared:
        return
    is_wanted = effect.layout_changed and options.inlining_limit(table.schema.id, effect.id) > 0
    is_possible = can_inline(session.storage, session.layout, table.columns)
    if not (is_wanted and is_possible) and not (
        effect.inserted and (effect.layout_changed or current_table(session, effect.id) is None)
    ):
        return
    if not is_possible:
        raise ChangeRefused(
            f"inline rows of {table}", "it has a column that cannot be inlined", "Write them to a file."
        )
    version, table_id = batch.numbering.schema_version, batch.numbering.of(effect.id)
    name, physical = rows_table_of(TableId(table_id), version), session.storage.physical_types
    leading = [f"{quoted(column)} {physical['BIGINT']}" for column in session.layout.inlined]
    columns = [f"{quoted(c.name)} {session.storage.inlined_type(c)}" for c in table.columns]
    session.run_on(name, f"CREATE TABLE {{table}} ({_braced(', '.join(leading + columns))})")
    session.insert([tables.InlinedDataTables(table_id, name, version)])


def insert_rows(session: MetadataSession, numbering: Numbering, effect: TableEffect, first_row_id: int) -> int:
    """Insert the inlined rows; the number of row ids they took, from `first_row_id` on."""
    if not effect.inserted:
        return 0
    table, next_id = effect.table, first_row_id
    assert table is not None
    name = current_table(session, TableId(numbering.of(effect.id)))
    if name is None or effect.layout_changed:
        name = rows_table_of(TableId(numbering.of(effect.id)), numbering.schema_version)
    bound: list[list[object]] = []
    for insert in effect.inserted:
        for row_id, values in zip(insert.row_ids, insert.rows, strict=True):
            if row_id is None:
                row_id, next_id = next_id, next_id + 1
            bound.append([row_id, numbering.snapshot, None, *bound_values(session.storage, table, values)])
    _insert_bound(session, name, table, bound)
    return next_id - first_row_id


def bound_values(storage: Storage, table: Table, values: Sequence[Value]) -> list[object]:
    for column, value in zip(table.columns, values, strict=True):
        if value is None and not column.nullable:
            raise ChangeRefused(f"inline rows of {table}", f"column {column.name} is NOT NULL and a row has NULL")
        if column.type.name in INTEGERS and value is not None and not fits(column.type.name, value):
            raise ChangeRefused(f"inline rows of {table}", f"{value} is not a value of {column.name} ({column.type})")
    try:
        return [storage.inlined_bound(column, value) for column, value in zip(table.columns, values, strict=True)]
    except NotAsText as error:
        raise ChangeRefused(
            f"inline rows of {table}",
            "a nested value holds quotes, backslashes or brackets, which DuckDB misreads in this database",
            "Write the rows to a file.",
        ) from error


def _insert_bound(session: MetadataSession, name: str, table: Table, rows: list[list[object]]) -> None:
    leading = session.layout.inlined
    width = len(leading) + len(table.columns)
    columns = _braced(", ".join(map(quoted, (*leading, *(column.name for column in table.columns)))))
    at_once = max(1, _VALUES_AT_ONCE // width)
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        marks = (_places(session.storage, table, 1 + width * place) for place in range(len(some)))
        sql = f"INSERT INTO {{table}} ({columns}) VALUES {_braced(', '.join(marks))}"
        session.run_on(name, sql, *(value for row in some for value in row))


def _places(storage: Storage, table: Table, first: int) -> str:
    after = first + len(InlinedColumns._fields)
    typed = [storage.inlined_inserted(column, f"${after + place}") for place, column in enumerate(table.columns)]
    return f"(${first}, ${first + 1}, ${first + 2}, {', '.join(typed)})"


def end_rows(session: MetadataSession, numbering: Numbering, effect: TableEffect) -> None:
    """End inlined rows, and note inlined deletes of rows in files."""
    by_table: dict[str, list[InlinedRow]] = defaultdict(list)
    if effect.inlined_ended:
        session.refuse_shared_files(f"delete from {effect.named}", "Let the fork's own client flush its inlined rows.")
    for row in effect.inlined_ended:
        by_table[row.kept_in].append(row)
    for name, rows in by_table.items():
        _end(session, name, numbering, effect, [row.row_id for row in rows])
    if effect.inlined_deletes:
        _note_deletes(session, numbering, effect)


def _end(session: MetadataSession, name: str, numbering: Numbering, effect: TableEffect, row_ids: list[int]) -> None:
    for start in range(0, len(row_ids), _VALUES_AT_ONCE):
        some = row_ids[start : start + _VALUES_AT_ONCE]
        # Rows that this transaction added to the same table are new versions, not those to end.
        chosen = f"{{end}} IS NULL AND {{begin}} < $1 AND {{row_id}} IN ({places(2, len(some))})"
        live = session.run_on(name, f"SELECT count(*) FROM {{table}} WHERE {chosen}", numbering.snapshot, *some)[0][0]
        if live != len(some):
            found = f"{len(some) - live} of {len(some)} inlined rows are not there any more"
            raise ChangeRefused(f"delete from {effect.named}", found, "Plan the change again on the newest snapshot.")
        session.run_on(name, f"UPDATE {{table}} SET {{end}} = $1 WHERE {chosen}", numbering.snapshot, *some)


def _note_deletes(session: MetadataSession, numbering: Numbering, effect: TableEffect) -> None:
    name, types = deletes_table_of(effect.id), dict.fromkeys(("file_id", "row_id", "begin_snapshot"), "BIGINT")
    if not session.has_table(name):
        columns = ", ".join(f"{column} {session.storage.physical_types[type_]}" for column, type_ in types.items())
        session.run_on(name, f"CREATE TABLE {{table}} ({columns})")
    pairs = ((file_id, position) for file_id, found in effect.inlined_deletes.items() for position in found)
    session.insert_into(name, types, [(file_id, position, numbering.snapshot) for file_id, position in pairs])


def files_deleted_from_after(session: MetadataSession, table_id: TableId, snapshot: int) -> set[int]:
    """Data files that have inlined deletes from later snapshots."""
    name = deletes_table_of(table_id)
    if not session.has_table(name):
        return set()
    return {row[0] for row in session.run_on(name, "SELECT file_id FROM {table} WHERE begin_snapshot > $1", snapshot)}


def _braced(sql: str) -> str:
    """SQL in which braces, as they may stand in names and types, are no places to fill."""
    return sql.replace("{", "{{").replace("}", "}}")
