"""Bringing a transaction's effects into the lake as one snapshot, over as many attempts as other writers make
necessary."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from dbt.adapters.ducklake.lake.backends.base import CommitBroken, Contended
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    CommitConflict,
    CommitContended,
    CommitOutcomeUnknown,
    FileNotFound,
    InvalidMetadata,
    StaleDeleteFile,
)
from dbt.adapters.ducklake.lake.metadata import Metadata, MetadataSession, in_chunks, places
from dbt.adapters.ducklake.lake.names import ColumnId, FileId, SnapshotId, TableId
from dbt.adapters.ducklake.lake.options import Options, read_options
from dbt.adapters.ducklake.lake.snapshot.files import NameMapping, files_matching, mappings_of
from dbt.adapters.ducklake.lake.snapshot.pruning import Predicate
from dbt.adapters.ducklake.lake.snapshot.snapshot import Snapshot
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.transaction import inlining
from dbt.adapters.ducklake.lake.transaction.changes import CommitMessage, DeletesToAdd
from dbt.adapters.ducklake.lake.transaction.compaction import Compacting, sources_of
from dbt.adapters.ducklake.lake.transaction.conflicts import FILES_TELL, Committed, conflict_between
from dbt.adapters.ducklake.lake.transaction.effects import Effects, TableEffect
from dbt.adapters.ducklake.lake.transaction.made import parse_changes
from dbt.adapters.ducklake.lake.transaction.numbering import KnownOfTable, Numbering, number
from dbt.adapters.ducklake.lake.transaction.rows import (
    Batch,
    change_rows,
    definition_rows,
    delete_row,
    file_rows,
    scheduled_row,
)
from dbt.adapters.ducklake.lake.transaction.statistics import Totals, statistics_of_values, widen
from dbt.adapters.ducklake.lake.types import keeps_bounds

T = TypeVar("T")
R = TypeVar("R", tables.DataFile, tables.DeleteFile)

RewriteDeletes = Callable[[SnapshotId, DeletesToAdd], DeletesToAdd]
"""Writes a delete file anew, for another snapshot than it was written for.

It runs while the lake is locked: it should be quick, and may not ask the lake anything.
"""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a commit is tried, and how long it waits in between: DuckLake's own settings and defaults."""

    attempts: int = 10
    wait_ms: float = 100.0
    backoff: float = 1.5

    def pause(self, attempt: int) -> float:
        # The jitter keeps writers that met once from meeting again.
        return self.wait_ms / 1000 * random.uniform(0.5, 1.0) * self.backoff**attempt


def in_attempts(metadata: Metadata, patience: Patience, work: Callable[[MetadataSession], T]) -> T:
    """The result of work in a writing transaction, which is tried again while other writers are faster."""
    for attempt in range(patience.attempts):
        try:
            with metadata.writing() as session:
                return work(session)
        except Contended as error:
            if attempt + 1 == patience.attempts:
                raise CommitContended(metadata.backend.name, patience.attempts, str(error)) from error
        time.sleep(patience.pause(attempt))
    raise AssertionError("a commit is tried at least once")


