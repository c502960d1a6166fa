"""A statement runs again if another commit overtook it, or if rows that it had computed were lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar
from weakref import WeakKeyDictionary

from dbt.adapters.ducklake.lake import CommitConflict, Lake, fold
from dbt.adapters.ducklake.spark.errors import RowsLost
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name
from dbt.adapters.ducklake.statements.session import LakeSession

R = TypeVar("R")


class _Turns:
    """One lock for each table. Threads that met at a table take turns from then on: all at once, they would meet again,
    and each time compute their rows for nothing. A statement may run as another, which takes the same turn again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Lake, dict[str, threading.RLock]] = WeakKeyDictionary()

    def at(self, lake: Lake, table: str) -> threading.RLock:
        with self._lock:
            return self._of.setdefault(lake, {}).setdefault(fold(table), threading.RLock())


_turns = _Turns()


def again_at_once(session: LakeSession, attempts: int, once: Callable[[], R]) -> R:
    """Do what costs little to plan again whenever another commit overtook it; the last error is the caller's."""
    said = session.said
    for _ in range(attempts - 1):
        try:
            return once()
        except CommitConflict:
            session.said = said
    return once()


def again_where_others_were_faster(session: LakeSession, name: Name, once: Callable[[], Outcome]) -> Outcome:
    """Run a statement. If another commit changed what it read, or an executor was lost with rows that it had computed,
    run it again, at most as often as the lake's `retries`; the last error is the caller's."""
    whole = session.whole(name)
    lake, said = session.lake(whole.lake), session.said
    patience = lake.description.patience
    lost = has_turn = False

    def attempted() -> Outcome:
        if lost:
            for pin in list(session.pinned.values()):
                pin()
        return once()

    with ExitStack() as turn:
        for attempt in range(patience.attempts - 1):
            try:
                return attempted()
            except CommitConflict as error:
                found = f"{name} was changed by snapshot {error.snapshot} while this statement ran, which runs again"
                session.warn(f"{found} (attempt {attempt + 2} of {patience.attempts}).")
                session.said = said
                time.sleep(patience.pause(attempt))
                if not has_turn:
                    turn.enter_context(_turns.at(lake, f"{whole.schema}.{whole.name}"))
                    has_turn = True
            except RowsLost as error:
                session.warn(f"{error} It runs again (attempt {attempt + 2} of {patience.attempts}).")
                session.said, lost = said, True
        return attempted()
