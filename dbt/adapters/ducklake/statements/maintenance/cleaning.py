"""Files that no snapshot needs are removed: those that the lake has scheduled, and those that nobody knows.

A file that nobody knows may belong to somebody: to a writer who has not committed yet, or to another lake with the same
data path. So only files are taken that a DuckLake writer named, in folders of this lake's own tables, and that were
written two days ago, unless the caller says otherwise.
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
# What a writer of ours has in a folder of its own is left alone for so long whatever was asked. Just before its commit
# it lies among the table's files, as DuckDB's does from the beginning: there only its age protects it.
_UNCOMMITTED_FOR = timedelta(days=2)
_AT_ONCE = 16


def remove_scheduled(session: LakeSession, lake: Lake, before: datetime | None, dry_run: bool) -> list[str]:
    """Remove the files that were scheduled before a moment (None: all)."""
    files = [file for file in lake.maintenance.scheduled_files() if before is None or file.since < before]
    if dry_run or not files:
        return [file.path for file in files]
    lake.maintenance.check_writable()
    # Where this ends in the middle, the lake still lists what is gone, and the next time passes over it.
    removed = set(_remove(session, session.storage(lake), [file.path for file in files]))
    lake.maintenance.forget_scheduled([file for file in files if file.path in removed])
    return sorted(removed)


def remove_orphans(session: LakeSession, lake: Lake, before: datetime | None, dry_run: bool) -> list[str]:
    """Remove the files that the lake does not know and that were written before a moment (None: at any time)."""
    # Of a lake that is shared with others only its own files are known here.
    lake.maintenance.check_writable()
    storage = session.storage(lake)
    # First the files, then what is known: what is committed in between is known.
    found = storage.found_below(lake.own_path)
    known = lake.maintenance.known_files()
    in_use = known.in_use | known.scheduled
    orphans = [
        file.path
        for file in found
        if plain(file.path) not in in_use and _is_ours(file, known.folders) and _is_old(file, before)
    ]
    if dry_run or not orphans:
        return orphans
    return _remove(session, storage, orphans)


def usually_before() -> datetime:
    """Since when a file is too young to be called an orphan, where nobody says otherwise."""
    return datetime.now(UTC) - _UNCOMMITTED_FOR


def _is_ours(file: FoundFile, folders: frozenset[str]) -> bool:
    if not file.path.endswith(_SUFFIXES):
        return False
    path = plain(file.path)
    folder = next((one for one in folders if path.startswith(one)), None)
    return folder is not None and _WRITTEN.search(path[len(folder) :]) is not None


def _is_old(file: FoundFile, before: datetime | None) -> bool:
    if _is_uncommitted(file.path) and file.modified > usually_before():
        return False
    return before is None or file.modified < before


def _is_uncommitted(path: str) -> bool:
    return _WRITTEN.search(path.rsplit("/", 1)[0]) is not None


def _remove(session: LakeSession, storage: Storage, paths: list[str]) -> list[str]:
    """Remove files; those that are gone then. One that cannot be removed keeps no other from it."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = zip(paths, pool.map(storage.try_remove, paths), strict=True)
        failed = {path: said for path, said in results if said is not None}
    if failed:
        first = next(iter(failed))
        session.warn(f"{len(failed)} of {len(paths)} files could not be removed, such as {first}: {failed[first]}")
    return [path for path in paths if path not in failed]
