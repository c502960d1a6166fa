"""The shop of integration_project, built as a user builds it, is in DuckDB what dbt says that it wrote."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.java import QUICK
from tests.judge import Judge
from tests.tenants import TenantPlace
from tests.written import plain

SHOP = Path(__file__).parents[2] / "integration_project"
DBT = Path(sys.executable).with_name("dbt")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "project"
    shutil.copytree(SHOP, folder, ignore=shutil.ignore_patterns("target", "logs", "*.ducklake*"))
    return folder


@pytest.fixture(scope="module")
def built(shop: Path) -> list[dict[str, Any]]:
    """The results of building it: later commands write theirs over them."""
    assert "PASS=25 WARN=1 ERROR=0 SKIP=0" in dbt(shop, "build")
    return results(shop)


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


def test_the_shop_is_built_and_duckdb_reads_it(shop: Path, built: list[dict[str, Any]]) -> None:
    rows = {
        relation(result): result["adapter_response"]["rows_affected"]
        for result in built
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


@pytest.mark.usefixtures("built")
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


def test_two_tenants_and_what_they_share(tmp_path: Path) -> None:
    """One project, a target for each tenant: the same models in lakes of their own, beside one that both read."""
    shop = tmp_path / "project"
    shutil.copytree(SHOP, shop, ignore=shutil.ignore_patterns("target", "logs", "*.ducklake*"))
    place = TenantPlace("duckdb", tmp_path)
    places = {
        "SHOP_TENANTS": place.metadata, "SHOP_TENANTS_DATA": place.data_path,
        "SHOP_COMPANY": str(tmp_path / "company.ducklake"),
    }  # fmt: skip

    def run(*arguments: str, target: str) -> str:
        return dbt(shop, *arguments, "--target", target, **places)

    run("seed", "--select", "company", target="company")
    for tenant in ("acme", "globex"):
        assert "ERROR=0" in run("build", target=tenant)
    assert run("run-operation", "ducklake_tenants", target="operator").splitlines()[-2:] == [
        "acme", "globex"
    ]  # fmt: skip
    # Globex goes its own way from here on, and acme does not notice.
    model = shop / "models" / "marts" / "paid_orders.sql"
    model.write_text(f"{model.read_text()}\nlimit 1")
    assert "ERROR=0" in run("build", "--select", "paid_orders+", target="globex")
    amounts = "SELECT count(*), count(DISTINCT currency) FROM main.revenue_in_currencies"
    (acme,), (globex,) = place.asked(amounts), place.beside("globex").asked(amounts)
    assert acme[1] == globex[1] == 4
    assert acme[0] > globex[0]
    folders = sorted(path.name for path in Path(place.data_path).iterdir())
    assert folders == ["acme", "globex"]
    docs = json.loads(_catalog(run, shop))
    assert docs["sources"]["source.shop.company.exchange_rates"]["stats"]["row_count"]["value"] == 4
    company = (tmp_path / "company.ducklake").read_bytes()
    (shop / "models" / "tenants" / "theft.sql").write_text(
        "{{ config(database='company', schema='main', materialized='table') }} select 1 as id"
    )
    with pytest.raises(AssertionError, match="read_only: true"):
        run("run", "--select", "theft", target="acme")
    assert (tmp_path / "company.ducklake").read_bytes() == company


def _catalog(run: Callable[..., str], shop: Path) -> str:
    run("docs", "generate", target="acme")
    return (shop / "target" / "catalog.json").read_text()


ATTEMPTS = {
    "python.py": (
        "def model(dbt, session):\n    return session.range(1)",
        r"Cannot run a Python model: this target is `strict`",
    ),
    "files.sql": ("select * from {{ source('files', 'theirs') }}", r"Cannot read or add files by their path"),
    "tenants.sql": ("{% do adapter.tenants() %} select 1 as id", r"a tenant knows of no other"),
    "protect.sql": ("{% do adapter.protect_tenant('r', 'globex') %} select 1 as id", r"a tenant knows of no other"),
    "dropped.sql": ("{% do adapter.drop_tenant('globex') %} select 1 as id", r"a tenant knows of no other"),
    "query.sql": ("{% do run_query('select * from globex.main.orders') %} select 1 as id", r"is `strict`"),
    "hook.sql": (
        "{{ config(pre_hook=\"call ducklake_expire_snapshots('globex')\") }} select 1 as id", r"There is no lake globex"
    ),
    "relation.sql": (
        "select * from {{ api.Relation.create(database='globex', schema='main', identifier='orders') }}",
        r"name what is in no lake",
    ),
    "config.sql": ("{{ config(database='globex') }} select 1 as id", r"There is no lake globex|globex"),
}  # fmt: skip


def test_no_model_of_a_strict_tenant_gets_past_its_lake(tmp_path: Path) -> None:
    shop = tmp_path / "project"
    shutil.copytree(SHOP, shop, ignore=shutil.ignore_patterns("target", "logs", "*.ducklake*", "*.sql", "*.py", "*.yml",
                                                              "*.csv"))  # fmt: skip
    place = TenantPlace("duckdb", tmp_path)
    profile = {
        "type": "ducklake", "metadata": place.metadata, "data_path": place.data_path, "catalog": "acme", "strict": True,
        "create_if_not_exists": True, "schema": "main", "spark": {"master": "local[2]", "config": QUICK},
    }  # fmt: skip
    (shop / "profiles.yml").write_text(json.dumps({"shop": {"target": "acme", "outputs": {"acme": profile}}}))
    flags = {"send_anonymous_usage_stats": False}
    (shop / "dbt_project.yml").write_text(
        json.dumps({"name": "shop", "version": "1.0.0", "profile": "shop", "flags": flags})
    )
    source = {"name": "files", "tables": [{"name": "theirs", "config": {"meta": {"location": str(tmp_path)}}}]}
    (shop / "models" / "sources.yml").write_text(json.dumps({"sources": [source]}))
    with place.beside("globex").connect() as other:
        made = other.transaction()
        made.create_table("main", "orders", plain("ruby"))
        made.commit()
    before = place.tables()
    for name, (text, _) in ATTEMPTS.items():
        (shop / "models" / name).write_text(text)
        with pytest.raises(AssertionError) as caught:
            dbt(shop, "run", "--select", name.partition(".")[0])
        said = str(caught.value)
        print(f"\n{name}: {said.splitlines()[-8:]}")
        assert re.search(ATTEMPTS[name][1], said), said
        assert "ruby" not in said
        (shop / "models" / name).unlink()
    after = place.tables()
    own = {row["catalog_id"] for row in after["ducklake_catalog"] if row["catalog_name"] == "acme"}
    for name, rows in before.items():
        if rows and "catalog_id" in rows[0]:
            assert rows == [row for row in after[name] if row["catalog_id"] not in own], name
