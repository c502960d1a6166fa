"""What a statement came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.ducklake.lake import Column, FileToAdd, SnapshotId
from dbt.adapters.ducklake.spark.merge import Changed
from dbt.adapters.ducklake.spark.query import Rows


@dataclass(frozen=True)
class Listing:
    """Rows that were there without Spark: what the metadata say."""

    columns: tuple[Column, ...]
    rows: tuple[Sequence[Any], ...]


@dataclass(frozen=True)
class Outcome:
    """`code` is the statement's kind. `rows` are not computed yet; `rows_affected` counts those written or removed."""

    code: str
    rows: Rows | None = None
    listing: Listing | None = None
    rows_affected: int | None = None
    files: int = 0
    size: int = 0
    snapshot: SnapshotId | None = None


def changed_rows(code: str, done: Changed, snapshot: SnapshotId | None) -> Outcome:
    """No snapshot where no row was changed."""
    rows = done.inserted + done.updated + done.deleted
    size = sum(file.size for file in done.added)
    return Outcome(code, rows_affected=rows, files=len(done.added), size=size, snapshot=snapshot if rows else None)


def written(code: str, files: Sequence[FileToAdd], snapshot: SnapshotId | None) -> Outcome:
    rows, size = sum(file.record_count for file in files), sum(file.size for file in files)
    return Outcome(code, rows_affected=rows, files=len(files), size=size, snapshot=snapshot)
