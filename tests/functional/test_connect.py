"""The shop built through a Spark Connect server: nothing here may need Spark's own process."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.judge import Judge

SHOP = Path(__file__).parents[2] / "integration_project"
DBT = Path(sys.executable).with_name("dbt")
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


class Server(NamedTuple):
    url: str
    pid: int


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Connect server of its own, on this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    log = tmp_path_factory.mktemp("connect") / "server.log"
    settings = {"spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    options = [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(submit), "--class", SERVER, "--master", "local[2]", "--driver-memory", "2g", *options,
             "spark-internal"],
            stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "SPARK_NO_DAEMONIZE": "1"}, cwd=log.parent,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        assert process.poll() is None, log.read_text()
        yield Server(f"sc://127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.mark.slow
def test_statements_and_queries_run_through_connect(server: Server, tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    names = ("functional/test_statements.py", "functional/test_sql_fidelity.py", "functional/test_values.py",
             "functional/test_defaults.py", "interop/test_sessions.py", "interop/test_zones.py")  # fmt: skip
    suites = [str(tests / name) for name in names]
    # Tables with lists or maps need this package on the server's Python.
    options = ["-v", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/pytest", "-k", "not may_have_any_name",
               "-o", "faulthandler_timeout=240"]  # fmt: skip
    log = tmp_path / "pytest.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *suites],
            env={**os.environ, "DBT_DUCKLAKE_TEST_REMOTE": server.url}, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            code = child.wait(900)
        except subprocess.TimeoutExpired:
            child.kill()
            # Java without its tools has none.
            ask = [shutil.which("jstack") or "true", str(server.pid)]
            threads = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
            pytest.fail(f"It did not end:\n{log.read_text()[-8000:]}\nThe server's threads:\n{threads[-20000:]}")
    assert code == 0, log.read_text()


@pytest.mark.slow
def test_the_shop_is_built_through_connect(server: Server, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shutil.copytree(SHOP, shop, ignore=shutil.ignore_patterns("target", "logs", "*.ducklake*"))
    target = {"type": "ducklake", "metadata": f"duckdb:{tmp_path}/shop.ducklake", "schema": "main", "threads": 4}
    # The version that the judge reads.
    outputs = {"connect": {**target, "ducklake_version": "1.0", "spark": {"remote": server.url}}}
    (shop / "profiles.yml").write_text(json.dumps({"shop": {"target": "connect", "outputs": outputs}}))
    command = [str(DBT), "--no-use-colors", "build", "--profiles-dir", "."]
    # No Java on this side.
    environment = {**os.environ, "JAVA_HOME": "/nonexistent", "PATH": "/nonexistent"}
    done = subprocess.run(command, cwd=shop, capture_output=True, text=True, env=environment, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS=25 WARN=1 ERROR=0 SKIP=0" in done.stdout
    with Judge() as judge:
        judge.attach(f"duckdb:{tmp_path}/shop.ducklake")
        assert judge.rows("SELECT count(*), count(amount) FROM lake.main.orders") == [(254, 254)]
        assert judge.rows("SELECT count(*) FROM lake.main.customer_segments") == [(40,)]