@dataclass
class Commit:
    """The commit of one transaction: `base` is the snapshot its changes were planned on."""

    metadata: Metadata
    base: Snapshot
    effects: Effects
    message: CommitMessage | None
    patience: Patience
    inlining_limit: int | None
    rewrite: RewriteDeletes | None = None
    attempts_made: int = 0
    snapshot: SnapshotId | None = None

    def run(self) -> SnapshotId:
        try:
            return in_attempts(self.metadata, self.patience, self._counted).snapshot
        except CommitBroken as error:
            snapshot = self.snapshot or SnapshotId(self.base.id + 1)
            raise CommitOutcomeUnknown(self.metadata.backend.name, snapshot) from error

    def _counted(self, session: MetadataSession) -> Numbering:
        self.attempts_made += 1
        numbering = self._attempt(session)
        self.snapshot = numbering.snapshot
        return numbering

    def _attempt(self, session: MetadataSession) -> Numbering:
        head = session.head()
        if head.latest != self.base.id:
            self._refuse_conflicts(session, head.latest)
        options = read_options(session, self.inlining_limit)
        if options.requires_message and self.message is None:
            raise ChangeRefused("commit", "this lake requires a commit message", "Set one on the transaction.")
        numbering = number(self.effects, head, self._known(session), session.layout.has(tables.SortInfo))
        # From here on nobody else can commit, and what is read is the state that the new snapshot follows.
        session.add_snapshot(head, _snapshot_row(numbering))
        batch = Batch(numbering, session.layout)
        definition_rows(batch, self.effects)
        if numbering.schema_version != head.schema_version and not session.layout.tells_versions_of_tables:
            batch.add(tables.SchemaVersions(numbering.snapshot, numbering.schema_version, None))
        for effect in self.effects.tables.values():
            self._data_rows(session, batch, effect, options)
        change_rows(batch, self.effects, self.message or CommitMessage())
        for row_class, where in batch.ends:
            session.end(row_class, numbering.snapshot, where)
        for rows in batch.adds.values():
            session.insert(rows)
        return numbering

    def _theirs(self, session: MetadataSession, latest: int) -> list[Committed]:
        """What was committed after our base, up to the newest snapshot."""
        # Not what comes after `latest` while this is asked: whoever commits it takes our id, and we begin again.
        between = "WHERE snapshot_id > $1 AND snapshot_id <= $2 ORDER BY snapshot_id"
        rows = session.read(tables.SnapshotChanges, between, self.base.id, latest)
        if len(rows) != session.commits_between(self.base.id, latest):
            did = "and others before it cannot be compared with: some have expired, and what they changed is not known"
            raise CommitConflict(self.metadata.backend.name, did, latest, None, self.base.id)
        return [Committed(SnapshotId(r.snapshot_id), r.author, parse_changes(r.changes_made)) for r in rows]

    def _refuse_conflicts(self, session: MetadataSession, latest: int) -> None:
        intent = self.effects.intent()
        theirs = self._theirs(session, latest)
        touched = {table_id: _touched(session, table_id, self.base.id) for table_id in intent.deletes_in}
        conflict = conflict_between(intent, theirs, touched, self._apart(session, latest, theirs))
        if conflict is not None:
            raise CommitConflict(conflict.what, conflict.did, conflict.snapshot, conflict.author, self.base.id)
        self._refuse_renamed(session, latest)

    def _apart(self, session: MetadataSession, latest: int, theirs: Sequence[Committed]) -> frozenset[TableId]:
        """The tables of which others changed only rows that ours did not look at."""
        changed = {made.id for snapshot in theirs for made in snapshot.made if made.word in FILES_TELL}
        beyond = {made.id for snapshot in theirs for made in snapshot.made if made.word not in FILES_TELL}
        return frozenset(
            table_id
            for table_id, where in self.effects.looked_in.items()
            if where and table_id in changed - beyond and not self._met(session, latest, table_id, where)
        )

    def _met(self, session: MetadataSession, latest: int, table_id: TableId, where: Sequence[Predicate]) -> bool:
        """Whether files that came or lost rows meanwhile can hold rows that satisfy the predicates."""
        effect = self.effects.tables.get(table_id)
        if effect is None or effect.table is None:
            return True
        now = SnapshotId(latest)
        if files_matching(session, now, effect.table, where, "begin_snapshot > $2", self.base.id):
            return True
        touched = _touched(session, table_id, self.base.id)
        return any(
            files_matching(session, self.base.id, effect.table, where, f"data_file_id IN ({places(2, len(ids))})", *ids)
            for ids in in_chunks(touched)
        )

    def _refuse_renamed(self, session: MetadataSession, latest: int) -> None:
        """What was committed says only the new name of a table; two renames of one table must not both be."""
        for effect in self.effects.tables.values():
            if effect.renamed and effect.before is not None:
                rows = session.read(tables.Table, "WHERE table_id = $1 AND end_snapshot IS NULL", effect.id)
                if [row.table_name for row in rows] != [effect.before.name]:
                    raise CommitConflict(str(effect.before), "or one before it renamed it", latest, None, self.base.id)

    def _known(self, session: MetadataSession) -> dict[TableId, KnownOfTable]:
        return {
            effect.id: KnownOfTable(
                mappings=_mappings(session, effect),
                lacks_inlined_table=bool(effect.inserted)
                and not effect.layout_changed
                and inlining.current_table(session, effect.id) is None,
            )
            for effect in self.effects.tables.values()
            if effect.files or effect.inserted
        }

    def _data_rows(self, session: MetadataSession, batch: Batch, effect: TableEffect, options: Options) -> None:
        if effect.table is None:
            return
        _forget_bounds(session, effect)
        inlining.create_tables(session, batch, effect, options)
        if effect.files or effect.inserted:
            self._insert(session, batch, effect)
        self._refuse_lost_files(session, effect)
        if effect.compactions:
            self._compact(session, batch, effect)
        for ids in in_chunks(effect.ended):
            batch.end(tables.DataFile, table_id=effect.id, data_file_id=ids)
        if effect.deletes:
            self._delete(session, batch, effect)
        if effect.inlined_deleted:
            inlining.end_rows(session, batch.numbering, effect)

    def _insert(self, session: MetadataSession, batch: Batch, effect: TableEffect) -> None:
        table, table_id = effect.table, batch.numbering.of(effect.id)
        assert table is not None
        before = _totals(session, table_id)
        next_row_id = before.stats.next_row_id if before.stats else 0
        partition_id = batch.numbering.partitions.get(effect.id, table.partitioning.id if table.partitioning else None)
        file_rows(batch, effect, table, partition_id, _mappings(session, effect), next_row_id)
        rows = sum(file.record_count for file in effect.files)
        new_ids = inlining.insert_rows(session, batch.numbering, effect, next_row_id + rows)
        leaves = [leaf for column in table.columns for leaf in column.leaves()]
        inlined = [row for insert in effect.inserted for row in insert.rows]
        parts = [file.columns for file in effect.files]
        if inlined:
            by_column = zip(*inlined, strict=True)
            looks = session.layout.looks_for_nan
            found = (statistics_of_values(c, values, looks) for c, values in zip(table.columns, by_column, strict=True))
            parts.append({leaf: statistics for column in found for leaf, statistics in column.items()})
        size = sum(file.size for file in effect.files)
        after = widen(before, table_id, leaves, rows + len(inlined), rows + new_ids, size, parts)
        _replace_totals(session, batch, table_id, before, after)

    def _refuse_lost_files(self, session: MetadataSession, effect: TableEffect) -> None:
        """Each data file must be live and have the delete file that the deletes of its rows were planned on.

        The conflict matrix goes by what snapshots say they did; a flush, for one, says too little.
        """
        planned: dict[FileId, FileId | None] = {delete.data_file_id: delete.replaces for delete in effect.deletes}
        partly = list(planned)
        planned.update(effect.inlined_beside)
        compacted = sources_of(effect.compactions)
        planned.update(compacted)
        partly += compacted
        wanted = [*planned, *effect.ended]
        if not wanted:
            return
        alive = {row.data_file_id for row in _live(session, tables.DataFile, effect, wanted)}
        deletes = _live(session, tables.DeleteFile, effect, list(planned))
        present = {row.data_file_id: row.delete_file_id for row in deletes}
        inlined = inlining.files_deleted_from_after(session, effect.id, self.base.id) if partly else set()
        for file_id in wanted:
            is_as_planned = file_id not in planned or present.get(file_id) == planned[file_id]
            if file_id not in alive or not is_as_planned or (file_id in partly and file_id in inlined):
                raise self._lost(session, effect, file_id)

    def _lost(self, session: MetadataSession, effect: TableEffect, file_id: FileId) -> Exception:
        rows = session.read(tables.SnapshotChanges, "WHERE snapshot_id > $1 ORDER BY snapshot_id DESC", self.base.id)
        for row in rows:
            if any(made.id == effect.id for made in parse_changes(row.changes_made)):
                did = f"changed data file {file_id} or what is deleted from it"
                return CommitConflict(str(effect.table), did, row.snapshot_id, row.author, self.base.id)
        return FileNotFound(f"{effect.table}, with the deletes that were planned on", file_id, self.base.id)

    def _delete(self, session: MetadataSession, batch: Batch, effect: TableEffect) -> None:
        table, numbering = effect.table, batch.numbering
        assert table is not None
        older = _live(session, tables.DeleteFile, effect, [delete.data_file_id for delete in effect.deletes])
        older_of = {row.data_file_id: row for row in older}
        now = datetime.now(UTC)
        for delete_id, planned in zip(numbering.deletes[effect.id], effect.deletes, strict=True):
            old = older_of.get(planned.data_file_id)
            delete = self._for_snapshot(planned, numbering.snapshot, str(table))
            batch.add(delete_row(batch, numbering.of(effect.id), table.location, delete_id, delete))
            if old is None:
                continue
            if delete.snapshots is None:
                batch.end(tables.DeleteFile, delete_file_id=old.delete_file_id)
            else:
                # The new file holds the old positions with their snapshots, and serves earlier snapshots as well.
                session.delete(tables.DeleteFile, {"delete_file_id": old.delete_file_id})
                place = old.path, old.path_is_relative
                batch.add(scheduled_row(old.delete_file_id, *place, table.location, self.base.data_path, now))

    def _compact(self, session: MetadataSession, batch: Batch, effect: TableEffect) -> None:
        assert effect.table is not None
        compacting = Compacting(session, batch, effect.table, self.base.data_path, self.base.id)
        if grown := sum(compacting.add(change) for change in effect.compactions):
            before = _totals(session, effect.id).stats
            if before is not None and before.file_size_bytes is not None:
                size = grown + before.file_size_bytes
                session.update(tables.TableStats, {"file_size_bytes": size}, {"table_id": effect.id})

    def _for_snapshot(self, delete: DeletesToAdd, snapshot: SnapshotId, table: str) -> DeletesToAdd:
        if delete.snapshots is None or delete.snapshots[1] == snapshot:
            return delete
        if self.rewrite is None:
            raise StaleDeleteFile(table, delete.snapshots[1], snapshot)
        return self.rewrite(snapshot, delete)


