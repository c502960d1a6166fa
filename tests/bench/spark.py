"""Side by side in one run: dbt with this adapter and with dbt-spark (session, Parquet), and our scan and write against
raw Spark. `make bench-spark`."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.spark.scan import scan
from dbt.adapters.ducklake.spark.schema import columns_from
from dbt.adapters.ducklake.spark.session import SparkSettings, new_session
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.spark.write import WriteSettings, write_rows
from tests.judge import Judge, extension_file

ROUNDS, SMALL = 3, 30
DBT = Path(sys.executable).with_name("dbt")
AGGREGATE = (
    "select l_returnflag, l_linestatus, sum(l_quantity) as quantity, sum(l_extendedprice * (1 - l_discount)) as price, "
    "avg(l_discount) as discount, count(*) as n from {} where l_shipdate <= date'1998-09-02' group by 1, 2"
)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dbt-ducklake-bench-") as name:
        folder = Path(name)
        lineitem = make_lineitem(folder)
        against_dbt_spark(folder, lineitem)
        against_raw_spark(folder, lineitem)


def make_lineitem(folder: Path, scale: float = 1) -> Path:
    """TPC-H's lineitem, by DuckDB's own generator."""
    path = folder / "lineitem.parquet"
    with Judge() as judge:
        judge.run(f"LOAD '{extension_file('tpch')}'", f"CALL dbgen(sf = {scale})")
        judge.run(f"COPY lineitem TO '{path}' (FORMAT parquet)")
        print(f"lineitem: {judge.rows('SELECT count(*) FROM lineitem')[0][0]:,} rows")
    return path


class Project:
    """One dbt project with the models of the comparison, and a profile for each adapter."""

    def __init__(self, folder: Path, adapter: str, target: dict[str, object], lineitem: Path) -> None:
        self.folder, self.adapter = folder / adapter, adapter
        (self.folder / "models").mkdir(parents=True)
        config = {
            "name": "bench",
            "version": "1.0.0",
            "profile": "bench",
            "flags": {"send_anonymous_usage_stats": False},
        }
        models: dict[str, object] = {"+materialized": "table"}
        if adapter == "spark":
            models["+file_format"] = "parquet"
        self.write("dbt_project.yml", json.dumps(config | {"models": {"bench": models}}))
        outputs = {"dev": {"type": adapter, "schema": "bench", "threads": 4, **target}}
        self.write("profiles.yml", json.dumps({"bench": {"target": "dev", "outputs": outputs}}))
        for number in range(SMALL):
            sql = f"select id, id * {number + 1} as v, concat('n', id % 7) as name from range(1000)"
            self.write(f"models/small_{number:02}.sql", sql)
        self.write("models/big.sql", f"select * from parquet.`{lineitem}`")
        self.write("models/summary.sql", AGGREGATE.format("{{ ref('big') }}"))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, *arguments: str) -> float:
        """The seconds of one dbt command, from the start of the process to its end."""
        started = time.monotonic()
        done = subprocess.run(
            [str(DBT), "--quiet", *arguments, "--profiles-dir", "."],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "0"},
        )
        if done.returncode:
            raise SystemExit(f"{self.adapter}: dbt {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
        return time.monotonic() - started

    def node_seconds(self) -> float:
        results = json.loads((self.folder / "target" / "run_results.json").read_text())["results"]
        return float(sum(result["execution_time"] for result in results))


def against_dbt_spark(folder: Path, lineitem: Path) -> None:
    lake: dict[str, object] = {"metadata": f"duckdb:{folder}/bench.ducklake", "spark": {"master": "local[2]"}}
    warehouse = {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
    }
    warehouse["spark.hadoop.javax.jdo.option.ConnectionURL"] = (
        f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    )
    session: dict[str, object] = {"method": "session", "host": "localhost", "server_side_parameters": warehouse}
    ours = Project(folder, "ducklake", lake, lineitem)
    theirs = Project(folder, "spark", session, lineitem)
    print(f"\n{'seconds, median of ' + str(ROUNDS):<44}{'ducklake':>10}{'dbt-spark':>11}{'ratio':>8}")
    commands = {
        f"dbt run, {SMALL} small models": ("run", "--select", "small_*"),
        "dbt run, 6 million rows": ("run", "--select", "big"),
        "dbt run, an aggregate of them": ("run", "--select", "summary"),
        "dbt ls": ("ls",),
        "dbt debug": ("debug",),
        "dbt docs generate": ("docs", "generate"),
    }
    for title, arguments in commands.items():
        nodes: dict[str, list[float]] = {"ducklake": [], "spark": []}
        times: dict[str, list[float]] = {"ducklake": [], "spark": []}
        for _ in range(ROUNDS):
            for project in (ours, theirs):
                times[project.adapter].append(project.run(*arguments))
                if arguments[0] == "run":
                    nodes[project.adapter].append(project.node_seconds())
        show(title, times["ducklake"], times["spark"])
        if arguments[0] == "run":
            show("  of it the models' own seconds, added up", nodes["ducklake"], nodes["spark"])


def show(title: str, ours: list[float], theirs: list[float]) -> None:
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"{title:<44}{mine:>10.2f}{other:>11.2f}{mine / other:>8.2f}", flush=True)


def against_raw_spark(folder: Path, lineitem: Path) -> None:
    spark = new_session(SparkSettings(master="local[2]", log_file=str(folder / "spark.log")))
    place = folder / "raw.ducklake"
    with connect(LakeDescription(f"duckdb:{place}")) as lake:
        rows = spark.read.parquet(str(lineitem))
        transaction = lake.transaction()
        table = transaction.create_table("main", "lineitem", columns_from(rows.schema))
        settings, storage = WriteSettings.of(lake.options(), table), Storage(lake.data_path, {})

        def write_ours() -> None:
            for file in write_rows(spark, storage, rows, table, settings):
                storage.remove(file.path)

        def write_raw(**options: str) -> None:
            rows.write.options(compression="snappy", **options).parquet(str(folder / "raw"))
            shutil.rmtree(folder / "raw")

        # DuckLake's row groups are smaller than Spark's own, and cost what they cost whoever writes them.
        as_ours = {"parquet.block.row.count.limit": settings.row_group_rows}

        print(f"\n{'seconds, median of ' + str(ROUNDS):<44}{'ours':>10}{'raw Spark':>11}{'ratio':>8}")
        compare("write 6 million rows", write_ours, write_raw)
        compare("write them in the same row groups", write_ours, lambda: write_raw(**as_ours))
        transaction.append(table, write_rows(spark, storage, rows, table, settings))
        transaction.commit()
        compare_scan("scan and aggregate", spark, place)
    with Judge() as judge:
        judge.attach(f"duckdb:{place}", data_inlining_row_limit=0)
        judge.run("USE lake", "DELETE FROM lineitem WHERE hash(l_orderkey, l_linenumber) % 100 = 0")
    compare_scan("scan and aggregate, 1 % deleted", spark, place)


def compare_scan(title: str, spark: SparkSession, place: Path) -> None:
    with connect(LakeDescription(f"duckdb:{place}")) as lake:
        snapshot = lake.snapshot()
        table = snapshot.table("main", "lineitem")
        files = snapshot.files(table)
        paths = [file.path for file in files.data_files]

        def collect(rows: DataFrame) -> None:
            rows.createOrReplaceTempView("rows")
            spark.sql(AGGREGATE.format("rows")).collect()

        compare(
            title,
            lambda: collect(scan(spark, Storage(lake.data_path, {}), table, files, snapshot.id)),
            lambda: collect(spark.read.parquet(*paths)),
        )


def compare(title: str, ours: Callable[[], None], raw: Callable[[], None]) -> None:
    times: tuple[list[float], list[float]] = ([], [])
    for round_ in range(ROUNDS + 1):
        for work, found in zip((ours, raw), times, strict=True):
            started = time.monotonic()
            work()
            if round_:  # the first warms up
                found.append(time.monotonic() - started)
    show(title, *times)


if __name__ == "__main__":
    main()
