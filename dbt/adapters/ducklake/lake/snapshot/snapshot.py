"""The lake at one snapshot. It never changes, so whatever was read of it once is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from dbt.adapters.ducklake.lake.definitions import Macro, Schema, Table, TableName, View
from dbt.adapters.ducklake.lake.errors import SchemaNotFound, SnapshotNotFound, TableNotFound
from dbt.adapters.ducklake.lake.metadata import Metadata, MetadataSession
from dbt.adapters.ducklake.lake.names import FileId, SnapshotId, exact_path, fold, path_in
from dbt.adapters.ducklake.lake.snapshot import load
from dbt.adapters.ducklake.lake.snapshot.feed import TableChanges, load_changes
from dbt.adapters.ducklake.lake.snapshot.files import TableFiles, inlined_deletes_of, load_files
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedTable, all_inlined
from dbt.adapters.ducklake.lake.snapshot.pruning import Predicate
from dbt.adapters.ducklake.lake.spec import tables

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """What the lake counts of a table, for its newest snapshot only: rows ever inserted and bytes added, which newer
    clients may leave unknown, and the next row id."""

    record_count: int | None
    next_row_id: int
    file_size: int | None
    columns: tuple[tables.TableColumnStats, ...]


class Snapshot:
    """Schemas, tables, views and files at one snapshot, each read when it is first asked for.

    Reading one thing takes a few queries in one transaction, whatever else the lake holds. A snapshot that expires
    meanwhile is `SnapshotNotFound`. Safe to share between threads.
    """

    def __init__(self, metadata: Metadata, row: tables.Snapshot, data_path: str) -> None:
        self.id = SnapshotId(row.snapshot_id)
        self.time = row.snapshot_time
        self.schema_version = row.schema_version
        self.data_path = data_path
        self._row, self._metadata = row, metadata
        self._kept: dict[object, Any] = {}

    def __repr__(self) -> str:
        return f"Snapshot({self.id})"

    @property
    def counters(self) -> tables.Snapshot:
        return self._row

    def at(self, version: int) -> Snapshot:
        """Another snapshot of the same lake."""
        with self._metadata.reading() as session:
            rows = session.read(tables.Snapshot, "WHERE snapshot_id = $1", version)
            if not rows:
                raise _not_found(session, version)
            session.seen.add(version)
        return Snapshot(self._metadata, rows[0], self.data_path)

    def schemas(self) -> tuple[Schema, ...]:
        return self._once("schemas", lambda session: load.load_schemas(session, self.id))

    def schema(self, name: str) -> Schema:
        found = self.find_schema(name)
        if found is None:
            raise SchemaNotFound(name, self.id, [schema.name for schema in self.schemas()])
        return found

    def find_schema(self, name: str) -> Schema | None:
        """A schema of that whole name, or else the one within others that it names by its dots."""
        found = (self.schema_at(path) for path in self.paths_of(name))
        return next((schema for schema in found if schema is not None), None)

    def paths_of(self, name: str) -> tuple[tuple[str, ...], ...]:
        """What a schema's name may mean, part by part, in the order in which it is looked for."""
        path = path_in(name)
        if not self.nests_schemas or path == (name,):
            return ((name,),)
        return (path,) if name == exact_path(path) else ((name,), path)

    @property
    def nests_schemas(self) -> bool:
        return self._metadata.layout.nests_schemas

    def schema_at(self, path: tuple[str, ...]) -> Schema | None:
        if any("\0" in name for name in path):
            return None  # PostgreSQL cannot even be asked for it
        wanted = tuple(map(fold, path))

        def of_that_name(session: MetadataSession) -> Schema | None:
            schemas = self.schemas() if self.nests_schemas else load.load_schemas(session, self.id, path[0])
            return next((one for one in schemas if tuple(map(fold, one.parts)) == wanted), None)

        return self._once(("schema", wanted), of_that_name)

    def tables(self, schema: str) -> tuple[TableName, ...]:
        """The names of a schema's tables, without reading their columns."""
        return self.tables_in(self.schema(schema))

    def tables_in(self, found: Schema) -> tuple[TableName, ...]:
        return self._once(("names", found.id), lambda session: load.load_table_names(session, self.id, found))

    def views(self, schema: str) -> tuple[View, ...]:
        return self.views_in(self.schema(schema))

    def views_in(self, found: Schema) -> tuple[View, ...]:
        return self._once(("views", found.id), lambda session: load.load_views(session, self.id, found))

    def macros_in(self, found: Schema) -> tuple[Macro, ...]:
        return self._once(("macros", found.id), lambda session: load.load_macros(session, self.id, found))

    def definitions(self, schema: str) -> tuple[Table, ...]:
        """All tables of a schema with their columns, in as many queries as one table takes."""
        found, names = self.schema(schema), self.tables(schema)

        def all_of_them(session: MetadataSession) -> tuple[Table, ...]:
            return load.load_tables(session, self.id, names, self.data_path, load.OF_SCHEMA, found.id)

        return self._once(("definitions", found.id), all_of_them)

    def find(self, schema: str, name: str) -> Table | View | None:
        """The table or view of that name; they share their names, so there is at most one."""
        found = self.find_schema(schema)
        return None if found is None else self.find_in(found, name)

    def find_in(self, found: Schema, name: str) -> Table | View | None:
        if "\0" in name:
            return None

        def table_or_view(session: MetadataSession) -> Table | View | None:
            named = _named(load.load_table_names(session, self.id, found, name), name)
            if named is None:
                return _named(load.load_views(session, self.id, found, name), name)
            return load.load_tables(session, self.id, [named], self.data_path, load.OF_TABLE, named.id)[0]

        return self._once(("object", found.id, fold(name)), table_or_view)

    def table(self, schema: str, name: str) -> Table:
        found = self.find(schema, name)
        if not isinstance(found, Table):
            there = [table.name for table in self.tables(schema)]
            raise TableNotFound(schema, name, self.id, there)
        return found

    def view(self, schema: str, name: str) -> View:
        found = self.find(schema, name)
        if not isinstance(found, View):
            raise TableNotFound(schema, name, self.id, [view.name for view in self.views(schema)], kind="View")
        return found

    def files(self, table: Table, where: Sequence[Predicate] = ()) -> TableFiles:
        """What the table's rows are made of, less the data files in which no row can satisfy all predicates.

        Inlined rows are never pruned. A file that is kept may still hold no such row.
        """
        key = ("files", table, tuple(map(repr, where)))
        return self._once(key, lambda session: load_files(session, self.id, table, where))

    def layouts(self, table: Table) -> tuple[SnapshotId, ...]:
        """The snapshots that changed the table's layout: files from before and after one differ in what they hold."""

        def load_them(session: MetadataSession) -> tuple[SnapshotId, ...]:
            of_table = "SELECT begin_snapshot FROM {{{}}} WHERE table_id = $1 AND begin_snapshot <= $2"
            # Where a version is told of the snapshot alone, the table's columns and partition keys tell.
            is_told = session.layout.tells_versions_of_tables
            told_by = ("schema_versions",) if is_told else ("column", "partition_info")
            sql = " UNION ".join(of_table.format(name) for name in told_by)
            rows = session.query(f"{sql} ORDER BY 1", table.id, self.id)
            return tuple(SnapshotId(row[0]) for row in rows)

        return self._once(("layouts", table.id), load_them)

    def as_of(self, table: Table, since: SnapshotId) -> Table:
        """The table as it was at an earlier snapshot, which may have expired: what files from then are made of."""
        if self.layouts(table)[-1:] == (since,):
            return table

        def load_it(session: MetadataSession) -> Table:
            return load.load_tables(session, since, [table.named], self.data_path, load.OF_TABLE, table.id)[0]

        return self._once(("as of", table.id, since), load_it)

    def inlined(self, table: Table) -> tuple[InlinedTable, ...]:
        """All inlined rows, deleted ones too, as they were written."""
        return self._once(("inlined", table.id), lambda session: all_inlined(session, self.id, table))

    def inlined_deletes(self, table: Table) -> dict[FileId, list[tuple[int, SnapshotId]]]:
        """Deleted positions of data files that the metadata hold, each with its snapshot."""
        return self._once(("inlined deletes", table.id), lambda session: inlined_deletes_of(session, table.id, self.id))

    def changes(self, table: Table, since: SnapshotId) -> TableChanges:
        """The change feed from `since` to this snapshot, both included."""
        key = ("changes", table, since)
        return self._once(key, lambda session: load_changes(session, table, since, self.id))

    def statistics(self, table: Table) -> TableStatistics | None:
        """Counts and bounds of the newest snapshot, as there are no others. None before the first insert."""
        with self._reading() as session:
            rows = session.read(tables.TableStats, "WHERE table_id = $1", table.id)
            columns = session.read(tables.TableColumnStats, "WHERE table_id = $1 ORDER BY column_id", table.id)
        if not rows:
            return None
        return TableStatistics(rows[0].record_count, rows[0].next_row_id, rows[0].file_size_bytes, tuple(columns))

    def _once(self, key: object, load_it: Callable[[MetadataSession], T]) -> T:
        if key not in self._kept:
            # No lock is held while loading: a thread in `Lake.reading` already holds the metadata file. Two threads may
            # load the same; both get the value that was there first.
            with self._reading() as session:
                loaded = load_it(session)
            self._kept.setdefault(key, loaded)
        return self._kept[key]  # type: ignore[no-any-return]

    @contextmanager
    def _reading(self) -> Iterator[MetadataSession]:
        with self._metadata.reading() as session:
            # Expiry takes away the rows that only expired snapshots saw, so what is left would be misread.
            if self.id not in session.seen:
                if not session.query("SELECT 1 FROM {snapshot} WHERE snapshot_id = $1", self.id):
                    raise _not_found(session, self.id)
                session.seen.add(self.id)
            yield session


def _not_found(session: MetadataSession, version: int) -> SnapshotNotFound:
    oldest, latest = session.query("SELECT min(snapshot_id), max(snapshot_id) FROM {snapshot}")[0]
    return SnapshotNotFound(version, oldest, latest)


Named = TypeVar("Named", TableName, View)


def _named(found: Sequence[Named], name: str) -> Named | None:
    """The database's lower() may find more than the one that DuckLake takes for equal."""
    return next((one for one in found if fold(one.name) == fold(name)), None)


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One line of the snapshot list."""

    id: SnapshotId
    time: datetime
    schema_version: int
    changes: str | None
    author: str | None
    message: str | None
    extra_info: str | None
