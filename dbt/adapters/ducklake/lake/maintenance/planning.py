"""Which files of a table give way to others. Pure, over what the metadata say of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from dbt.adapters.ducklake.lake.names import FileId, SnapshotId
from dbt.adapters.ducklake.lake.snapshot.files import DataFile, TableFiles

DEFAULT_TARGET_SIZE = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one call may do: how many files at least to make one of, files of which sizes, how many new files, how
    many bytes in all. Where one file or group has more bytes than that, it is taken nevertheless, by itself."""

    min_files: int = 2
    min_file_size: int = 0
    max_file_size: int | None = None
    max_compacted_files: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Files of one layout and one partition that become one. `since` is the snapshot that brought the layout."""

    files: tuple[DataFile, ...]
    since: SnapshotId
    partition_values: tuple[str | None, ...] | None

    @property
    def size(self) -> int:
        return _size(self.files)

    @property
    def rows(self) -> int:
        return sum(file.record_count for file in self.files)

    @property
    def partition_id(self) -> int | None:
        return self.files[0].partition_id

    @property
    def first(self) -> SnapshotId:
        return min(file.begin for file in self.files)

    @property
    def last(self) -> SnapshotId:
        return max(file.partial_max or file.begin for file in self.files)


Chooses = Callable[[DataFile], bool]
Sized = TypeVar("Sized", DataFile, MergeGroup)


def merge_groups(
    files: TableFiles,
    layouts: Sequence[SnapshotId],
    target_size: int,
    bounds: Bounds,
    chosen: Chooses | None = None,
    lives_on: Callable[[SnapshotId], bool] | None = None,
) -> list[MergeGroup]:
    """Files below the target size, in the order they came, in groups that come as close to it as they can.

    `layouts` are the snapshots that changed the table's layout, in order. As the extension does, files of different
    layouts stay apart, and files with deleted rows are left to a rewrite. But those of a layout that `lives_on` in the
    newest go with the newest; None where the lake does not allow that.
    """

    @cache
    def newest_of(layout: SnapshotId) -> SnapshotId:
        return layouts[-1] if lives_on is not None and layouts and lives_on(layout) else layout

    def layout_of(file: DataFile) -> SnapshotId:
        if lives_on is None:
            return _layout_of(file, layouts)
        # By its last rows: a file that was made so has columns that its first snapshot had not.
        return newest_of(_layout_at(file.partial_max or file.begin, layouts))

    below = min(target_size, bounds.max_file_size or target_size)
    candidates: dict[object, list[DataFile]] = {}
    for file in sorted(files.data_files, key=_order):
        has_deletes = file.delete_file is not None or bool(files.inlined_deletes.get(file.id))
        if has_deletes or not bounds.min_file_size <= file.size < below or (chosen and not chosen(file)):
            continue
        is_mixed = file.partial_max is not None and _layout_at(file.partial_max, layouts) != _layout_of(file, layouts)
        if is_mixed and lives_on is None:
            # Some of its rows may have columns that the others have not.
            continue
        key = (layout_of(file), file.partition_id, files.partition_values.get(file.id))
        candidates.setdefault(key, []).append(file)
    groups = (
        MergeGroup(tuple(members), layout_of(members[0]), files.partition_values.get(members[0].id))
        for found in candidates.values()
        for members in _close_to(target_size, found)
        if len(members) > 1 and (len(members) >= bounds.min_files or _size(members) * 2 > target_size)
    )
    return _within(groups, bounds)


def files_to_rewrite(
    files: TableFiles, threshold: float, bounds: Bounds, chosen: Chooses | None = None
) -> list[DataFile]:
    """The files of whose rows at least this share is deleted, those that gain most first."""
    found = [
        (share, file)
        for file in files.data_files
        if (share := deleted_share(file, files)) >= threshold and share > 0 and (not chosen or chosen(file))
    ]
    gaining = (file for _, file in sorted(found, key=lambda pair: (-pair[0], pair[1].id)))
    return _within(gaining, bounds)


def deleted_rows(file: DataFile, files: TableFiles) -> int:
    return (file.delete_file.delete_count if file.delete_file else 0) + len(files.inlined_deletes.get(file.id, ()))


def deleted_share(file: DataFile, files: TableFiles) -> float:
    return deleted_rows(file, files) / file.record_count if file.record_count else 0.0


def _order(file: DataFile) -> tuple[int, float, FileId]:
    return file.begin, float("inf") if file.row_id_start is None else file.row_id_start, file.id


def _layout_of(file: DataFile, layouts: Sequence[SnapshotId]) -> SnapshotId:
    return _layout_at(file.begin, layouts)


def _layout_at(snapshot: SnapshotId, layouts: Sequence[SnapshotId]) -> SnapshotId:
    place = bisect_right(layouts, snapshot)
    return layouts[place - 1] if place else snapshot


def _size(files: Iterable[DataFile]) -> int:
    return sum(file.size for file in files)


def _close_to(target: int, files: Sequence[DataFile]) -> Iterable[list[DataFile]]:
    """Runs of files whose sizes together come as close to the target as the next file would not bring them."""
    run: list[DataFile] = []
    size = 0
    for file in files:
        if run and abs(size + file.size - target) >= abs(size - target):
            yield run
            run, size = [], 0
        run.append(file)
        size += file.size
    if run:
        yield run


def _within(found: Iterable[Sized], bounds: Bounds) -> list[Sized]:
    """As many as the bounds allow, and one whatever its size is."""
    kept: list[Sized] = []
    size = 0
    for one in found:
        is_full = bounds.max_compacted_files is not None and len(kept) >= bounds.max_compacted_files
        if is_full or (bounds.max_bytes is not None and kept and size + one.size > bounds.max_bytes):
            break
        kept.append(one)
        size += one.size
    return kept
