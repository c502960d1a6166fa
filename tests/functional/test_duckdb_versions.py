"""Metadata files between processes with different versions of DuckDB: what one has committed, the other reads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from dbt.adapters.ducklake.lake import CannotOpen, LakeDescription, connect
from dbt.adapters.ducklake.lake.backends import backend_for
from dbt.adapters.ducklake.lake.errors import InvalidDescription, MetadataQueryFailed
from dbt.adapters.ducklake.lake.metadata import Metadata
from dbt.adapters.ducklake.lake.spec.layout import OLDEST
from tests.judge import FOLDER as JUDGE
from tests.judge import Judge
from tests.places import Place

# The DuckDB of this environment, and the judge's.
PATHS = {"installed": "", "1.5": str(JUDGE)}
REPOSITORY = Path(__file__).parents[2]
COMMIT = """
import sys
from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.lake.columns import scalar
place, number, storage = sys.argv[1], int(sys.argv[2]), sys.argv[3] or None
given = {"data_inlining_row_limit": 10, "metadata_storage_version": storage, "ducklake_version": "1.0"}
with connect(LakeDescription(place, **given)) as lake:
    transaction = lake.transaction()
    if lake.snapshot().find("main", "t") is None:
        transaction.create_table("main", "t", [scalar("id", "int64"), scalar("s", "varchar")])
        transaction.commit()
        transaction = lake.transaction()
    transaction.insert_inlined(transaction.table("main", "t"), [(number, "row")])
    transaction.commit()
"""
READ = """
import sys
from dbt.adapters.ducklake.lake import LakeDescription, connect
with connect(LakeDescription(sys.argv[1])) as lake:
    snapshot = lake.snapshot()
    found = snapshot.inlined(snapshot.table("main", "t"))
    print(snapshot.id, sorted(row.values[0] for kept in found for row in kept.rows))
"""


NEW = """
import sys
from dbt.adapters.ducklake.lake import LakeDescription, connect
import duckdb
with connect(LakeDescription(sys.argv[1], data_path=sys.argv[2])) as lake:
    print(duckdb.__version__.split(".")[0], lake.nests_schemas)
"""


def run(version: str, program: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [PATHS[version], str(REPOSITORY)]))}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def storage_version(file: Path) -> int:
    """As it stands in the header of a DuckDB file."""
    return int.from_bytes(file.read_bytes()[12:20], "little")


@pytest.mark.parametrize("first", PATHS)
@pytest.mark.parametrize("second", PATHS)
@pytest.mark.parametrize("storage", ["", "v1.0.0"])
def test_commits_of_one_version_are_read_and_followed_by_another(
    first: str, second: str, storage: str, tmp_path: Path
) -> None:
    file, place = tmp_path / "lake.ducklake", f"duckdb:{tmp_path}/lake.ducklake"
    run(first, COMMIT, place, "1", storage)
    made_with = storage_version(file)
    assert made_with == (64 if storage else 68)
    assert run(second, READ, place) == "2 [1]"
    run(second, COMMIT, place, "2", "")
    assert run(first, READ, place) == "3 [1, 2]"
    assert storage_version(file) == made_with
    with Judge.of_this_process().attached(place) as judge:
        assert judge.rows("SELECT id FROM lake.t ORDER BY id") == [(1,), (2,)]


@pytest.mark.skipif(duckdb.__version__ < "2", reason="makes files that DuckDB 1.5 cannot open")
def test_a_file_may_be_of_the_newest_version(tmp_path: Path) -> None:
    place = f"duckdb:{tmp_path}/lake.ducklake"
    run("installed", COMMIT, place, "1", "latest")
    assert run("installed", READ, place) == "2 [1]"
    with pytest.raises(
        AssertionError, match=r"(?s)FileTooNew: .*lake\.ducklake.*newer DuckDB than the installed DuckDB 1\.5\.5"
    ):
        run("1.5", READ, place)


@pytest.mark.parametrize("given", ["1.5.0", "v1.5", "newest", "v1.5.0'; --"])
def test_a_storage_version_that_is_none_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="metadata_storage_version"):
        LakeDescription(f"duckdb:{tmp_path}/lake", metadata_storage_version=given)


def test_a_storage_version_that_this_duckdb_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match=r"v9\.9\.9"):
        connect(LakeDescription(f"duckdb:{tmp_path}/lake", metadata_storage_version="v9.9.9"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_only_a_duckdb_file_has_a_storage_version(kind: str) -> None:
    with pytest.raises(InvalidDescription, match="Only DuckDB files"):
        LakeDescription(f"{kind}:x", metadata_storage_version="v1.5.0")


MARK = "UPDATE {metadata} SET value = 'marked' WHERE key = 'created_by'"


@pytest.fixture
def metadata(place: Place) -> Iterator[Metadata]:
    place.connect().close()
    found = Metadata(backend_for(place.describe()), OLDEST)
    yield found
    found.backend.close()


def is_marked(metadata: Metadata) -> bool:
    with metadata.reading() as session:
        return session.query("SELECT value FROM {metadata} WHERE key = 'created_by'") == [("marked",)]


def test_a_transaction_in_which_a_statement_failed_is_not_committed(metadata: Metadata) -> None:
    def go_on_after_an_error() -> None:
        with metadata.writing() as session:
            session.query(MARK)
            with suppress(MetadataQueryFailed):
                session.run_on("nothing", "SELECT * FROM {table}")

    with pytest.raises(MetadataQueryFailed, match="nothing"):
        go_on_after_an_error()
    assert not is_marked(metadata)


def test_to_look_for_a_table_that_is_not_there_ends_no_transaction(metadata: Metadata) -> None:
    with metadata.writing() as session:
        assert not session.has_table("ducklake_nothing")
        assert session.has_table("ducklake_metadata")
        session.query(MARK)
    assert is_marked(metadata)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_sum_over_an_outer_join_may_be_large(place: Place) -> None:
    """DuckDB 2.0.0 takes coalesce(sum(...), 0) for 0 if it finds that one side of a join is empty."""
    place.connect().close()
    place.execute(
        "CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (1); CREATE TABLE f (id BIGINT, t BIGINT, size BIGINT); "
        "INSERT INTO f VALUES (1, 1, 8955); CREATE TABLE d (f BIGINT, ended BIGINT); INSERT INTO d VALUES (0, 9)"
    )
    backend = backend_for(place.describe())
    t, f, d = map(backend.qualified, "tfd")
    with backend.reading() as connection:
        found = connection.rows(
            f"SELECT t.id, coalesce(sum(f.size), 0) FROM {t} AS t LEFT JOIN {f} AS f ON f.t = t.id "
            f"LEFT JOIN {d} AS d ON d.f = f.id AND d.ended IS NULL GROUP BY t.id ORDER BY t.id"
        )
    assert found == [(1, 8955)]


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_new_lake_has_the_version_that_the_installed_duckdb_would_give_it(kind: str, tmp_path: Path) -> None:
    major, nests = run("installed", NEW, f"{kind}:{tmp_path}/installed", str(tmp_path)).split()
    assert nests == str(int(major) >= 2)
    assert run("1.5", NEW, f"{kind}:{tmp_path}/older", str(tmp_path)) == "1 False"
    # Once it is there, whoever opens it takes it as it is.
    assert run("installed", NEW, f"{kind}:{tmp_path}/older", str(tmp_path)) == f"{major} False"
    assert run("1.5", NEW, f"{kind}:{tmp_path}/installed", str(tmp_path)) == f"1 {nests}"
