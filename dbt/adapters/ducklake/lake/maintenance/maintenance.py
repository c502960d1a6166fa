"""What keeps a lake healthy beside new snapshots: old ones expire, files that nothing needs are told and forgotten.

This room does not touch files: it says which may be removed, and is told which were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from dbt.adapters.ducklake.lake.backends.base import CommitBroken
from dbt.adapters.ducklake.lake.errors import ChangeRefused, MetadataQueryFailed, SnapshotNotFound
from dbt.adapters.ducklake.lake.maintenance.expiry import Expired, expire
from dbt.adapters.ducklake.lake.maintenance.folders import table_folders
from dbt.adapters.ducklake.lake.maintenance.health import LakeHealth, TableHealth, lake_health, tables_health
from dbt.adapters.ducklake.lake.metadata import Metadata, MetadataSession
from dbt.adapters.ducklake.lake.paths import plain, stored_path
from dbt.adapters.ducklake.lake.snapshot.snapshot import Snapshot
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.indexes import INDEXES, index_name
from dbt.adapters.ducklake.lake.transaction.commit import Patience, in_attempts

T = TypeVar("T")
_LEAVE = "Drop the forks first, or leave the files."


@dataclass(frozen=True, slots=True)
class ScheduledFile:
    """A file that no snapshot needs any more, and since when it waits."""

    id: int
    path: str
    since: datetime


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """All files that the lake's metadata name, by `plain` paths, and the folders of its tables, dropped ones too."""

    in_use: frozenset[str]
    scheduled: frozenset[str]
    folders: frozenset[str]


class Maintenance:
    def __init__(
        self, metadata: Metadata, patience: Patience, data_path: str, check_writable: Callable[[], None]
    ) -> None:
        self._metadata, self._patience, self._data_path = metadata, patience, data_path
        self.check_writable = check_writable

    def expire(self, versions: Sequence[int]) -> Expired:
        """Let snapshots expire. Those that are gone already are passed over; the newest stays."""
        self.check_writable()

        def work(session: MetadataSession) -> Expired:
            # First of all, as it holds off others' commits: a fork between the question and the answer would lose rows.
            newest = session.head().latest
            session.refuse_shared_files("expire snapshots", _LEAVE)
            there = {row[0] for row in session.query("SELECT snapshot_id FROM {snapshot}")}
            if unknown := [version for version in versions if version > newest]:
                raise SnapshotNotFound(max(unknown), min(there), newest)
            if newest in versions:
                raise ChangeRefused(f"expire snapshot {newest}", "it is the newest, of which the lake lives")
            chosen = sorted(there.intersection(versions))
            return expire(session, chosen, self._data_path, datetime.now(UTC)) if chosen else Expired()

        return self._writing("expire snapshots", work)

    def scheduled_files(self) -> list[ScheduledFile]:
        """The files that wait for their removal, but for those whose path is in use still."""
        with self._metadata.reading() as session:
            session.refuse_shared_files("remove scheduled files", _LEAVE)
            rows = session.read(tables.FilesScheduledForDeletion, "ORDER BY schedule_start, data_file_id")
            in_use = _in_use(session, self._data_path)
        found = [ScheduledFile(row.data_file_id, self._full(row), row.schedule_start) for row in rows]
        return [file for file in found if plain(file.path) not in in_use]

    def forget_scheduled(self, files: Sequence[ScheduledFile]) -> None:
        """Files that are removed wait no longer."""
        self.check_writable()
        ids = [file.id for file in files]
        if ids:
            self._writing(
                "forget removed files",
                lambda session: session.delete_all(tables.FilesScheduledForDeletion, "data_file_id", ids),
            )

    def health(self, small: int, share: float) -> LakeHealth:
        """How the lake is; small files are those below a size, worn ones those with a share of deleted rows."""
        with self._metadata.reading() as session:
            return lake_health(session, small, share)

    def table_health(
        self, small: int, share: float, schema: str | None = None, name: str | None = None
    ) -> tuple[TableHealth, ...]:
        """How one table is, or each: one query, and one more for each table that has inlined ones."""
        with self._metadata.reading() as session:
            if schema is None or not session.layout.nests_schemas:
                return tables_health(session, small, share, schema, name)
            found = Snapshot(self._metadata, session.newest_snapshot(), self._data_path).find_schema(schema)
            return () if found is None else tables_health(session, small, share, found, name)

    def missing_indexes(self) -> list[str]:
        """The indexes that `Lake.add_indexes` would add."""
        there = self._metadata.backend.indexes()
        wanted = [index_name(*one) for one in INDEXES]
        return [] if there is None else [name for name in wanted if name not in there]

    def known_files(self) -> KnownFiles:
        with self._metadata.reading() as session:
            session.refuse_shared_files("look for orphans", _LEAVE)
            rows = session.read(tables.FilesScheduledForDeletion)
            folders = frozenset(f"{plain(one)}/" for one in table_folders(session, self._data_path).values())
            scheduled = frozenset(plain(self._full(row)) for row in rows)
            return KnownFiles(_in_use(session, self._data_path), scheduled, folders)

    def _full(self, row: tables.FilesScheduledForDeletion) -> str:
        return stored_path(row.path, row.path_is_relative).under(self._data_path)

    def _writing(self, asked: str, work: Callable[[MetadataSession], T]) -> T:
        try:
            return in_attempts(self._metadata, self._patience, work)
        except CommitBroken as error:
            found = f"the connection broke, so whether it did {asked} is unknown; it can be asked again without harm"
            raise MetadataQueryFailed(self._metadata.backend.name, found) from error


def _in_use(session: MetadataSession, data_path: str) -> frozenset[str]:
    folders = table_folders(session, data_path)
    return frozenset(
        plain(stored_path(path, is_relative).under(folders.get(table_id, data_path)))
        for name in ("data_file", "delete_file")
        for table_id, path, is_relative in session.query(f"SELECT table_id, path, path_is_relative FROM {{{name}}}")
    )