def _snapshot_row(numbering: Numbering) -> tables.Snapshot:
    return tables.Snapshot(
        snapshot_id=numbering.snapshot,
        snapshot_time=datetime.now(UTC),
        schema_version=numbering.schema_version,
        next_catalog_id=numbering.next_catalog_id,
        next_file_id=numbering.next_file_id,
    )


def _touched(session: MetadataSession, table_id: TableId, base: SnapshotId) -> frozenset[FileId]:
    """The data files of a table that were deleted from, or ended, after a snapshot."""
    rows = session.query(
        "SELECT data_file_id FROM {delete_file} WHERE table_id = $1 AND (begin_snapshot > $2 OR partial_max > $2) "
        "UNION SELECT data_file_id FROM {data_file} WHERE table_id = $1 AND end_snapshot > $2",
        table_id,
        base,
    )
    return frozenset(FileId(row[0]) for row in rows)


def _mappings(session: MetadataSession, effect: TableEffect) -> Mapping[NameMapping, FileId]:
    """The table's name mappings by what they say, where a new file needs one."""
    if effect.created or all(file.mapping is None for file in effect.files):
        return {}
    return {mapping: mapping_id for mapping_id, mapping in mappings_of(session, effect.id).items()}


def _totals(session: MetadataSession, table_id: int) -> Totals:
    stats = session.read(tables.TableStats, "WHERE table_id = $1", table_id)
    columns = session.read(tables.TableColumnStats, "WHERE table_id = $1", table_id)
    if len(stats) > 1:
        raise InvalidMetadata(
            f"table {table_id} has {len(stats)} rows in ducklake_table_stats", "Keep only the newest."
        )
    # Counts may be unknown; where rows go on is known wherever there were any.
    known = [row for row in stats if row.next_row_id is not None]
    return Totals(known[0] if known else None, {ColumnId(row.column_id): row for row in columns})


