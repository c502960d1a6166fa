"""Metadata in a file that lies in object storage: fetched, used here, and put back.

Put back after each commit (the default), a transaction is done when the store has its file. A lock keeps the others
waiting for the moment between, and the store refuses what was made from another version than its own: then the newest
is fetched and the transaction tried again on it, as beside any other writer. Put back at the end of the run, the lock
is held as long, and a run beside it is told so.

A process that dies leaves the store as it was after the last put, and a lock that ends by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from dbt.adapters.ducklake.lake.backends.base import Backend, CommitBroken, Connection, Contended
from dbt.adapters.ducklake.lake.backends.objects import Content, Outdated, StoredObject, object_at
from dbt.adapters.ducklake.lake.errors import LakeHeld, MetadataQueryFailed

# How long a lock holds that nobody renews; it is renewed three times as often.
_HOLDS_FOR = timedelta(seconds=60)
_PAUSE, _LAST_ATTEMPTS = 0.2, 4


@dataclass(frozen=True)
class Hold:
    """What stands in a lock: whose it is, since when and until when, and where its copy of the file lies."""

    owner: str
    host: str
    process: int
    since: str
    until: str
    copy: str

    @property
    def has_ended(self) -> bool:
        return datetime.fromisoformat(self.until) < datetime.now(UTC)

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since} and until {self.until} unless it goes on"


class Lock:
    """A small object beside the file. Of its owners one has it, as long as it renews it."""

    def __init__(self, stored: StoredObject, copy: Path) -> None:
        self._stored, self._copy = stored, copy
        self._owner = uuid4().hex
        self._version: str | None = None
        self._since = ""
        self._stop: threading.Event | None = None
        self._guard = threading.Lock()

    @property
    def is_held(self) -> bool:
        return self._version is not None

    def take(self, wait: float) -> Hold | None:
        """Wait for the lock; whose it was, if its owner let its time run out. LakeHeld."""
        deadline = time.monotonic() + wait
        while True:
            found = self._stored.read()
            other = None if found is None else _hold_in(found)
            if found is None or other is None or other.has_ended or other.owner == self._owner:
                self._since = datetime.now(UTC).isoformat(timespec="seconds")
                # Another may be taking it over in the same moment.
                with suppress(Outdated):
                    self._version = self._stored.write(self._said(), None if found is None else found.version)
                    return other if other is not None and other.owner != self._owner else None
            elif time.monotonic() > deadline:
                raise LakeHeld(self._stored.url.removesuffix(".lock"), wait, str(other))
            time.sleep(_PAUSE)

    def renew(self) -> None:
        """MetadataQueryFailed where another has taken it over."""
        with self._guard:
            if self._version is None:
                return
            try:
                self._version = self._stored.write(self._said(), self._version)
            except Outdated as error:
                self._version = None
                said = "the lock was not renewed in time, and another run has taken it over"
                raise MetadataQueryFailed(self._stored.url, said) from error

    def keep(self) -> None:
        """Renew it again and again, until it is given up."""

        if self._stop is not None:
            self._stop.set()
        stop = self._stop = threading.Event()

        def on_and_on() -> None:
            while not stop.wait(_HOLDS_FOR.total_seconds() / 3):
                # Whoever writes next renews it first, and is told.
                with suppress(MetadataQueryFailed):
                    self.renew()

        threading.Thread(target=on_and_on, daemon=True, name="dbt-ducklake-lock").start()

    def give_up(self) -> None:
        if self._stop is not None:
            self._stop.set()
        with self._guard:
            if self._version is None:
                return
            # One that was taken over meanwhile is another's. One that cannot be removed ends by itself.
            with suppress(MetadataQueryFailed):
                if self._stored.version() == self._version:
                    self._stored.remove()
            self._version = None

    def _said(self) -> bytes:
        until = (datetime.now(UTC) + _HOLDS_FOR).isoformat(timespec="milliseconds")
        hold = Hold(self._owner, socket.gethostname(), os.getpid(), self._since, until, str(self._copy))
        return json.dumps(asdict(hold)).encode()


def _hold_in(found: Content) -> Hold | None:
    try:
        return Hold(**json.loads(found.data))
    except (ValueError, TypeError):
        # Not one of ours: an object that was cut, or is somebody's. It is as good as none.
        return None


class RemoteBackend(Backend):
    """A backend on a copy of the file, and the store."""

    def __init__(
        self, url: str, inside: Callable[[Path], Backend], options: Mapping[str, Any], wait: float, at_end: bool
    ) -> None:
        super().__init__()
        self._stored = object_at(url, options)
        folder = _folder(url)
        folder.mkdir(parents=True, exist_ok=True)
        self._copy = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}-{uuid4().hex[:8]}.metadata"
        self._inside = inside(self._copy)
        self._lock = Lock(object_at(f"{url}.lock", options), self._copy)
        self._wait, self._at_end = wait, at_end
        self.kind, self.schema, self.storage = self._inside.kind, self._inside.schema, self._inside.storage
        self.has_sequences = self._inside.has_sequences
        self.name = f"{self.kind}:{url}"
        # One thread at a time: the copy is replaced when the store has a newer one.
        self._guard = threading.RLock()
        self._version: str | None = None
        self._has_unsaved = False

    def exists(self) -> bool:
        with self._guard:
            self._fetch()
            return self._version is not None or self._has_unsaved

    def prepare(self) -> None:
        """Nothing: a file that is not there is made by the first transaction."""

    def qualified(self, table: str) -> str:
        return self._inside.qualified(table)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._guard:
            self._fetch()
            with self._inside.reading() as connection:
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._guard:
            self._take_lock()
            try:
                self._fetch()
                before = self._kept()
                try:
                    if before is None:
                        self._inside.prepare()
                    with self._inside.writing() as connection:
                        yield connection
                    self._refuse_unwritten()
                    self._has_unsaved = True
                    if not self._at_end:
                        # A lock that ran out in between is another's.
                        self._lock.renew()
                        self._put_back()
                except CommitBroken:
                    # The store may have it: the copy is no longer known to be what is there.
                    self._forget_copy()
                    raise
                except BaseException:
                    self._restore(before)
                    raise
                finally:
                    if before is not None:
                        before.unlink(missing_ok=True)
            finally:
                if not self._at_end:
                    self._lock.give_up()

    def _refuse_unwritten(self) -> None:
        """A commit that is in a log beside the file only, as on a full disk, would not be put back with it."""
        for end in (".wal", "-wal", "-journal"):
            log = Path(f"{self._copy}{end}")
            if log.exists() and log.stat().st_size:
                raise MetadataQueryFailed(self.name, f"its copy {self._copy} could not be written; is the disk full?")

    def add_index(self, name: str, table: str, columns: Sequence[str]) -> bool:
        return self._inside.add_index(name, table, columns)

    def indexes(self) -> set[str] | None:
        return self._inside.indexes()

    def close(self) -> None:
        with self._guard:
            try:
                if self._has_unsaved:
                    self._save()
            finally:
                self._inside.close()
                self._lock.give_up()
            self._forget_copy()

    def _take_lock(self) -> None:
        if self._lock.is_held:
            self._lock.renew()
            return
        if self._has_unsaved:
            raise MetadataQueryFailed(
                self.name, "the lock was not renewed in time, and another run may have taken it over: end this run"
            )
        left_by = self._lock.take(self._wait)
        if self._at_end:
            self._lock.keep()
        if left_by is not None:
            self.warnings.append(
                f"{self.name} was held by {left_by}, which let its time run out: it is taken over. What that run "
                f"committed and did not put back is in {left_by.copy} on {left_by.host}; the store has what was before."
            )

    def _fetch(self) -> None:
        """The store's file as our copy, where it is another than we know. What is not put back yet stays."""
        if self._has_unsaved:
            return
        version = self._stored.version()
        if version == self._version and (version is None or self._copy.exists()):
            return
        found = self._stored.read()
        self._forget_copy()
        if found is not None:
            self._copy.write_bytes(found.data)
            self._version = found.version

    def _put_back(self) -> None:
        """Contended where the store has another version than ours was made from; CommitBroken where it does not
        answer."""
        data = self._copy.read_bytes()
        try:
            self._version = self._stored.write(data, self._version)
        except Outdated as error:
            raise Contended(f"{self.name} was put back by another run meanwhile") from error
        except MetadataQueryFailed as error:
            # What was sent may still be on its way there, whatever the store has now.
            raise CommitBroken(str(error)) from error
        self._has_unsaved = False

    def _save(self) -> None:
        """Put back at the end what the run committed; what cannot be is kept, and it is said where."""
        try:
            self._put_back_at_last()
        except (Contended, CommitBroken, MetadataQueryFailed) as error:
            kept = self._copy.with_suffix(".unsaved")
            shutil.copy2(self._copy, kept)
            self._has_unsaved = False
            raise MetadataQueryFailed(
                self.name,
                f"what this run committed could not be put back ({error}). It is in {kept}. If the store still has "
                f"what was before, copy that file to {self._stored.url}; else run again",
            ) from error

    def _put_back_at_last(self) -> None:
        """All that a run committed depends on this, so it is tried more than once."""
        for attempt in range(_LAST_ATTEMPTS):
            try:
                self._lock.renew()
                self._put_back()
                return
            except (CommitBroken, MetadataQueryFailed):
                if attempt + 1 == _LAST_ATTEMPTS or not self._lock.is_held:
                    raise
                time.sleep(_PAUSE * 2**attempt)

    def _kept(self) -> Path | None:
        """The copy as it was before a transaction."""
        if not self._copy.exists():
            return None
        beside = self._copy.with_suffix(".before")
        shutil.copy2(self._copy, beside)
        return beside

    def _restore(self, before: Path | None) -> None:
        for path in self._copy.parent.glob(f"{self._copy.name}*"):
            path.unlink()
        if before is not None:
            os.replace(before, self._copy)
        self._has_unsaved = self._has_unsaved and self._at_end and before is not None

    def _forget_copy(self) -> None:
        for path in self._copy.parent.glob(f"{self._copy.name}*"):
            path.unlink()
        self._version, self._has_unsaved = None, False


def _folder(url: str) -> Path:
    """Where copies of a file lie: they outlive a run that dies."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "dbt-ducklake" / "metadata" / hashlib.sha256(url.encode()).hexdigest()[:16]
