"""A metadata file in object storage, at a local S3 server and in a folder: whatever happens on the way, what the store
has is a whole lake, and nothing that was committed is lost.

`pytest -s` prints the outcome of each case.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from dbt.adapters.ducklake.lake import CommitOutcomeUnknown, Lake, LakeDescription, Patience, connect
from dbt.adapters.ducklake.lake.backends import objects, remote
from dbt.adapters.ducklake.lake.backends.objects import Content, StoredObject, object_at
from dbt.adapters.ducklake.lake.errors import (
    InvalidDescription,
    LakeHeld,
    LakeNotFound,
    MetadataQueryFailed,
    MigrationFailed,
)
from dbt.adapters.ducklake.lake.migration import migrate_lake
from tests.judge import Judge
from tests.written import plain, write_file

STORES = ("s3", "file")
KINDS = ("duckdb", "sqlite")


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, Any]]:
    """A server, and what a client needs to reach it: one for the process, as what it stores belongs to the process."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    config = {"retries": {"max_attempts": 1}, "connect_timeout": 2}
    options = {"key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}", "config_kwargs": config}
    fsspec.filesystem("s3", **options).mkdir("bucket")
    yield options
    server.stop()


@dataclass
class Remote:
    """Where a lake's metadata lie."""

    kind: str
    url: str
    options: dict[str, Any]
    folder: Path

    def describe(self, **more: Any) -> LakeDescription:
        given = {"data_path": str(self.folder / "data"), "metadata_options": self.options, "busy_timeout": 30.0,
                 "patience": Patience(attempts=50, wait_ms=5, backoff=1.05), "ducklake_version": "1.0",
                 **more}  # fmt: skip
        return LakeDescription(f"{self.kind}:{self.url}", **given)

    def connect(self, **more: Any) -> Lake:
        return connect(self.describe(**more))

    def stored(self, suffix: str = "") -> StoredObject:
        return object_at(self.url + suffix, self.options)

    def judged(self, sql: str) -> list[tuple[Any, ...]]:
        """What DuckDB's extension reads of the file that the store has."""
        found = self.stored().read()
        assert found is not None
        copy = self.folder / "judged"
        copy.write_bytes(found.data)
        with Judge.of_this_process().attached(f"{self.kind}:{copy}", read_only=True) as judge:
            judge.run("USE lake")
            return judge.rows(sql)

    def values(self) -> list[int]:
        return [value for (value,) in self.judged("SELECT a FROM t ORDER BY a")]

    def snapshots(self) -> list[int]:
        return [id for (id,) in self.judged("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind() -> str:
    return "duckdb"


@pytest.fixture
def place(
    kind: str, store: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Remote:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if store == "s3":
        options = request.getfixturevalue("s3")
        return Remote(kind, f"s3://bucket/{tmp_path.name}/lake.meta", options, tmp_path)
    return Remote(kind, f"file://{tmp_path}/lake.meta", {}, tmp_path)


def make(place: Remote, **more: Any) -> None:
    with place.connect(**more) as lake:
        made = lake.transaction()
        made.create_table("main", "t", plain("a"))
        made.commit()


def append(lake: Lake, value: int) -> int:
    transaction = lake.transaction()
    table = transaction.table("main", "t")
    transaction.append(table, [write_file(table, [(value,)])])
    return transaction.commit()


def said(place: Remote, case: str, outcome: str) -> None:
    print(f"\n{place.url.split(':')[0]} | {case} | {outcome}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_run_starts_fresh_and_each_commit_is_put_back(place: Remote) -> None:
    with pytest.raises(LakeNotFound):
        place.connect(create_if_not_exists=False)
    assert place.stored().version() is None
    with place.connect() as lake:
        first = place.stored().version()
        made = lake.transaction()
        made.create_table("main", "t", plain("a"))
        made.commit()
        assert place.stored().version() != first
        append(lake, 1)
        assert place.values() == [1]
        with place.connect() as other:
            append(other, 2)
        # Whoever reads on reads what others put there.
        assert len(lake.snapshot().files(lake.snapshot().table("main", "t")).data_files) == 2
        append(lake, 3)
    assert place.values() == [1, 2, 3]
    assert place.stored(".lock").version() is None
    with place.connect(read_only=True) as lake:
        assert lake.snapshot().id == 4
    said(place, "first run, commits, a second client", "each commit is in the store; no lock is left")


@pytest.mark.parametrize("kind", KINDS)
def test_two_runs_at_once_lose_nothing(place: Remote) -> None:
    make(place)
    with get_context("spawn").Pool(3) as pool:
        pool.starmap(_append_many, [(place, worker, 8) for worker in range(3)])
    assert place.values() == sorted(worker * 100 + n for worker in range(3) for n in range(8))
    assert place.snapshots() == list(range(26))
    said(place, "three runs at once, 8 commits each", "24 commits, one after the other")


def _append_many(place: Remote, worker: int, count: int) -> None:
    with place.connect() as lake:
        for number in range(count):
            append(lake, worker * 100 + number)


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_a_run_that_is_killed_leaves_the_last_good_state(
    place: Remote, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(place)
    before = place.stored().read()
    process = get_context("spawn").Process(target=_append_and_die, args=(place, when))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    after = place.stored().read()
    assert place.values() == ([7] if when == "after" else [])
    assert (after == before) is (when != "after")
    # Its lock ends by itself, and then the next goes on.
    assert place.stored(".lock").version() is not None
    with pytest.raises(LakeHeld, match=rf"process {process.pid} on .*unless it goes on"):
        append(_impatient(place), 8)
    _let_it_end(place)
    with place.connect() as lake:
        append(lake, 8)
        assert any("let its time run out" in text for text in lake.take_warnings())
    assert place.values() == ([7, 8] if when == "after" else [8])
    said(place, f"killed {when} the put", "the last good state; the next run takes the lock over once it has ended")


def _impatient(place: Remote) -> Lake:
    return place.connect(busy_timeout=0.3)


def _let_it_end(place: Remote) -> None:
    """As if a minute went by."""
    found = place.stored(".lock").read()
    assert found is not None
    hold = json.loads(found.data)
    hold["until"] = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    place.stored(".lock").write(json.dumps(hold).encode(), found.version)


def _append_and_die(place: Remote, when: str) -> None:
    write = StoredObject.write

    def dying(self: StoredObject, data: bytes, expected: str | None) -> str:
        if self.url.endswith(".lock"):
            return write(self, data, expected)
        if when == "after":
            write(self, data, expected)
        elif when == "during":
            # What a store has of an upload that was cut off is nothing.
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
            threading.Event().wait(5)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    StoredObject.write = dying  # type: ignore[method-assign]
    with place.connect() as lake:
        append(lake, 7)


def failing(monkeypatch: pytest.MonkeyPatch, applied: bool, times: int = 1, down: bool = False) -> Callable[[], int]:
    """Let the next puts of the file fail, with what they put there or not; `down`: nothing is answered after that."""
    left, is_down = [times], [False]
    found = {cls: (cls._write, cls.version, cls.read) for cls in (objects.S3Object, objects.LocalObject)}

    def wrap(cls: type[StoredObject]) -> None:
        write, version, read = found[cls]  # type: ignore[index]

        def broken_write(self: StoredObject, data: bytes, expected: str | None) -> str:
            if self.url.endswith(".lock") or left[0] == 0:
                return str(write(self, data, expected))  # type: ignore[arg-type]
            left[0] -= 1
            if applied:
                write(self, data, expected)  # type: ignore[arg-type]
            is_down[0] = down
            raise MetadataQueryFailed(self.url, "it could not be written: the network is gone")

        def broken_version(self: StoredObject) -> str | None:
            if is_down[0]:
                raise MetadataQueryFailed(self.url, "it could not be found: the network is gone")
            return version(self)  # type: ignore[arg-type]

        def broken_read(self: StoredObject) -> Content | None:
            if is_down[0]:
                raise MetadataQueryFailed(self.url, "it could not be read: the network is gone")
            return read(self)  # type: ignore[arg-type]

        monkeypatch.setattr(cls, "_write", broken_write)
        monkeypatch.setattr(cls, "version", broken_version)
        monkeypatch.setattr(cls, "read", broken_read)

    for cls in found:
        wrap(cls)
    return lambda: left[0]


def test_a_put_that_fails_leaves_what_was_before(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    with place.connect() as lake:
        append(lake, 1)
        with monkeypatch.context() as patched:
            failing(patched, applied=False)
            # What was sent may be on its way still, so its files are kept.
            with pytest.raises(CommitOutcomeUnknown, match="outcome is unknown"):
                append(lake, 2)
        assert lake.snapshot().id == 2
        append(lake, 3)
    assert place.values() == [1, 3]
    said(place, "the network fails before the put", "said to be unknown; the store has what was before, and goes on")


def test_a_put_whose_answer_is_lost_is_a_commit(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    with place.connect() as lake:
        with monkeypatch.context() as patched:
            failing(patched, applied=True)
            assert append(lake, 1) == 2
        append(lake, 2)
    assert place.values() == [1, 2]
    said(place, "the network fails after the put", "the store is asked what it has: committed once")


@pytest.mark.parametrize("kind", KINDS)
def test_a_lake_in_a_store_is_migrated_as_a_whole(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    with place.connect() as lake:
        append(lake, 1)
    before = place.stored().read()
    newer = place.describe(ducklake_version="1.1", automatic_migration=True)
    assert [(step.before, step.after) for step in migrate_lake(newer, dry_run=True)] == [("1.0", "1.1")]
    assert place.stored().read() == before
    with monkeypatch.context() as patched:
        failing(patched, applied=False)
        with pytest.raises(MigrationFailed, match="as a whole or not at all"):
            connect(newer)
    assert place.stored().read() == before
    with monkeypatch.context() as patched:
        failing(patched, applied=True)
        connect(newer).close()
    # A lake of another version would be refused.
    with place.connect(ducklake_version="1.1") as lake:
        append(lake, 2)
        snapshot = lake.snapshot()
        assert snapshot.id == 3
        assert len(snapshot.files(snapshot.table("main", "t")).data_files) == 2


@pytest.mark.parametrize("applied", [True, False])
def test_a_store_that_answers_no_more_leaves_the_outcome_open(
    place: Remote, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(place)
    lake = place.connect()
    with monkeypatch.context() as patched:
        failing(patched, applied=applied, down=True)
        with pytest.raises(CommitOutcomeUnknown, match="outcome is unknown"):
            append(lake, 1)
    append(lake, 2)
    lake.close()
    assert place.values() == ([1, 2] if applied else [2])
    said(place, f"the store is gone {'after' if applied else 'before'} the put", "the outcome is said to be unknown")


def test_what_another_put_there_meanwhile_is_not_written_over(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a lock ran out while its owner was stopped, and another took it over."""
    make(place)
    write, done = StoredObject.write, list[bool]()

    def late(self: StoredObject, data: bytes, expected: str | None) -> str:
        if not self.url.endswith(".lock") and not done:
            done.append(True)
            _let_it_end(place)
            with place.connect() as other:
                append(other, 1)
        return write(self, data, expected)

    monkeypatch.setattr(StoredObject, "write", late)
    with place.connect() as lake:
        assert append(lake, 2) == 3
    assert place.values() == [1, 2]
    said(place, "the lock is taken over within a commit", "the put is refused; fetched anew and committed after it")


def test_a_lock_that_holds_is_waited_for_and_then_told(place: Remote) -> None:
    make(place)
    with place.connect(metadata_put="end") as lake:
        append(lake, 1)
        with pytest.raises(LakeHeld, match=rf"process {os.getpid()} on .* since .* until"):
            append(_impatient(place), 2)
        # Who only reads is not kept waiting, and sees what was put back.
        with place.connect(read_only=True) as reading:
            assert reading.snapshot().id == 1
        assert place.snapshots() == [0, 1]
        append(lake, 3)
    assert place.values() == [1, 3]
    assert place.stored(".lock").version() is None
    with place.connect() as lake:
        append(lake, 4)
    assert place.values() == [1, 3, 4]
    said(place, "put back at the end, another run meanwhile", "the other is told who holds it; all is there at the end")


def test_what_cannot_be_put_back_at_the_end_is_kept(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    lake = place.connect(metadata_put="end")
    append(lake, 1)
    with monkeypatch.context() as patched:
        failing(patched, applied=False, times=9)
        with pytest.raises(MetadataQueryFailed, match=r"It is in (\S+)\. If the store still has") as caught:
            lake.close()
    assert place.snapshots() == [0, 1]
    kept = Path(str(caught.value).split("It is in ")[1].split(". If")[0])
    found = place.stored().read()
    assert found is not None
    place.stored().write(kept.read_bytes(), found.version)
    assert place.values() == [1]
    said(place, "the put at the end fails", "the file is kept, and the error says where and what to do with it")


def test_a_run_that_is_killed_before_its_end_says_where_its_copy_is(place: Remote) -> None:
    make(place)
    process = get_context("spawn").Process(target=_append_to_the_end_and_die, args=(place,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert place.values() == []
    _let_it_end(place)
    with place.connect(metadata_put="end") as lake:
        append(lake, 8)
        (text,) = [text for text in lake.take_warnings() if "let its time run out" in text]
    copy = Path(text.split("did not put back is in ")[1].split(" on ")[0])
    with connect(LakeDescription(f"duckdb:{copy}", data_path=str(place.folder / "data"), read_only=True)) as left:
        assert left.snapshot().id == 2
    assert place.values() == [8]
    said(place, "killed with commits that were not put back", "the next run says where they are")


def _append_to_the_end_and_die(place: Remote) -> None:
    with place.connect(metadata_put="end") as lake:
        append(lake, 7)
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_put_that_fails_at_the_end_is_tried_again(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    lake = place.connect(metadata_put="end")
    append(lake, 1)
    with monkeypatch.context() as patched:
        failing(patched, applied=False, times=2)
        lake.close()
    assert place.values() == [1]


def test_a_lock_that_was_lost_is_not_taken_again(place: Remote) -> None:
    make(place)
    lake = place.connect(metadata_put="end")
    append(lake, 1)
    _let_it_end(place)
    with place.connect() as other:
        append(other, 2)
    with pytest.raises(MetadataQueryFailed, match="taken it over"):
        append(lake, 3)
    with pytest.raises(MetadataQueryFailed, match="taken it over"):
        append(lake, 4)
    with pytest.raises(MetadataQueryFailed, match="could not be put back"):
        lake.close()
    assert place.values() == [2]


def test_a_commit_that_only_its_log_has_is_none(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    make(place)
    with place.connect() as lake:
        copies = [*(place.folder / "cache").rglob("*.metadata")]
        transaction = lake.transaction()
        transaction.create_schema("s")
        check = remote.RemoteBackend._refuse_unwritten

        def with_log(self: remote.RemoteBackend) -> None:
            Path(f"{self._copy}.wal").write_bytes(b"x")
            check(self)

        with monkeypatch.context() as patched:
            patched.setattr(remote.RemoteBackend, "_refuse_unwritten", with_log)
            with pytest.raises(MetadataQueryFailed, match="is the disk full"):
                transaction.commit()
        assert copies
        append(lake, 1)
    assert place.values() == [1]
    assert place.snapshots() == [0, 1, 2]


def test_a_lock_is_kept_as_long_as_the_run_takes(place: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_HOLDS_FOR", timedelta(seconds=0.9))
    make(place)
    with place.connect(metadata_put="end") as lake:
        append(lake, 1)
        threading.Event().wait(2.5)
        with pytest.raises(LakeHeld):
            append(_impatient(place), 2)
        append(lake, 3)
    assert place.values() == [1, 3]


def test_a_lock_that_is_none_of_ours_counts_as_none(place: Remote) -> None:
    make(place)
    place.stored(".lock").write(b"not json", None)
    with place.connect() as lake:
        append(lake, 1)
    assert place.values() == [1]


def test_stores_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="gcsfs"):
        connect(LakeDescription("duckdb:gs://bucket/x", data_path=str(tmp_path)))
    with pytest.raises(InvalidDescription, match="nonsense"):
        connect(LakeDescription("duckdb:nonsense://bucket/x", data_path=str(tmp_path)))
    with pytest.raises(InvalidDescription, match="metadata_put"):
        LakeDescription("duckdb:s3://bucket/x", metadata_put="sometimes")


def test_other_stores_go_by_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = Remote("sqlite", f"memory://{tmp_path.name}/lake.meta", {}, tmp_path)
    make(place)
    with place.connect() as lake, place.connect() as other:
        append(lake, 1)
        append(other, 2)
        append(lake, 3)
    assert place.values() == [1, 2, 3]
