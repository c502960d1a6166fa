"""Changing a table of 6 million rows, side by side in one run: this adapter, dbt-duckdb on DuckLake, dbt-spark writing
the table anew, and raw Spark doing the same join and writes. `make bench-changes`."""

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.spark.session import SparkHandle, SparkSettings
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.bench.spark import make_lineitem
from tests.judge import FOLDER as JUDGE
from tests.judge import Judge, extension_file

DBT = Path(sys.executable).with_name("dbt")
KEYS = ("l_orderkey", "l_linenumber")
SHARES = (1, 10, 50)
NEW_KEYS = 10**9
MEMORY = {"spark.driver.memory": "8g"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: 1)")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--sides", nargs="+", default=["ducklake", "dbt-duckdb", "dbt-spark"], help="of dbt")
    arguments.add_argument("--no-raw", action="store_true", help="leave raw Spark out")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="dbt-ducklake-bench-") as name:
        folder = Path(name)
        lineitem = make_lineitem(folder, given.scale)
        make_batches(folder, lineitem)
        against_dbt(folder, lineitem, given.rounds, given.sides)
        if not given.no_raw:
            against_raw_spark(folder, lineitem, given.rounds)


def batch(folder: Path, share: int) -> Path:
    return folder / f"batch_{share}.parquet"


def make_batches(folder: Path, lineitem: Path) -> None:
    """Of each share of the orders, spread over the whole table, the rows with other values; of a tenth of them rows
    with new keys."""
    with Judge() as judge:
        for share in SHARES:
            chosen = f"SELECT * FROM '{lineitem}' WHERE hash(l_orderkey) % 100 < {share}"
            changed = "* REPLACE (l_quantity + 1 AS l_quantity, 'changed' AS l_comment)"
            new = f"* REPLACE (l_orderkey + {NEW_KEYS} AS l_orderkey)"
            more = f"SELECT {new} FROM ({chosen}) WHERE hash(l_orderkey, 1) % 10 = 0"
            judge.run(
                f"COPY (SELECT {changed} FROM ({chosen}) UNION ALL {more}) TO '{batch(folder, share)}' (FORMAT parquet)"
            )


