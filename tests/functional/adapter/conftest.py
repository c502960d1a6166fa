"""dbt's own adapter suites run on a lake that all of them share; each class has a schema of its own in it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.java import QUICK


@pytest.fixture(scope="session")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("adapter_lake")


@pytest.fixture(scope="session")
def lake_target(request: pytest.FixtureRequest, lake_folder: Path) -> dict[str, Any]:
    """The lake of the profile: in a DuckDB file, or where DBT_DUCKLAKE_TEST_LAKE says postgres or sqlite."""
    kind = os.environ.get("DBT_DUCKLAKE_TEST_LAKE", "duckdb")
    if kind != "postgres":
        return {"metadata": f"{kind}:{lake_folder}/lake.{kind}", "data_path": f"{lake_folder}/data/"}
    url = request.getfixturevalue("postgres")
    name = f"adapter_{uuid.uuid4().hex[:8]}"
    return {"metadata": f"postgres:{url}", "metadata_schema": name, "data_path": f"{lake_folder}/data/"}


@pytest.fixture(scope="class")
def dbt_profile_target(lake_target: dict[str, Any]) -> dict[str, Any]:
    # One Spark application serves the process: its settings are the same for every class.
    config = {"spark.sql.shuffle.partitions": 2, **QUICK}
    return {"type": "ducklake", "threads": 4, **lake_target, "spark": {"master": "local[2]", "config": config}}
