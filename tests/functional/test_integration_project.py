"""The shop of integration_project, built as a user builds it, is in DuckDB what dbt says that it wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.judge import Judge

SHOP = Path(__file__).parents[2] / "integration_project"
DBT = Path(sys.executable).with_name("dbt")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "project"
    shutil.copytree(SHOP, folder, ignore=shutil.ignore_patterns("target", "logs", "*.ducklake*"))
    return folder


def dbt(shop: Path, *arguments: str, **environment: str) -> str:
    command = [str(DBT), "--no-use-colors", *arguments, "--profiles-dir", "."]
    lake = {"SHOP_LAKE": str(shop.parent / "shop.ducklake")}
    done = subprocess.run(
        command, cwd=shop, env={**os.environ, **lake, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # What Java and Spark have to say goes to the log.
    assert not done.stderr
    return done.stdout


def results(shop: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((shop / "target" / "run_results.json").read_text())["results"]
    return found


def relation(result: dict[str, Any]) -> str:
    """Where a node's rows are; dbt does not say it of seeds."""
    named: str | None = result["relation_name"]
    return named.replace("`", "").removeprefix("lake.") if named else f"main_raw.{result['unique_id'].split('.')[-1]}"


def test_the_shop_is_built_and_duckdb_reads_it(shop: Path) -> None:
    assert "PASS=25 WARN=1 ERROR=0 SKIP=0" in dbt(shop, "build")
    rows = {
        relation(result): result["adapter_response"]["rows_affected"]
        for result in results(shop)
        if result["unique_id"].split(".")[0] in ("model", "seed") and result["adapter_response"].get("files")
    }
    assert len(rows) == 11
    with Judge() as judge:
        judge.attach(f"duckdb:{shop.parent}/shop.ducklake")
        for name, count in rows.items():
            assert judge.rows(f"SELECT count(*) FROM lake.{name}") == [(count,)], name
        # A view that Spark made, in DuckDB's SQL.
        (amount,) = judge.rows("SELECT sum(amount) FROM lake.main.stg_order_items")[0]
        spent = "SELECT sum(amount) FROM lake.main.stg_order_items JOIN lake.main.stg_orders USING (order_id)"
        assert judge.rows(f"{spent} WHERE status = 'paid'") == judge.rows("SELECT sum(amount) FROM lake.main.orders")
        assert amount > 0
        comments = "SELECT comment FROM duckdb_columns() WHERE table_name = 'orders' AND column_name = 'order_id'"
        assert judge.rows(comments) == [("The till's number of the order.",)]
        said = (
            "SELECT author, commit_message, commit_extra_info FROM lake.snapshots() ORDER BY snapshot_id DESC LIMIT 1"
        )
        _, message, extra = judge.rows(said)[0]
        assert message == "dbt: model.shop.customer_segments"
        assert json.loads(extra)["target"] == "embedded"


@pytest.mark.parametrize("arguments", [("ls",), ("parse",), ("docs", "generate"), ("source", "freshness")])
def test_what_needs_no_rows_starts_no_java(shop: Path, arguments: tuple[str, ...]) -> None:
    dbt(shop, *arguments, JAVA_HOME="/nonexistent", PATH="/nonexistent")


def test_the_catalog_tells_rows_and_files(shop: Path) -> None:
    dbt(shop, "build", "--select", "+customers")
    dbt(shop, "docs", "generate")
    catalog = json.loads((shop / "target" / "catalog.json").read_text())
    stats = catalog["nodes"]["model.shop.customers"]["stats"]
    assert stats["row_count"]["value"] == 40
    assert stats["files"]["value"] >= 1
    assert list(catalog["nodes"]["model.shop.stg_orders"]["columns"]) == [
        "order_id", "customer_id", "ordered_at", "status",
    ]  # fmt: skip


def test_a_missing_java_is_said_in_one_line(shop: Path) -> None:
    with pytest.raises(AssertionError, match="Spark needs Java 17 or newer, and JAVA_HOME is /nonexistent"):
        dbt(shop, "debug", JAVA_HOME="/nonexistent")


def run_increments(shop: Path, lake: str, increments: int) -> list[int]:
    """Run one model again and again, in this process; how many files its table has after each time."""
    from dbt.cli.main import dbtRunner

    os.environ["SHOP_LAKE"] = lake
    counts = []
    for number in range(1, increments + 1):
        until = json.dumps({"orders_until": 6 * number})
        folders = ["--project-dir", str(shop), "--profiles-dir", str(shop)]
        done = dbtRunner().invoke(["--quiet", "run", "--select", "order_log", "--vars", until, *folders])
        assert done.success, done.exception
        with Judge() as judge:
            judge.attach(f"duckdb:{lake}")
            counts.append(judge.rows("SELECT count(*) FROM ducklake_list_files('lake', 'order_log')")[0][0])
    return counts


@pytest.mark.slow
def test_fifty_small_increments_leave_few_files(shop: Path) -> None:
    lake = str(shop.parent / "increments.ducklake")
    dbt(shop, "build", "--select", "+stg_orders", SHOP_LAKE=lake)
    with get_context("spawn").Pool(1) as pool:
        counts = pool.apply(run_increments, (shop, lake, 50))
    print(f"\nfiles after each of 50 increments: {counts}")
    # Each increment brings one file or two; ten small ones become one.
    assert max(counts) <= 11
    assert sum(later < earlier for earlier, later in pairwise(counts)) >= 4
    with Judge() as judge:
        judge.attach(f"duckdb:{lake}")
        assert judge.rows("SELECT count(*), count(DISTINCT order_id) FROM lake.main.order_log") == [(300, 300)]
        made = "SELECT count(*) FROM lake.snapshots() WHERE list_contains(map_keys(changes), 'merge_adjacent')"
        print("merges:", judge.rows(made))
        (last,) = judge.rows("SELECT max(snapshot_id) FROM lake.snapshots()")[0]
        inserted = f"SELECT count(*) FROM ducklake_table_insertions('lake', 'main', 'order_log', 0, {last})"
        assert judge.rows(inserted) == [(300,)]
