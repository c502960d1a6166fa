"""Compaction of one table: plan on the newest snapshot, let Spark write, commit; a part at a time.

A compaction that loses to another commit is done once more and then given up: it can be had later as well.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from dbt.adapters.ducklake.lake import (
    DEFAULT_TARGET_SIZE,
    Bounds,
    DataFile,
    FileId,
    InlinedRow,
    Lake,
    MergeGroup,
    Snapshot,
    SnapshotId,
    Table,
    TableFiles,
    VersionsFile,
    deleted_rows,
    files_to_rewrite,
    merge_groups,
)
from dbt.adapters.ducklake.spark.compact import flush_deletes, flush_rows, merge_files, rewrite_files
from dbt.adapters.ducklake.spark.query import Sorted, Spark, sort_keys
from dbt.adapters.ducklake.spark.write import WriteSettings
from dbt.adapters.ducklake.statements.again import again_at_once
from dbt.adapters.ducklake.statements.maintenance.partitions import Partition
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession
from dbt.adapters.ducklake.statements.writing import Writing, sorted_by, writing

# New files of one commit: each is a scan in the same Spark job, and a writer may come in between two commits.
_FILES_AT_ONCE = 24
_ATTEMPTS = 2
# Each is a Spark job, and a file that is soon merged: of rows with more versions the feed is as after the extension's.
_MOST_PARTS = 16
_DEFAULT_THRESHOLD = "0.95"


@dataclass(frozen=True)
class Compacted:
    """What was done to a table, or (`dry_run`) would be."""

    schema: str
    table: str
    processed: int = 0
    created: int = 0
    size: int = 0

    def __add__(self, other: Compacted) -> Compacted:
        return replace(
            self,
            processed=self.processed + other.processed,
            created=self.created + other.created,
            size=self.size + other.size,
        )


@dataclass(frozen=True)
class Asked:
    """Which files of a table, and how much of it."""

    name: LakeName
    bounds: Bounds = field(default_factory=Bounds)
    partition: Partition | None = None
    threshold: float | None = None
    dry_run: bool = False


@dataclass
class _Compaction:
    """One attempt on one table."""

    session: LakeSession
    lake: Lake
    asked: Asked

    def __post_init__(self) -> None:
        # In one reading: a delete file that is replaced in between would count its later deletes.
        with self.lake.reading() as base:
            self.base: Snapshot = base
            self.table: Table = base.table(self.asked.name.schema, self.asked.name.name)
            self.files: TableFiles = base.files(self.table)
        self.settings = WriteSettings.of(self.lake.options(), self.table)

    @property
    def target_size(self) -> int:
        return self.settings.target_file_size or DEFAULT_TARGET_SIZE

    def chosen(self) -> Callable[[DataFile], bool] | None:
        partition = self.asked.partition
        return None if partition is None else partition.chooser(self.table, self.files)

    def lives_on(self, since: SnapshotId) -> bool:
        """Whether each column and field of an earlier layout is there still, under its name and with its type."""
        now = {id: (column.name, column.type) for id, column in self.table.by_id().items()}
        before = self.base.as_of(self.table, since).by_id()
        return all(now.get(id) == (column.name, column.type) for id, column in before.items())

    def done(self, processed: int = 0, created: int = 0, size: int = 0) -> Compacted:
        return Compacted(self.table.schema.name, self.table.name, processed, created, size)

    def sort(self, table: Table) -> Sorted:
        """The table's present sort keys, where the columns are those that they are meant for."""
        same = self.settings.sort and table.columns == self.table.columns
        return sort_keys(sorted_by(self.table.sort)) if same else []

    def writing(self) -> AbstractContextManager[Writing]:
        return writing(self.session, self.lake, self.base)


def merge_adjacent(session: LakeSession, lake: Lake, asked: Asked) -> Compacted:
    """Small files become large ones; what was done. Nothing to do: one look at the metadata, and no Spark."""
    done, more = again_at_once(session, _ATTEMPTS, lambda: _merge_some(session, lake, asked))
    while more:
        left = replace(asked, bounds=_less(asked.bounds, done))
        part, more = again_at_once(session, _ATTEMPTS, functools.partial(_merge_some, session, lake, left))
        done += part
    return done


def _less(bounds: Bounds, done: Compacted) -> Bounds:
    """What the bounds leave after a part of the work."""
    files, size = bounds.max_compacted_files, bounds.max_bytes
    return replace(
        bounds,
        max_compacted_files=None if files is None else files - done.created,
        max_bytes=None if size is None else size - done.size,
    )


def _merge_some(session: LakeSession, lake: Lake, asked: Asked) -> tuple[Compacted, bool]:
    """One commit's worth, and whether there is more."""
    one = _Compaction(session, lake, asked)
    layouts = one.base.layouts(one.table)
    lives_on = one.lives_on if lake.merges_across_columns else None
    groups = merge_groups(one.files, layouts, one.target_size, asked.bounds, one.chosen(), lives_on)
    if asked.dry_run or not groups:
        processed = sum(len(group.files) for group in groups)
        return one.done(processed, len(groups), sum(group.size for group in groups)), False
    some = groups[:_FILES_AT_ONCE]
    with session.spark.job(f"CALL ducklake_merge_adjacent_files {asked.name}") as spark, one.writing() as work:
        for since in sorted({group.since for group in some}):
            _merge(one, spark, work, since, [group for group in some if group.since == since])
    done = one.done(sum(len(group.files) for group in some), len(some), sum(group.size for group in some))
    return done, len(some) < len(groups)


