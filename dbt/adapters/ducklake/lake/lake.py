"""A lake: where it is, how it is opened, and the way to its snapshots and transactions."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from dbt.adapters.ducklake.lake.backends import backend_for
from dbt.adapters.ducklake.lake.backends.base import Backend, CommitBroken, Contended
from dbt.adapters.ducklake.lake.description import LakeDescription
from dbt.adapters.ducklake.lake.errors import (
    CannotOpen,
    DataPathDiffers,
    DataPathMissing,
    InvalidMetadata,
    InvalidOption,
    LakeEncrypted,
    LakeNotFound,
    MetadataQueryFailed,
    ReadOnlyLake,
    SnapshotNotFound,
    TenantNotFound,
    UnsupportedLayout,
    UnsupportedVersion,
)
from dbt.adapters.ducklake.lake.maintenance.maintenance import Maintenance
from dbt.adapters.ducklake.lake.metadata import Metadata, MetadataSession
from dbt.adapters.ducklake.lake.names import SnapshotId
from dbt.adapters.ducklake.lake.options import Options, options_from_rows, read_options, stored_value
from dbt.adapters.ducklake.lake.paths import as_data_path, same_data_path
from dbt.adapters.ducklake.lake.snapshot.snapshot import CommitInfo, Snapshot
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.indexes import INDEXES, index_name
from dbt.adapters.ducklake.lake.spec.layout import STANDARD, SUPPORTED_VERSION, shared
from dbt.adapters.ducklake.lake.spec.tables import TABLES
from dbt.adapters.ducklake.lake.transaction.commit import Patience, in_attempts
from dbt.adapters.ducklake.lake.transaction.transaction import Transaction

CREATED_BY = "dbt-ducklake"
# Older layouts that DuckDB brings to 1.0 itself.
_MIGRATED_BY_DUCKDB = ("0.1", "0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4")


def connect(description: LakeDescription) -> Lake:
    """Open a lake, or make it where its description allows. Any reason why it cannot be is a `CannotOpen`."""
    backend = backend_for(description)
    try:
        return _opened(backend, description)
    except BaseException:
        backend.close()
        raise


class Lake:
    """An open lake. Nothing stays open on a DuckDB or SQLite file between transactions. Safe to share between
    threads."""

    def __init__(self, metadata: Metadata, description: LakeDescription, data_path: str) -> None:
        self.description, self.data_path = description, data_path
        self._metadata = metadata
        self._lock = threading.Lock()
        self._kept: dict[SnapshotId, Snapshot] = {}

    @property
    def name(self) -> str:
        return self._metadata.backend.name

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
            session.seen.add(row.snapshot_id)
        with self._lock:
            if row.snapshot_id not in self._kept:
                # One more than the newest is kept, for a statement that is still being answered from it.
                self._kept = dict([*self._kept.items(), (SnapshotId(row.snapshot_id), self._snapshot_of(row))][-8:])
            return self._kept[SnapshotId(row.snapshot_id)]

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
        where = {"key": key, "scope": scope, "scope_id": scope_id}

        def store(session: MetadataSession) -> None:
            known = {(row.key, row.scope, row.scope_id) for row in session.read(tables.Metadata)}
            if (key, scope, scope_id) in known:
                session.update(tables.Metadata, {"value": stored}, where)
            else:
                session.insert([tables.Metadata(key, stored, scope, scope_id)])

        try:
            in_attempts(self._metadata, self.description.patience, store)
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
        if not self._metadata.layout.writable:
            return f"this version does not write the {self._metadata.layout.name} layout of metadata"
        return None

    def _snapshot_of(self, row: tables.Snapshot) -> Snapshot:
        return Snapshot(self._metadata, row, self.data_path)


def _snapshot_row(session: MetadataSession, version: int | None, time: datetime | None) -> tables.Snapshot:
    if version is not None:
        found = session.read(tables.Snapshot, "WHERE snapshot_id = $1", version)
    elif time is not None:
        # DuckDB goes by the clock, not by the order of commits.
        moment = session.bound("TIMESTAMPTZ", time.astimezone(UTC))
        found = session.read(
            tables.Snapshot, "WHERE snapshot_time <= $1 ORDER BY snapshot_time DESC, snapshot_id DESC LIMIT 1", moment
        )
    else:
        found = session.read(tables.Snapshot, "WHERE snapshot_id = (SELECT max(snapshot_id) FROM {snapshot})")
    if found:
        return found[0]
    oldest, latest = session.query("SELECT min(snapshot_id), max(snapshot_id) FROM {snapshot}")[0]
    asked = version if version is not None else time
    if asked is None:
        raise InvalidMetadata("ducklake_snapshot is empty", "DuckDB cannot open this lake either.")
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


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is at a place: whether it is a lake, in which layout, and its rows of ducklake_metadata."""

    metadata: Metadata
    rows: tuple[tables.Metadata, ...]

    def value(self, key: str) -> str | None:
        return next((row.value for row in self.rows if row.key == key and row.scope is None), None)


