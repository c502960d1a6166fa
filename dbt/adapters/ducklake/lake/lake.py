"""An open lake: the way to its snapshots, transactions and options."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from dbt.adapters.ducklake.lake.backends.base import CommitBroken
from dbt.adapters.ducklake.lake.description import LakeDescription
from dbt.adapters.ducklake.lake.errors import (
    InvalidOption,
    MetadataQueryFailed,
    ReadOnlyLake,
    SnapshotNotFound,
)
from dbt.adapters.ducklake.lake.maintenance.maintenance import Maintenance
from dbt.adapters.ducklake.lake.metadata import Metadata, MetadataSession
from dbt.adapters.ducklake.lake.names import SnapshotId
from dbt.adapters.ducklake.lake.options import Options, read_options, store_option, stored_value
from dbt.adapters.ducklake.lake.protection import isolation
from dbt.adapters.ducklake.lake.snapshot.snapshot import CommitInfo, Snapshot
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.indexes import INDEXES, index_name
from dbt.adapters.ducklake.lake.spec.tables import TABLES
from dbt.adapters.ducklake.lake.transaction.commit import in_attempts
from dbt.adapters.ducklake.lake.transaction.transaction import Transaction


class Lake:
    """An open lake. Nothing stays open on a DuckDB or SQLite file between transactions. Safe to share between
    threads."""

    def __init__(self, metadata: Metadata, description: LakeDescription, data_path: str) -> None:
        self.description, self.data_path = description, data_path
        self._metadata = metadata
        self._lock = threading.Lock()
        self._kept: dict[tuple[SnapshotId, SnapshotId], Snapshot] = {}

    @property
    def name(self) -> str:
        return self._metadata.backend.name

    @property
    def own_path(self) -> str:
        """Below which the lake's own files lie; others' may lie beside it below the data path."""
        return self.data_path + self._metadata.layout.folder

    @property
    def keeps_sort_keys(self) -> bool:
        return self._metadata.layout.has(tables.SortInfo)

    @property
    def nests_schemas(self) -> bool:
        """Whether schemas may lie in others."""
        return self._metadata.layout.nests_schemas

    @property
    def merges_across_columns(self) -> bool:
        """Whether a file may have columns that came after its first rows."""
        return self._metadata.layout.merges_across_columns

    @property
    def keeps_comments_on_columns_of_views(self) -> bool:
        return self._metadata.layout.has(tables.ViewColumnTag)

    @property
    def is_one_of_many(self) -> bool:
        """Whether there may be others in its metadata database."""
        return self.is_shared or self.description.metadata_schema is not None

    @property
    def is_shared(self) -> bool:
        """Whether its metadata tables hold those of other tenants too."""
        return self._metadata.layout.is_shared

    def isolation(self) -> str:
        """What keeps its metadata from those of other lakes and tenants, for people."""
        return isolation(self._metadata)

    @property
    def is_read_only(self) -> bool:
        return self._refusal() is not None

    def snapshot(self, version: int | None = None, time: datetime | None = None) -> Snapshot:
        """The lake at a version, at a time (the latest snapshot not after it), or now.

        A lake that was opened at a version or time is always seen there.
        """
        if version is None and time is None:
            version, time = self.description.snapshot_version, self.description.snapshot_time
        with self._metadata.reading() as session:
            row = _snapshot_row(session, version, time)
            is_newest = version is None and time is None
            newest = row.snapshot_id if is_newest else _snapshot_row(session, None, None).snapshot_id
            session.seen.add(row.snapshot_id)
        # A later commit may put other files in the place of an older snapshot's, which then go.
        key = SnapshotId(row.snapshot_id), SnapshotId(newest)
        with self._lock:
            if key not in self._kept:
                # More than the newest is kept, for statements that are still being answered from another.
                self._kept = dict([*self._kept.items(), (key, self._snapshot_of(row))][-8:])
            return self._kept[key]

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """The lake now, with all that is read of it within the block in one transaction of the metadata database.

        What one statement needs is read so: it costs one opening of a file instead of several. Keep the block short.
        """
        with self._metadata.reading():
            yield self.snapshot()

    def snapshots(self) -> list[CommitInfo]:
        """All snapshots that are kept, with what their commits said."""
        with self._metadata.reading() as session:
            commits = {row.snapshot_id: row for row in session.read(tables.SnapshotChanges)}
            rows = session.read(tables.Snapshot, "ORDER BY snapshot_id")
        return [_commit_info(row, commits.get(row.snapshot_id)) for row in rows]

    def commit_info(self, version: int) -> CommitInfo:
        with self._metadata.reading() as session:
            row = _snapshot_row(session, version, None)
            changes = session.read(tables.SnapshotChanges, "WHERE snapshot_id = $1", version)
        return _commit_info(row, changes[0] if changes else None)

    def transaction(self, base: Snapshot | None = None) -> Transaction:
        """A transaction whose changes are planned on a snapshot: the newest, unless another is given."""
        return Transaction(
            self._metadata,
            base or self.snapshot(),
            self.description.patience,
            self.description.data_inlining_row_limit,
            self._refusal(),
        )

    def options(self) -> Options:
        """The lake's options. They belong to no snapshot."""
        with self._metadata.reading() as session:
            return read_options(session, self.description.data_inlining_row_limit)

    def set_option(self, key: str, value: object, schema: str | None = None, table: str | None = None) -> None:
        """Set an option of the lake, of a schema or of a table. This makes no snapshot and holds at once."""
        self._check_writable()
        if table is not None and schema is None:
            raise InvalidOption(key, f"found table {table} without its schema", "Name both.")
        stored = stored_value(key, value)
        scope, scope_id = self._scope(schema, table)
        row = tables.Metadata(key, stored, scope, scope_id)
        try:
            in_attempts(self._metadata, self.description.patience, lambda session: store_option(session, row))
        except CommitBroken as error:
            raise MetadataQueryFailed(self.name, f"the connection broke, so {key} may be set or not") from error

    @property
    def maintenance(self) -> Maintenance:
        return Maintenance(self._metadata, self.description.patience, self.data_path, self._check_writable)

    def add_indexes(self) -> list[str]:
        """Add the indexes that keep reading a large lake on PostgreSQL fast; their names. Files need none, and get
        none.

        DuckLake's own tables stay as they are, and DuckDB does not mind. Writers are not kept waiting.
        """
        self._check_writable()
        backend = self._metadata.backend
        return [
            index_name(row_class, columns)
            for row_class, columns in INDEXES
            if backend.add_index(index_name(row_class, columns), f"ducklake_{TABLES[row_class]}", columns)
        ]

    def take_warnings(self) -> list[str]:
        """What is to be told of the metadata's place, once."""
        found = list(self._metadata.backend.warnings)
        self._metadata.backend.warnings.clear()
        return found

    def close(self) -> None:
        self._metadata.backend.close()

    def __enter__(self) -> Lake:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _scope(self, schema: str | None, table: str | None) -> tuple[str | None, int | None]:
        if schema is None:
            return None, None
        snapshot = self.snapshot()
        return ("schema", snapshot.schema(schema).id) if table is None else ("table", snapshot.table(schema, table).id)

    def _check_writable(self) -> None:
        if (refusal := self._refusal()) is not None:
            raise ReadOnlyLake(self.name, refusal)

    def _refusal(self) -> str | None:
        if self.description.is_time_travel:
            return "at a snapshot of the past"
        if self.description.read_only:
            return "`read_only: true`"
        return None

    def _snapshot_of(self, row: tables.Snapshot) -> Snapshot:
        return Snapshot(self._metadata, row, self.data_path)


