"""The one way to the `ducklake_*` tables: every query of this room goes through here, in terms of `spec.tables`.

What a table is called, which columns it has and whose rows are visible is the layout's business and known nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from dbt.adapters.ducklake.lake.backends.base import Backend, Connection, Contended, Row, decoder
from dbt.adapters.ducklake.lake.errors import ChangeRefused, MetadataQueryFailed
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.lake.spec.layout import Layout
from dbt.adapters.ducklake.lake.spec.tables import LOGICAL_TYPES, PRIMARY_KEYS, TABLES, RowClass
from dbt.adapters.ducklake.lake.spec.tables import Metadata as MetadataRow

R = TypeVar("R", bound=tuple[Any, ...])
T = TypeVar("T")

# Values that one statement names; SQLite and PostgreSQL bound their number.
_VALUES_AT_ONCE = 500


def places(first: int, count: int) -> str:
    """The places of so many bound values, as in `IN ($2, $3)`."""
    return ", ".join(f"${place}" for place in range(first, first + count))


def in_chunks(values: Iterable[T]) -> list[list[T]]:
    every = list(values)
    return [every[start : start + _VALUES_AT_ONCE] for start in range(0, len(every), _VALUES_AT_ONCE)]


class MetadataSession:
    """The metadata tables within one transaction."""

    def __init__(self, metadata: Metadata, connection: Connection) -> None:
        self.storage = metadata.backend.storage
        # Snapshots that this transaction has seen to be there.
        self.seen: set[int] = set()
        self._metadata, self._connection = metadata, connection

    def read(self, row_class: type[R], rest: str = "", *values: object) -> list[R]:
        """All rows of a table that `rest` (WHERE …, ORDER BY …) leaves; columns are named as in `row_class`."""
        select, decode = self._metadata.select_of(row_class)
        found = self._connection.rows(select + rest.format_map(self._metadata.relations), values)
        make: Callable[[Row], R] = row_class._make  # type: ignore[attr-defined]
        return [make(decode(row)) for row in found] if decode else [make(row) for row in found]

    def query(self, sql: str, *values: object) -> list[Row]:
        """Rows of any SELECT; `{data_file}` stands for a table. Uuids and times come as the driver has them."""
        return self._connection.rows(sql.format_map(self._metadata.relations), values)

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert rows of one row class."""
        if not rows:
            return
        row_class = type(rows[0])
        names, fixed = self._metadata.layout.columns(row_class), self._metadata.layout.scope(row_class)
        types = {**dict.fromkeys(fixed, "BIGINT"), **{name: LOGICAL_TYPES[row_class][name] for name in names}}
        if fixed or len(names) != len(row_class._fields):  # type: ignore[attr-defined]
            head = tuple(fixed.values())
            rows = [(*head, *(getattr(row, name) for name in names)) for row in rows]
        self._connection.insert(self._metadata.target(row_class), types, rows)

    def update(self, row_class: RowClass, changes: Mapping[str, object], where: Mapping[str, object]) -> None:
        """Set columns of the rows whose columns equal `where`; None there means IS NULL, a list any of its values."""
        values = list(changes.values())
        settings = ", ".join(f"{quoted(name)} = ${place}" for place, name in enumerate(changes, 1))
        condition = self._equal(row_class, where, values)
        self._connection.execute(f"UPDATE {self._metadata.target(row_class)} SET {settings}{condition}", values)

    def delete(self, row_class: RowClass, where: Mapping[str, object]) -> None:
        values: list[object] = []
        condition = self._equal(row_class, where, values)
        self._connection.execute(f"DELETE FROM {self._metadata.target(row_class)}{condition}", values)

    def delete_all(self, row_class: RowClass, column: str, values: Sequence[object]) -> None:
        """Delete the rows in which a column has one of the values, however many these are."""
        for some in in_chunks(values):
            self.delete(row_class, {column: some})

    def delete_where(self, row_class: RowClass, condition: str) -> None:
        """Delete the rows of a condition, in which `{snapshot}` stands for a table."""
        scope = "".join(
            f" AND {quoted(name)} = {value}" for name, value in self._metadata.layout.scope(row_class).items()
        )
        chosen = condition.format_map(self._metadata.relations)
        self._connection.execute(f"DELETE FROM {self._metadata.target(row_class)} WHERE {chosen}{scope}")

    def end(self, row_class: RowClass, snapshot: int, where: Mapping[str, object]) -> None:
        """End the live rows among those that equal `where`."""
        self.update(row_class, {"end_snapshot": snapshot}, {**where, "end_snapshot": None})

    def create(self, row_class: RowClass) -> None:
        types, physical = LOGICAL_TYPES[row_class], self.storage.physical_types
        key, required = self._metadata.keys_of(row_class)
        columns = (
            f"{quoted(name)} {physical[logical]}"
            + (" PRIMARY KEY" if name == key else " NOT NULL" if name in required else "")
            for name, logical in types.items()
        )
        self._connection.execute(f"CREATE TABLE {self._metadata.target(row_class)} ({', '.join(columns)})")

    def bound(self, logical_type: str, value: object) -> object:
        """A value as it is bound for comparison with a column of this logical type."""
        encode = self.storage.encode.get(logical_type)
        return value if encode is None else encode(value)

    def has_table(self, name: str) -> bool:
        return self._connection.has_table(name)

    def drop_table(self, name: str) -> None:
        """Drop a table for inlined rows, if it is there."""
        self._connection.drop(self._metadata.backend.qualified(name))

    # Tables beside those of spec.tables: one or two per table of the lake, for inlined rows.

    def run_on(self, table: str, sql: str, *values: object) -> list[Row]:
        """Rows of a statement in which `{table}` stands for a table that only its name describes."""
        return self._connection.rows(sql.format(table=self._metadata.backend.qualified(table)), values)

    def insert_into(self, table: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Insert rows whose columns have the given logical types."""
        self._connection.insert(self._metadata.backend.qualified(table), columns, rows)

    def _equal(self, row_class: RowClass, where: Mapping[str, object], values: list[object]) -> str:
        parts = []
        for name, value in {**self._metadata.layout.scope(row_class), **where}.items():
            if value is None:
                parts.append(f"{quoted(name)} IS NULL")
                continue
            found = value if isinstance(value, list) else [value]
            parts.append(f"{quoted(name)} IN ({places(len(values) + 1, len(found))})")
            values.extend(found)
        return f" WHERE {' AND '.join(parts)}" if parts else ""


class Metadata:
    """The metadata database of one lake: its backend, and the layout of its tables."""

    def __init__(self, backend: Backend, layout: Layout) -> None:
        self.backend, self.layout = backend, layout
        self.relations = layout.relations(backend.qualified)
        self._open = threading.local()
        self._selects: dict[RowClass, tuple[str, Callable[[Row], Row] | None]] = {}

    @contextmanager
    def reading(self) -> Iterator[MetadataSession]:
        """A transaction that sees one state. Within it, further readings of the same thread are part of it."""
        if (session := getattr(self._open, "session", None)) is not None:
            yield session
            return
        try:
            with self.backend.reading() as connection:
                self._open.session = MetadataSession(self, connection)
                try:
                    yield self._open.session
                finally:
                    self._open.session = None
        except Contended as error:
            raise MetadataQueryFailed(self.backend.name, f"another writer kept it from reading ({error})") from error

    @contextmanager
    def writing(self) -> Iterator[MetadataSession]:
        """A transaction that commits when its block ends; raises `Contended` and `CommitBroken` as the backend does."""
        if getattr(self._open, "session", None) is not None:
            raise ChangeRefused("commit", "this thread is still reading the lake", "Leave the block of `Lake.reading`.")
        with self.backend.writing() as connection:
            yield MetadataSession(self, connection)

    def select_of(self, row_class: RowClass) -> tuple[str, Callable[[Row], Row] | None]:
        if row_class not in self._selects:
            types, storage = LOGICAL_TYPES[row_class], self.backend.storage
            shown = ", ".join(storage.selected(logical, quoted(name)) for name, logical in types.items())
            select = f"SELECT {shown} FROM {self.relations[TABLES[row_class]]} AS {TABLES[row_class]}_rows "
            self._selects[row_class] = (select, decoder(storage, list(types.values())))
        return self._selects[row_class]

    def target(self, row_class: RowClass) -> str:
        return self.backend.qualified(f"ducklake_{TABLES[row_class]}")

    def keys_of(self, row_class: RowClass) -> tuple[str | None, tuple[str, ...]]:
        return PRIMARY_KEYS.get(row_class), ("key", "value") if row_class is MetadataRow else ()