def _merge(one: _Compaction, spark: Spark, work: Writing, since: SnapshotId, groups: Sequence[MergeGroup]) -> None:
    """Files are written under the definition that they were made under: earlier snapshots read them by it."""
    table = one.base.as_of(one.table, since)
    storage = one.session.storage(one.lake)
    files = merge_files(spark, storage, table, groups, one.files, one.base.id, one.settings, one.sort(table))
    _kept(work, files)
    work.transaction.merge_files(one.table, [file.id for group in groups for file in group.files], files)


def rewrite_data_files(session: LakeSession, lake: Lake, asked: Asked) -> Compacted:
    """Files of which many rows are deleted are written anew without them."""
    return again_at_once(session, _ATTEMPTS, lambda: _rewrite(session, lake, asked))


def _rewrite(session: LakeSession, lake: Lake, asked: Asked) -> Compacted:
    one = _Compaction(session, lake, asked)
    stored = lake.options().value("rewrite_delete_threshold", one.table.schema.id, one.table.id)
    threshold = asked.threshold if asked.threshold is not None else float(stored or _DEFAULT_THRESHOLD)
    sources = files_to_rewrite(one.files, threshold, asked.bounds, one.chosen())
    left = sum(_bytes_left(file, one.files) for file in sources)
    count = -(-left // one.target_size)
    if asked.dry_run or not sources:
        return one.done(len(sources), count, sum(file.size for file in sources))
    beside: dict[FileId, FileId | None] = {
        file.id: file.delete_file.id if file.delete_file else None for file in sources
    }
    with session.spark.job(f"CALL ducklake_rewrite_data_files {asked.name}") as spark, one.writing() as work:
        work.files += rewrite_files(
            spark, session.storage(lake), one.table, sources, one.files, one.base.id, one.settings, count,
            one.sort(one.table),
        )  # fmt: skip
        work.transaction.rewrite_files(one.table, beside, work.files)
        created = len(work.files)
    return one.done(len(sources), created, sum(file.size for file in sources))


def _bytes_left(file: DataFile, files: TableFiles) -> int:
    return file.size * (file.record_count - deleted_rows(file, files)) // max(1, file.record_count)


def flush_inlined(session: LakeSession, lake: Lake, asked: Asked) -> Compacted:
    """Rows, and deletes of rows, that the metadata hold go to files; `processed` are the rows."""
    return again_at_once(session, _ATTEMPTS, lambda: _flush(session, lake, asked))


def _flush(session: LakeSession, lake: Lake, asked: Asked) -> Compacted:
    one = _Compaction(session, lake, asked)
    inlined = one.base.inlined(one.table)
    live = {file.id: file for file in one.files.data_files}
    deletes = {
        live[file_id]: found for file_id, found in one.base.inlined_deletes(one.table).items() if file_id in live
    }
    rows = sum(len(kept.rows) for kept in inlined)
    if asked.dry_run or not (inlined or deletes):
        return one.done(rows, len(inlined) + len(deletes))
    storage, settings = session.storage(lake), one.settings
    with one.writing() as work:
        files: list[VersionsFile] = []
        for kept in inlined:
            for versions in _apart(kept.rows):
                with session.spark.job(f"CALL ducklake_flush_inlined_data {asked.name}") as spark:
                    table = replace(one.base.as_of(one.table, kept.since), columns=kept.columns)
                    made = flush_rows(spark, storage, table, versions, settings, one.sort(table))
                files += made
                _kept(work, made)
        for file, positions in deletes.items():
            work.deletes.append(flush_deletes(storage, one.table, file, positions))
        flushed = list(work.deletes)[sum(file.deletes is not None for file in files) :]
        work.transaction.flush_inlined(one.table, [kept.name for kept in inlined], files, flushed)
    return one.done(rows, len(files) + len(flushed))


def _apart(rows: Sequence[InlinedRow]) -> list[list[InlinedRow]]:
    """The rows in parts that hold each row id once: of two versions of a row in one file DuckDB's change feed tells
    what never happened, after the extension's own flush too."""
    parts: list[list[InlinedRow]] = []
    before: Counter[int] = Counter()
    for row in rows:
        place = min(before[row.row_id], _MOST_PARTS - 1)
        if place == len(parts):
            parts.append([])
        parts[place].append(row)
        before[row.row_id] += 1
    return parts


def _kept(work: Writing, files: Sequence[VersionsFile]) -> None:
    """What is to be removed if the lake refuses the rest."""
    work.files += [one.file for one in files]
    work.deletes += [one.deletes for one in files if one.deletes is not None]