def _snapshot_row(session: MetadataSession, version: int | None, time: datetime | None) -> tables.Snapshot:
    asked = time if version is None else version
    if asked is None:
        return session.newest_snapshot()
    if isinstance(asked, int):
        found = session.read(tables.Snapshot, "WHERE snapshot_id = $1", asked)
    else:
        # DuckDB goes by the clock, not by the order of commits, and takes the first of those that have one time.
        moment = session.bound("TIMESTAMPTZ", asked.astimezone(UTC))
        found = session.read(
            tables.Snapshot, "WHERE snapshot_time <= $1 ORDER BY snapshot_time DESC, snapshot_id LIMIT 1", moment
        )
    if found:
        return found[0]
    oldest, latest = session.query("SELECT min(snapshot_id), max(snapshot_id) FROM {snapshot}")[0]
    raise SnapshotNotFound(asked, oldest, latest)


def _commit_info(row: tables.Snapshot, said: tables.SnapshotChanges | None) -> CommitInfo:
    return CommitInfo(
        id=SnapshotId(row.snapshot_id),
        time=row.snapshot_time,
        schema_version=row.schema_version,
        changes=said.changes_made if said else None,
        author=said.author if said else None,
        message=said.commit_message if said else None,
        extra_info=said.commit_extra_info if said else None,
    )