class Side:
    """One dbt project with the table, and how it is brought back to what it was."""

    def __init__(self, folder: Path, adapter: str, target: dict[str, Any], kept: Path | None, reads: str) -> None:
        self.folder, self.adapter, self.kept = folder / adapter, adapter, kept
        (self.folder / "models").mkdir(parents=True)
        (self.folder / "macros").mkdir()
        flags = {"send_anonymous_usage_stats": False}
        self.write("dbt_project.yml", {"name": "bench", "version": "1.0.0", "profile": "bench", "flags": flags})
        outputs = {"dev": {"type": adapter, "schema": "main", "threads": 1, **target}}
        self.write("profiles.yml", {"bench": {"target": "dev", "outputs": outputs}})
        self.reads = reads
        # DuckDB's side runs on the DuckDB that its extension is for.
        self.environment = {"PYTHONPATH": str(JUDGE)} if adapter == "duckdb" else {}

    def write(self, name: str, content: object) -> None:
        (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content))

    def keep(self) -> None:
        """Remember the metadata as they are: files are never changed, so that with them all is as it was."""
        if self.kept is not None:
            shutil.copy(self.kept, f"{self.kept}.kept")

    def restore(self) -> None:
        if self.kept is not None:
            shutil.copy(f"{self.kept}.kept", self.kept)

    def run(self, *arguments: str) -> float:
        started = time.monotonic()
        done = subprocess.run(
            [str(DBT), "--quiet", *arguments, "--profiles-dir", "."],
            cwd=self.folder, capture_output=True, text=True, check=False,
            env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "0", **self.environment},
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{self.adapter}: dbt {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
        return time.monotonic() - started


def sides(folder: Path) -> dict[str, Side]:
    spark = {"master": "local[2]", "config": MEMORY}
    lake = {"metadata": f"duckdb:{folder}/ours.ducklake", "spark": spark}
    ours = Side(folder, "ducklake", lake, folder / "ours.ducklake", "parquet.`{}`")
    extension = extension_file("ducklake")
    extensions = folder / "extensions" / extension.parent.name / _platform()
    extensions.mkdir(parents=True)
    shutil.copy(extension, extensions)
    # Both sides may use as much memory. Beside a path that begins with ducklake: there is none for what does not fit.
    settings = {"extension_directory": str(folder / "extensions"), "memory_limit": "8GB", "threads": 2}
    settings["temp_directory"] = str(folder / "spilled")
    own: dict[str, Any] = {"path": f"ducklake:{folder}/theirs.ducklake", "database": "theirs"}
    own |= {"config_options": settings, "extensions": ["ducklake"]}
    theirs = Side(folder, "duckdb", own, folder / "theirs.ducklake", "read_parquet('{}')")
    derby = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    warehouse = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.master": "local[2]"}
    warehouse |= {"spark.ui.enabled": "false", "spark.hadoop.javax.jdo.option.ConnectionURL": derby, **MEMORY}
    session = {"method": "session", "host": "localhost", "server_side_parameters": warehouse}
    rewriting = Side(folder, "spark", session, None, "parquet.`{}`")
    return {"ducklake": ours, "dbt-duckdb": theirs, "dbt-spark": rewriting}


def _platform() -> str:
    with duckdb.connect() as opened:
        return str(opened.execute("PRAGMA platform").fetchall()[0][0])


def write_models(side: Side, folder: Path, lineitem: Path) -> None:
    all_rows = f"select * from {side.reads.format(lineitem)}"
    if side.adapter == "spark":
        table = "{{ config(materialized='table', file_format='parquet') }} "
        side.write("models/base.sql", table + all_rows)
        on = " and ".join(f"b.{key} = t.{key}" for key in KEYS)
        for share in SHARES:
            rows = side.reads.format(batch(folder, share))
            kept = f"select t.* from {{{{ ref('base') }}}} t left anti join {rows} b on {on}"
            side.write(f"models/merge_{share}.sql", f"{table}{kept} union all select * from {rows}")
        anew = table + "select * from {{ ref('base') }}"
        side.write("models/append.sql", f"{anew} union all select * from {side.reads.format(batch(folder, 1))}")
        side.write("models/remove.sql", f"{anew} where l_orderkey % 100 <> 7")
        return
    later = "select * from " + side.reads.format("{{ var('batch') }}")
    settings = f"incremental_strategy=var('strategy', 'merge'), unique_key=var('keys', {list(KEYS)})"
    head = f"{{{{ config(materialized='incremental', {settings}) }}}} "
    side.write("models/base.sql", f"{head}{{% if is_incremental() %}}{later}{{% else %}}{all_rows}{{% endif %}}")
    delete = "'delete from ' ~ target.database ~ '.main.base where l_orderkey % 100 = 7'"
    side.write("macros/remove.sql", f"{{% macro remove() %}}{{% do run_query({delete}) %}}{{% endmacro %}}")


def against_dbt(folder: Path, lineitem: Path, rounds: int, wanted: Sequence[str]) -> None:
    found = {name: side for name, side in sides(folder).items() if name in wanted}
    for side in found.values():
        write_models(side, folder, lineitem)
        side.run("run", "--select", "base")
        side.keep()
    titles = [f"merge {share} %" for share in SHARES] + ["append 1 %", "delete 1 %"]
    print(
        f"\n{'seconds of the command, median of ' + str(rounds):<36}" + "".join(f"{name:>12}" for name in found),
        flush=True,
    )
    for place, title in enumerate(titles):
        times: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(rounds if place < 2 else max(1, rounds - 1)):
            for name, side in found.items():
                side.restore()
                times[name].append(one_change(side, folder, title))
        medians = [statistics.median(times[name]) for name in found]
        print(f"{title:<36}" + "".join(f"{seconds:>12.1f}" for seconds in medians), flush=True)


def one_change(side: Side, folder: Path, title: str) -> float:
    kind, share = title.split()[0], title.split()[1]
    if side.adapter == "spark":
        return side.run("run", "--select", {"merge": f"merge_{share}", "append": "append", "delete": "remove"}[kind])
    if kind == "delete":
        return side.run("run-operation", "remove")
    given: dict[str, object] = {"batch": str(batch(folder, int(share)))}
    if kind == "append":
        given |= {"strategy": "append", "keys": []}
    return side.run("run", "--select", "base", "--vars", json.dumps(given))


def against_raw_spark(folder: Path, lineitem: Path, rounds: int) -> None:
    """In one session that is warm: our statements, and the same join and writes without a lake."""
    handle = SparkHandle(
        SparkSettings(master="local[2]", config={"spark.driver.memory": "8g"}, log_file=str(folder / "log"))
    )
    place = folder / "warm.ducklake"
    with connect(LakeDescription(f"duckdb:{place}")) as lake:
        run(
            LakeSession({"lake": lake}, "lake", "main", handle), f"create table t as select * from parquet.`{lineitem}`"
        )
    shutil.copy(place, f"{place}.kept")
    spark = handle.session()
    with connect(LakeDescription(f"duckdb:{place}")) as lake:
        snapshot = lake.snapshot()
        paths = [file.path for file in snapshot.files(snapshot.table("main", "t")).data_files]

    def ours(sql: str) -> Callable[[], None]:
        def work() -> None:
            with connect(LakeDescription(f"duckdb:{place}")) as lake:
                run(LakeSession({"lake": lake}, "lake", "main", handle), sql)

        return work

    def raw(share: int) -> Callable[[], None]:
        def work() -> None:
            table = spark.read.parquet(*paths).withColumns(
                {"_file": F.col("_metadata.file_path"), "_pos": F.col("_metadata.row_index")}
            )
            source = spark.read.parquet(str(batch(folder, share)))
            condition = [table[key] == source[key] for key in KEYS]
            joined = table.join(source, condition, "right_outer").select(
                *(source[name] for name in source.columns), "_file", "_pos"
            ).persist()  # fmt: skip
            joined.drop("_file", "_pos").write.parquet(str(folder / "raw" / "rows"))
            gone = joined.where(F.col("_file").isNotNull()).select("_file", "_pos")
            gone.repartition("_file").sortWithinPartitions("_file", "_pos").write.parquet(str(folder / "raw" / "gone"))
            joined.unpersist()
            shutil.rmtree(folder / "raw")

        return work

    print(
        f"\n{'seconds in a warm session, median of ' + str(rounds):<36}{'ours':>12}{'raw Spark':>12}{'ratio':>12}",
        flush=True,
    )
    on = " and ".join(f"t.{key} = s.{key}" for key in KEYS)
    for share in SHARES:
        merge = (
            f"merge into t using parquet.`{batch(folder, share)}` s on {on} when matched then update set * "
            "when not matched then insert *"
        )
        times: tuple[list[float], list[float]] = ([], [])
        for number in range((rounds if share < 50 else 1) + 1):
            for work, taken in zip((ours(merge), raw(share)), times, strict=True):
                shutil.copy(f"{place}.kept", place)
                started = time.monotonic()
                work()
                if number:
                    taken.append(time.monotonic() - started)
        mine, other = statistics.median(times[0]), statistics.median(times[1])
        print(f"{f'merge {share} %':<42}{mine:>9.2f}{other:>11.2f}{mine / other:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
