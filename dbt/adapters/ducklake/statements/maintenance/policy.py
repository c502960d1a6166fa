"""Compaction that decides for itself: what a table needs, by thresholds, and nothing where it needs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dbt.adapters.ducklake.lake import Bounds, CommitConflict, CommitContended, Lake, TableHealth, View
from dbt.adapters.ducklake.spark.errors import RowsDiffer, UnsupportedType, WriteRefused
from dbt.adapters.ducklake.statements.maintenance.compaction import (
    Asked,
    Compacted,
    flush_inlined,
    merge_adjacent,
    rewrite_data_files,
)
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession

MIB = 1024 * 1024


@dataclass(frozen=True)
class Policy:
    """When a table is compacted, and how much at most in one call.

    `small_files`: so many files below `small_file_size` become large ones. A file that is large enough is not touched
    again, so a row is written anew a few times in its life, however long the table grows. `deleted_share`: files that
    have lost this share of their rows are written without them. `inlined_rows`: so many rows in the metadata, or
    deletes, go to files.
    """

    small_files: int = 10
    small_file_size: int = 128 * MIB
    deleted_share: float = 0.3
    inlined_rows: int = 1000
    max_compacted_files: int | None = None
    max_bytes: int | None = None

    @property
    def bounds(self) -> Bounds:
        return Bounds(max_compacted_files=self.max_compacted_files, max_bytes=self.max_bytes)

    def is_due(self, health: TableHealth) -> bool:
        return any(is_due(health, self) for _, is_due, _ in _STEPS)


def compact(
    session: LakeSession, lake: Lake, name: LakeName, policy: Policy, dry_run: bool = False
) -> list[tuple[str, Compacted]]:
    """What was done to a table, by what it was. Where it needs nothing, that is one query of the metadata."""
    found = lake.maintenance.table_health(policy.small_file_size, policy.deleted_share, name.schema, name.name)
    due = [(what, run) for health in found for what, is_due, run in _STEPS if is_due(health, policy)]
    if found and not due:
        return []
    snapshot = lake.snapshot()
    if isinstance(snapshot.find(name.schema, name.name), View):
        return []
    table = snapshot.table(name.schema, name.name)
    if lake.options().value("auto_compact", table.schema.id, table.id) == "false":
        return []
    asked, done = Asked(name, policy.bounds, threshold=policy.deleted_share, dry_run=dry_run), []
    for what, run in due:
        try:
            done.append((what, run(session, lake, policy, asked)))
        except CommitConflict as error:
            # A writer always wins. What was not done now is due the next time.
            session.warn(f"{name} was not compacted ({what}): snapshot {error.snapshot} changed it meanwhile, twice.")
        except (CommitContended, WriteRefused, UnsupportedType, RowsDiffer) as error:
            # Nothing is lost, and a run or the maintenance of a whole lake does not end for it.
            session.warn(f"{name} was not compacted ({what}). {error}")
    return [(what, one) for what, one in done if one.processed or one.created]


def _flush(session: LakeSession, lake: Lake, policy: Policy, asked: Asked) -> Compacted:
    return flush_inlined(session, lake, asked)


def _rewrite(session: LakeSession, lake: Lake, policy: Policy, asked: Asked) -> Compacted:
    return rewrite_data_files(session, lake, asked)


def _merge(session: LakeSession, lake: Lake, policy: Policy, asked: Asked) -> Compacted:
    # In each partition for itself: two small files in each of many are no reason to write all of them anew.
    small = replace(asked.bounds, max_file_size=policy.small_file_size, min_files=policy.small_files)
    return merge_adjacent(session, lake, replace(asked, bounds=small))


Step = tuple[
    str, Callable[[TableHealth, Policy], bool], Callable[[LakeSession, Lake, Policy, Asked], Compacted]
]  # fmt: skip
# In this order: what a flush or a rewrite leaves small is merged then.
_STEPS: tuple[Step, ...] = (
    ("flush", lambda found, policy: max(found.inlined_rows, found.inlined_deletes) >= policy.inlined_rows, _flush),
    ("rewrite", lambda found, policy: found.worn_files > 0, _rewrite),
    ("merge", lambda found, policy: found.small_files >= policy.small_files, _merge),
)