def _opened(backend: Backend, description: LakeDescription) -> Lake:
    found = _look(backend, description) if backend.exists() else None
    if found is None:
        _create(backend, description)
        found = _look(backend, description)
        if found is None:
            raise UnsupportedLayout(backend.name, "the lake was made and is not there", "Look who else writes there.")
    _refuse_encrypted(found, description)
    options_from_rows(found.rows, None)
    return Lake(found.metadata, description, _data_path(found, description))


def _look(backend: Backend, description: LakeDescription) -> _Found | None:
    metadata = Metadata(backend, STANDARD)
    with metadata.reading() as session:
        if not session.has_table("ducklake_metadata"):
            return None
        rows = tuple(session.read(tables.Metadata))
        version = next((row.value for row in rows if row.key == "version"), SUPPORTED_VERSION)
        is_shared = session.has_table("ducklake_catalog")
        tenant = _tenant(session, backend, description) if is_shared else None
    if tenant is None:
        _refuse_version(backend, version)
        if description.catalog is not None:
            found = f"`catalog` is {description.catalog!r}, but this lake's metadata is not shared between tenants"
            raise UnsupportedLayout(backend.name, found, "Leave `catalog` out.")
        return _Found(metadata, rows)
    return _Found(Metadata(backend, shared(tenant)), rows)


def _tenant(session: MetadataSession, backend: Backend, description: LakeDescription) -> int:
    if not session.has_table("ducklake_snapshot_lineage"):
        raise UnsupportedLayout(
            backend.name,
            "it has a table ducklake_catalog but no ducklake_snapshot_lineage, as early versions of the fork made it",
            "Bring it to the layout of the fork's last version. Do not let DuckDB migrate it.",
        )
    if description.catalog is None:
        raise UnsupportedLayout(backend.name, "it is shared between tenants", "Say which with `catalog`.")
    sql = "SELECT catalog_id FROM {table} WHERE catalog_name = $1 AND end_snapshot IS NULL"
    rows = session.run_on("ducklake_catalog", sql, description.catalog)
    if len(rows) != 1:
        raise TenantNotFound(backend.name, description.catalog)
    return int(rows[0][0])


def _refuse_version(backend: Backend, version: str) -> None:
    if version == SUPPORTED_VERSION:
        return
    if version in _MIGRATED_BY_DUCKDB:
        remedy = "Let DuckDB migrate it: ATTACH 'ducklake:…' AS lake (AUTOMATIC_MIGRATION true)."
    else:
        remedy = "DuckDB's ducklake extension for DuckDB 1.5 does not read it either: use the client that wrote it."
    raise UnsupportedVersion(backend.name, version, SUPPORTED_VERSION, remedy)


def _refuse_encrypted(found: _Found, description: LakeDescription) -> None:
    stored = found.value("encrypted")
    if stored == "true":
        raise LakeEncrypted(found.metadata.backend.name, "is encrypted")
    if stored not in (None, "false"):
        raise InvalidMetadata(f"`encrypted` is {stored!r}", "It is true or false.")
    if description.encrypted:
        raise LakeEncrypted(found.metadata.backend.name, "is not encrypted, and `encrypted: true` asks for one that is")


def _data_path(found: _Found, description: LakeDescription) -> str:
    name, stored, asked = found.metadata.backend.name, found.value("data_path"), description.data_path
    if stored is None and asked is None:
        raise DataPathMissing(name)
    if asked is None or stored is None or description.override_data_path:
        return as_data_path(asked or stored or "")
    if not same_data_path(asked, stored):
        raise DataPathDiffers(name, asked, stored)
    # Stored paths are put together by concatenation, so the stored spelling is the one to use.
    return as_data_path(stored)


def _create(backend: Backend, description: LakeDescription) -> None:
    if (refusal := description.creation_refused) is not None:
        raise LakeNotFound(backend.name, refusal)
    if description.catalog is not None:
        raise LakeNotFound(backend.name, "a shared metadata database is not made by this version")
    if description.encrypted:
        raise LakeEncrypted(backend.name, "would be made with `encrypted: true`")
    data_path = description.new_data_path
    if data_path is None:
        raise DataPathMissing(backend.name)
    metadata = Metadata(backend, STANDARD)
    try:
        backend.prepare()
        with metadata.writing() as session:
            if not session.has_table("ducklake_metadata"):
                _bootstrap(session, data_path)
    except (Contended, CommitBroken):
        # Someone else makes it in the same moment, or it may be made; whether it is there is looked at next.
        return
    except MetadataQueryFailed as error:
        raise CannotOpen(f"A lake cannot be made at {backend.name}. {error}") from error


def _bootstrap(session: MetadataSession, data_path: str) -> None:
    for row_class in tables.TABLES:
        session.create(row_class)
    session.insert([tables.Snapshot(0, datetime.now(UTC), 0, 1, 0)])
    session.insert([tables.SnapshotChanges(0, 'created_schema:"main"')])
    facts: Mapping[str, str] = {
        "version": SUPPORTED_VERSION,
        "created_by": CREATED_BY,
        "data_path": as_data_path(data_path),
        "encrypted": "false",
    }
    session.insert([tables.Metadata(key, value) for key, value in facts.items()])
    session.insert([tables.Schema(0, uuid4(), 0, None, "main", "main/", True)])


__all__ = ["Lake", "Patience", "connect"]
