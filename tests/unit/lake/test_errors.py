from __future__ import annotations

import pickle

from dbt.adapters.ducklake.lake import CommitConflict


def test_an_error_goes_from_one_process_to_another() -> None:
    error = CommitConflict("main.t", "altered it", 3, "me", 2)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.snapshot, again.author) == (CommitConflict, str(error), 3, "me")
