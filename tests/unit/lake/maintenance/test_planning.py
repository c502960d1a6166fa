"""Which files give way to others."""

from __future__ import annotations

from dbt.adapters.ducklake.lake import (
    Bounds,
    DataFile,
    DeleteFile,
    FileId,
    MergeGroup,
    SnapshotId,
    TableFiles,
    files_to_rewrite,
    merge_groups,
)

MB = 1_000_000


def file(number: int, size: int = MB, begin: int = 1, deleted: int = 0, rows: int = 100, partition: int | None = None,
         partial_max: int | None = None) -> DataFile:  # fmt: skip
    delete = None
    if deleted:
        delete = DeleteFile(FileId(1000 + number), "d", "parquet", deleted, 1, 1, SnapshotId(2), None)
    return DataFile(
        FileId(number), f"f{number}", rows, size, 1, number * rows, SnapshotId(begin), None, partition, None,
        None if partial_max is None else SnapshotId(partial_max), None, delete,
    )  # fmt: skip


def files(*found: DataFile, **more: object) -> TableFiles:
    return TableFiles(tuple(found), **more)  # type: ignore[arg-type]


def ids(groups: list[MergeGroup]) -> list[list[int]]:
    return [[int(one.id) for one in group.files] for group in groups]


def test_small_files_come_together_up_to_the_target_size() -> None:
    found = merge_groups(files(*(file(n) for n in range(7))), [SnapshotId(1)], 3 * MB, Bounds())
    assert ids(found) == [[0, 1, 2], [3, 4, 5]]


def test_a_file_that_is_large_enough_has_deletes_or_is_alone_is_left() -> None:
    given = files(
        file(0), file(1, size=9 * MB), file(2, deleted=1), file(3), file(4), inlined_deletes={FileId(4): (7,)}
    )
    assert ids(merge_groups(given, [SnapshotId(1)], 5 * MB, Bounds())) == [[0, 3]]
    assert merge_groups(files(file(0)), [SnapshotId(1)], 5 * MB, Bounds()) == []


def test_files_of_another_layout_or_partition_stay_apart() -> None:
    layouts = [SnapshotId(1), SnapshotId(5)]
    given = files(file(0, begin=2), file(1, begin=4), file(2, begin=5), file(3, begin=6))
    found = merge_groups(given, layouts, 9 * MB, Bounds())
    assert ids(found) == [[0, 1], [2, 3]]
    assert [(group.since, group.first, group.last) for group in found] == [(1, 2, 4), (5, 5, 6)]
    parts = files(
        *(file(n, partition=7) for n in range(4)),
        partition_values={FileId(0): ("a",), FileId(1): ("b",), FileId(2): ("a",), FileId(3): ("b",)},
    )
    found = merge_groups(parts, [SnapshotId(1)], 9 * MB, Bounds())
    assert ids(found) == [[0, 2], [1, 3]]
    assert [group.partition_values for group in found] == [("a",), ("b",)]


def test_a_file_of_several_snapshots_counts_with_its_last() -> None:
    [group] = merge_groups(files(file(0, begin=2, partial_max=8), file(1, begin=5)), [SnapshotId(1)], 9 * MB, Bounds())
    assert (group.first, group.last) == (2, 8)


def test_bounds_keep_to_sizes_numbers_and_bytes() -> None:
    given = files(*(file(n) for n in range(6)))
    assert len(merge_groups(given, [SnapshotId(1)], 2 * MB, Bounds(max_compacted_files=2))) == 2
    # One is made whatever it takes: else nothing ever would.
    assert len(merge_groups(given, [SnapshotId(1)], 2 * MB, Bounds(max_bytes=1))) == 1
    assert len(merge_groups(given, [SnapshotId(1)], 2 * MB, Bounds(max_bytes=4 * MB))) == 2
    assert merge_groups(given, [SnapshotId(1)], 2 * MB, Bounds(min_file_size=MB + 1)) == []
    assert merge_groups(given, [SnapshotId(1)], 2 * MB, Bounds(max_file_size=MB)) == []


def test_files_are_rewritten_from_a_share_of_deleted_rows_on() -> None:
    given = files(
        file(0, deleted=10), file(1, deleted=60), file(2), file(3), inlined_deletes={FileId(3): tuple(range(30))}
    )
    assert [one.id for one in files_to_rewrite(given, 0.3, Bounds())] == [1, 3]
    assert [one.id for one in files_to_rewrite(given, 0, Bounds())] == [1, 3, 0]
    assert [one.id for one in files_to_rewrite(given, 0, Bounds(max_compacted_files=1))] == [1]
    assert files_to_rewrite(given, 0.95, Bounds()) == []
