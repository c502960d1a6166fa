"""Files that no snapshot needs are removed: those that the lake has scheduled, and those that nobody knows.

A file that nobody knows may belong to somebody: to a writer who has not committed yet, or to another lake with the same
data path. So only files are taken that a DuckLake writer named, in folders of this lake's own tables, and of a certain
age.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from dbt.adapters.ducklake.lake import Lake, plain
from dbt.adapters.ducklake.spark.storage import FoundFile, Storage
from dbt.adapters.ducklake.statements.session import LakeSession

# `ducklake-<uuid>...parquet`, as every writer of DuckLake names its files, or a folder of that name.
_WRITTEN = re.compile(r"ducklake-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SUFFIXES = (".parquet", ".puffin")
# What a writer has not committed lies in a folder of its own. It is left alone for so long whatever was asked.
_UNCOMMITTED_FOR = timedelta(days=2)
_AT_ONCE = 16


def remove_scheduled(session: LakeSession, lake: Lake, before: datetime | None, dry_run: bool) -> list[str]:
    """Remove the files that were scheduled before a moment (None: all)."""
    files = [file for file in lake.maintenance.scheduled_files() if before is None or file.since < before]
    if not dry_run and files:
        # Where this ends in the middle, the lake still lists what is gone, and the next time passes over it.
        _remove(session.storage(lake), [file.path for file in files])
        lake.maintenance.forget_scheduled(files)
    return [file.path for file in files]


def remove_orphans(session: LakeSession, lake: Lake, before: datetime | None, dry_run: bool) -> list[str]:
    """Remove the files that the lake does not know and that were written before a moment (None: at any time)."""
    storage = session.storage(lake)
    # First the files, then what is known: what is committed in between is known.
    found = storage.found_below(lake.data_path)
    known = lake.maintenance.known_files()
    in_use = known.in_use | known.scheduled
    orphans = [
        file.path
        for file in found
        if plain(file.path) not in in_use and _is_ours(file, known.folders) and _is_old(file, before)
    ]
    if not dry_run:
        _remove(storage, orphans)
    return orphans


def _is_ours(file: FoundFile, folders: frozenset[str]) -> bool:
    if not file.path.endswith(_SUFFIXES):
        return False
    path = plain(file.path)
    folder = next((one for one in folders if path.startswith(one)), None)
    return folder is not None and _WRITTEN.search(path[len(folder) :]) is not None


def _is_old(file: FoundFile, before: datetime | None) -> bool:
    if _is_uncommitted(file.path) and file.modified > datetime.now(UTC) - _UNCOMMITTED_FOR:
        return False
    return before is None or file.modified < before


def _is_uncommitted(path: str) -> bool:
    return _WRITTEN.search(path.rsplit("/", 1)[0]) is not None


def _remove(storage: Storage, paths: list[str]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(storage.remove, paths))
