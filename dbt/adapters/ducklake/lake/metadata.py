"""The one way to the `ducklake_*` tables: every query of this room goes through here, in terms of `spec.tables`.

What a table is called, which columns it has and whose rows are visible is the layout's business and known nowhere else.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeVar

from dbt.adapters.ducklake.lake.backends.base import Backend, Connection, Contended, Row, decoder
from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    InvalidMetadata,
    LakeMigrated,
    MetadataQueryFailed,
    UnsupportedLayout,
)
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.layout import SNAPSHOT_IDS, Layout
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


_TABLE_IN_SQL = re.compile(r"\{(\w+)\}(?! AS\b)")
TENANTS = "ducklake_catalog"
LINEAGE = "ducklake_snapshot_lineage"
COUNTERS = "ducklake_snapshot_counters"


@cache
def _with_aliases(sql: str) -> str:
    """An alias for each table that has none: what stands for one may be a query, which PostgreSQL before 16 reads by an
    alias only."""
    return _TABLE_IN_SQL.sub(r"{\1} AS \1_rows", sql)


class Head(NamedTuple):
    """The newest snapshot of the lake (`latest`) and of all lakes in its metadata (`previous`), which are the same in
    the standard layout; the id of the next one, and the counters that it goes on with."""

    latest: int
    previous: int
    next_snapshot: int
    schema_version: int
    next_catalog_id: int
    next_file_id: int


class MetadataSession:
    """The metadata tables within one transaction."""

    def __init__(self, metadata: Metadata, connection: Connection) -> None:
        self.storage, self.layout = metadata.backend.storage, metadata.layout
        # Snapshots that this transaction has seen to be there.
        self.seen: set[int] = set()
        self._metadata, self._connection = metadata, connection

    def read(self, row_class: type[R], rest: str = "", *values: object) -> list[R]:
        """All rows of a table that `rest` (WHERE …, ORDER BY …) leaves; columns are named as in `row_class`."""
        select, decode = self._metadata.select_of(row_class)
        found = self._connection.rows(select + self._with_tables(rest), values)
        make: Callable[[Row], R] = row_class._make  # type: ignore[attr-defined]
        return [make(decode(row)) for row in found] if decode else [make(row) for row in found]

    def query(self, sql: str, *values: object) -> list[Row]:
        """Rows of any SELECT; `{data_file}` stands for a table. Uuids and times come as the driver has them."""
        return self._connection.rows(self._with_tables(sql), values)

    def _with_tables(self, sql: str) -> str:
        return _with_aliases(sql).format_map(self._metadata.relations)

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert rows of one row class."""
        if not rows:
            return
        row_class, layout = type(rows[0]), self._metadata.layout
        if not layout.has(row_class):
            raise ChangeRefused(
                "commit", f"the {layout.name} layout of metadata has no table {TABLES[row_class]}", "Leave that out."
            )
        names, fixed = layout.physical(row_class), layout.scope(row_class)
        logical = LOGICAL_TYPES[row_class]
        types = {**dict.fromkeys(fixed, "BIGINT"), **{name: logical.get(name, "VARCHAR") for name in names}}
        if fixed or tuple(names) != row_class._fields:  # type: ignore[attr-defined]
            head = tuple(fixed.values())
            # Rows of which the layout tells no difference are one.
            rows = list(dict.fromkeys((*head, *(value(row) for value in names.values())) for row in rows))
        self._connection.insert(self._metadata.target(row_class), types, rows)

    def head(self) -> Head:
        """What a new snapshot follows. From here to the end of the transaction no other client of ours commits."""
        if self.layout.is_shared:
            head = self.head_of_all()
            own = self.query("SELECT max(snapshot_id) FROM {snapshot}")[0][0]
            return head._replace(latest=own)
        latest = self.newest_snapshot()
        counters = latest.schema_version, latest.next_catalog_id, latest.next_file_id
        return Head(latest.snapshot_id, latest.snapshot_id, latest.snapshot_id + 1, *counters)

    def newest_snapshot(self) -> tables.Snapshot:
        """The newest snapshot; LakeMigrated where the metadata have another version than when they were opened."""
        newest = "snapshot_id = (SELECT max(snapshot_id) FROM {snapshot})"
        if self.layout.is_shared:
            found = self.read(tables.Snapshot, f"WHERE {newest}")
        else:
            other = 'SELECT 1 FROM {metadata} WHERE "key" = \'version\' AND "value" <> $1'
            found = self.read(tables.Snapshot, f"WHERE {newest} AND NOT EXISTS ({other})", self.layout.version)
        if found:
            return found[0]
        versions = [row.value for row in self.read(tables.Metadata) if row.key == "version" and row.scope is None]
        if versions not in ([], [self.layout.version]):
            raise LakeMigrated(self._metadata.backend.name, self.layout.version, versions[0])
        raise InvalidMetadata("ducklake_snapshot is empty", "DuckDB cannot open this lake either.")

    def head_of_all(self) -> Head:
        """The head of all tenants of a shared layout, whose counters go on over all of them."""
        # Before anything is read: other clients than ours write there too.
        self._connection.lock(self._metadata.backend.qualified(LINEAGE))
        if self._connection.has_function(COUNTERS):
            # Of roles that do not see the other tenants' snapshots.
            previous, *counters = self.run_on(COUNTERS, "SELECT * FROM {table}()")[0]
        else:
            # Ids may come out of order, and the newest need not have the highest counters.
            previous, *counters = self.run_on(
                f"ducklake_{TABLES[tables.Snapshot]}",
                "SELECT max(snapshot_id), max(schema_version), max(next_catalog_id), max(next_file_id) FROM {table} "
                "WHERE snapshot_id > (SELECT max(snapshot_id) FROM {table}) - 1000",
            )[0]
        taken = self._connection.next_value(self._metadata.backend.qualified(SNAPSHOT_IDS))
        return Head(previous, previous, taken, *counters)

    def add_snapshot(self, head: Head, row: tables.Snapshot) -> None:
        """Insert a snapshot: the first row of a commit, so that a writer who was faster is met before all else."""
        if self.layout.is_shared:
            lineage = dict.fromkeys(("catalog_id", "previous_snapshot_id", "snapshot_id"), "BIGINT")
            self.insert_into(LINEAGE, lineage, [(self.layout.tenant, head.previous, row.snapshot_id)])
        self.insert([row])

    def through(self, layout: Layout) -> MetadataSession:
        """The same transaction, through another layout."""
        return MetadataSession(Metadata(self._metadata.backend, layout), self._connection)

    def columns_of(self, table: str) -> list[str]:
        return self._connection.columns_of(table)

    def keep_unique(self, table: str, columns: Sequence[str]) -> None:
        """What is live has these columns' values once, where the database can see to that."""
        self._connection.keep_unique(self._metadata.backend.qualified(table), columns)

    def refuse_without_sequences(self) -> None:
        backend = self._metadata.backend
        if not backend.has_sequences:
            raise UnsupportedLayout(
                backend.name, "they are to be shared between tenants, and SQLite has no sequence for their snapshots",
                "Use PostgreSQL or a DuckDB file, or give each tenant a file of its own.",
            )  # fmt: skip

    def refuse_shared_files(self, asked: str, to_do: str) -> None:
        """What a forked tenant needs no more its forks may, and it what they need no more. Asked anew each time: a fork
        may have come since the lake was opened."""
        if not self.layout.is_shared:
            return
        related = "parent_catalog_id = $1 OR catalog_id = $1 AND parent_catalog_id IS NOT NULL"
        sql = f"SELECT count(*) FROM {{table}} WHERE end_snapshot IS NULL AND ({related})"
        if self.run_on(TENANTS, sql, self.layout.tenant)[0][0]:
            found = "this tenant was forked or has forks, and what it needs no more another may read"
            raise ChangeRefused(asked, found, to_do)

    def commits_between(self, base: int, latest: int) -> int:
        """How many snapshots were made after one, up to another, expired ones too."""
        if not self.layout.is_shared:
            return latest - base
        within = "catalog_id = $1 AND snapshot_id > $2 AND snapshot_id <= $3"
        return int(self.run_on(LINEAGE, f"SELECT count(*) FROM {{table}} WHERE {within}", self.layout.tenant, base,
                               latest)[0][0])  # fmt: skip

    def update(self, row_class: RowClass, changes: Mapping[str, object], where: Mapping[str, object]) -> None:
        """Set columns of the rows whose columns equal `where`; None there means IS NULL, a list any of its values."""
        if not self.layout.has(row_class):
            return
        values = list(changes.values())
        settings = ", ".join(f"{quoted(name)} = ${place}" for place, name in enumerate(changes, 1))
        condition = self._equal(row_class, where, values)
        self._connection.execute(f"UPDATE {self._metadata.target(row_class)} SET {settings}{condition}", values)

    def delete(self, row_class: RowClass, where: Mapping[str, object]) -> None:
        if not self.layout.has(row_class):
            return
        values: list[object] = []
        condition = self._equal(row_class, where, values)
        self._connection.execute(f"DELETE FROM {self._metadata.target(row_class)}{condition}", values)

    def delete_all(self, row_class: RowClass, column: str, values: Sequence[object]) -> None:
        """Delete the rows in which a column has one of the values, however many these are."""
        for some in in_chunks(values):
            self.delete(row_class, {column: some})

    def delete_where(self, row_class: RowClass, condition: str) -> None:
        """Delete the rows of a condition, in which `{snapshot}` stands for a table."""
        if not self.layout.has(row_class):
            return
        scope = "".join(
            f" AND {quoted(name)} = {value}" for name, value in self._metadata.layout.scope(row_class).items()
        )
        chosen = self._with_tables(condition)
        self._connection.execute(f"DELETE FROM {self._metadata.target(row_class)} WHERE {chosen}{scope}")

    def end(self, row_class: RowClass, snapshot: int, where: Mapping[str, object]) -> None:
        """End the live rows among those that equal `where`."""
        self.update(row_class, {"end_snapshot": snapshot}, {**where, "end_snapshot": None})

    def create(self, row_class: RowClass) -> None:
        types, physical = LOGICAL_TYPES[row_class], self.storage.physical_types
        key, required = self._metadata.keys_of(row_class)
        columns = (
            f"{quoted(name)} {physical[types[name]]}"
            + (" PRIMARY KEY" if name == key else " NOT NULL" if name in required else "")
            for name in self.layout.columns(row_class)
        )
        self._connection.execute(f"CREATE TABLE {self._metadata.target(row_class)} ({', '.join(columns)})")

    def bound(self, logical_type: str, value: object) -> object:
        """A value as it is bound for comparison with a column of this logical type."""
        encode = self.storage.encode.get(logical_type)
        return value if encode is None else encode(value)

    def has_table(self, name: str) -> bool:
        return self._connection.has_table(name)

    def wait_little(self) -> None:
        self._connection.wait_little()

    def retype(self, table: str, columns: Sequence[Column]) -> list[str]:
        """Give the columns of a table of inlined rows the types that they have today; the names of those changed."""
        return self._connection.retype(table, self._metadata.backend.qualified(table), columns)

    def drop_table(self, name: str) -> None:
        """Drop a table for inlined rows, if it is there."""
        self._connection.drop(self._metadata.backend.qualified(name))

    # Tables beside those of spec.tables: one or two per table of the lake, for inlined rows.

    def run(self, sql: str, *values: object) -> list[Row]:
        """Rows of any statement of the database's own."""
        return self._connection.rows(sql, values)

    def run_on(self, table: str, sql: str, *values: object) -> list[Row]:
        """Rows of a statement in which `{table}` stands for a table that only its name describes, and `{row_id}`,
        `{begin}` and `{end}` for the columns that lead those of inlined rows."""
        named = {"table": self._metadata.backend.qualified(table), **self.layout.inlined._asdict()}
        return self._connection.rows(sql.format_map(named), values)

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
            if connection.failed is not None:
                raise connection.failed

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