def _replace_totals(session: MetadataSession, batch: Batch, table_id: int, before: Totals, after: Totals) -> None:
    assert after.stats is not None
    if before.stats is None:
        # A row that says nothing counts as none.
        session.delete(tables.TableStats, {"table_id": table_id})
        batch.add(after.stats)
    else:
        changed = after.stats._asdict()
        changed.pop("table_id")
        session.update(tables.TableStats, changed, {"table_id": table_id})
    if before.columns != after.columns:
        # These rows carry no snapshots, so two statements do for all of them.
        if before.columns:
            session.delete(tables.TableColumnStats, {"table_id": table_id})
        batch.adds[tables.TableColumnStats] += after.columns.values()


def _forget_bounds(session: MetadataSession, effect: TableEffect) -> None:
    """Bounds of a column whose type has changed may be other values of it: without its row it has none."""
    before = effect.before.by_id() if effect.before and effect.after else {}
    for column_id, column in effect.after.by_id().items() if effect.after else ():
        if column_id in before and not keeps_bounds(before[column_id].type, column.type):
            session.delete(tables.TableColumnStats, {"table_id": effect.id, "column_id": column_id})


def _live(session: MetadataSession, row_class: type[R], effect: TableEffect, files: Sequence[FileId]) -> list[R]:
    """The live rows of data files, or of their delete files."""
    found: list[R] = []
    for ids in in_chunks(files):
        rest = f"WHERE table_id = $1 AND end_snapshot IS NULL AND data_file_id IN ({places(2, len(ids))})"
        found += session.read(row_class, rest, effect.id, *ids)
    return found
