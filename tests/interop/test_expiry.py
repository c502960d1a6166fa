"""Snapshots that we let expire leave a lake as the extension's own procedure leaves it."""

from __future__ import annotations

import random

import pytest

from dbt.adapters.ducklake.lake import SnapshotId
from tests.conftest import PlaceOf
from tests.interop.twins import read_at, twins
from tests.seeds import on_each_kind

STEPS = 24


@pytest.mark.parametrize(("kind", "seed"), on_each_kind(2, 6, 40))
def test_the_metadata_are_those_that_the_extension_leaves(kind: str, seed: int, place_of: PlaceOf) -> None:
    both = twins(seed, kind, STEPS, place_of, ("_expire", "_view"))
    ids = [row[0] for row in both.ours.asked("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")]
    expired = sorted(random.Random(seed).sample(ids[:-1], k=len(ids) * 2 // 3))
    kept = [version for version in ids if version not in expired]
    before = read_at(both.ours, kept)
    both.theirs.judged(f"CALL ducklake_expire_snapshots('lake', versions => {expired})")
    with both.ours.connect() as lake:
        lake.maintenance.expire([SnapshotId(version) for version in expired])
    # Ours takes empty inlined tables of earlier layouts with it.
    leftover = ("ours   ducklake_inlined_data_", "theirs ducklake_inlined_data_tables")
    assert not [line for line in both.differences() if not line.startswith(leftover)]
    assert read_at(both.ours, kept) == before
    both.ours.judged("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert read_at(both.ours, kept) == before
