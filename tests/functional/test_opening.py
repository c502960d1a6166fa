"""Opening and making lakes: what is asked for, and a clear word where it cannot be had."""

from __future__ import annotations

import math
import pickle
import shutil
import socket
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import LakeDescription, connect
from dbt.adapters.ducklake.lake.columns import scalar
from dbt.adapters.ducklake.lake.errors import (
    CannotOpen,
    ChangeRefused,
    DataPathDiffers,
    DataPathMissing,
    InvalidDescription,
    InvalidMetadata,
    LakeEncrypted,
    LakeHeld,
    LakeNotFound,
    MetadataQueryFailed,
    ReadOnlyLake,
    ServerUnreachable,
    SnapshotNotFound,
    UnsupportedLayout,
    UnsupportedVersion,
)
from tests.conftest import PlaceOf
from tests.places import Place

LAKES = Path(__file__).parents[1] / "fixtures" / "lakes-1.1"


def test_a_lake_is_made_once(place: Place) -> None:
    place.connect().close()
    before = place.tables()
    place.connect().close()
    assert place.tables() == before


def test_nothing_is_made_where_that_is_off(place: Place) -> None:
    with pytest.raises(LakeNotFound, match="create_if_not_exists: false"):
        place.connect(create_if_not_exists=False)
    assert not place.metadata_file.exists()


@pytest.mark.parametrize("how", [{"read_only": True}, {"snapshot_version": 0}, {"snapshot_time": datetime.now(UTC)}])
def test_nothing_is_made_for_reading(place: Place, how: dict[str, object]) -> None:
    with pytest.raises(LakeNotFound, match="opened for reading"):
        place.connect(**how)
    assert not place.metadata_file.exists()


def test_a_duckdb_file_keeps_its_data_beside_it(tmp_path: Path) -> None:
    with connect(LakeDescription(f"ducklake:duckdb:{tmp_path}/lake.ducklake")) as lake:
        assert lake.data_path == f"{tmp_path}/lake.ducklake.files/"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_new_lake_elsewhere_needs_a_data_path(kind: str, place_of: PlaceOf) -> None:
    with pytest.raises(DataPathMissing, match="Set `data_path`"):
        place_of(kind).connect(data_path=None)


def test_the_stored_data_path_is_used(place: Place) -> None:
    place.connect().close()
    with place.connect(data_path=None) as lake:
        assert lake.data_path == place.data_path
    with place.connect(data_path=place.data_path.rstrip("/")) as lake:
        assert lake.data_path == place.data_path


def test_another_data_path_is_refused_unless_overridden(place: Place) -> None:
    place.connect().close()
    with pytest.raises(DataPathDiffers) as caught:
        place.connect(data_path="/somewhere/else")
    assert caught.value.asked == "/somewhere/else"
    assert caught.value.stored == place.data_path
    with place.connect(data_path="/somewhere/else", override_data_path=True) as lake:
        assert lake.data_path == "/somewhere/else/"
    with place.connect(data_path=None) as lake:
        assert lake.data_path == place.data_path


def test_a_relative_data_path_is_made_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    description = LakeDescription(f"sqlite:{tmp_path}/m.sqlite", data_path="here")
    with connect(description) as lake:
        assert lake.data_path == f"{tmp_path}/here/"
    connect(description).close()


@pytest.mark.parametrize(("version", "remedy"), [("0.3", "`automatic_migration: true`"), ("1.2", "use the client")])
def test_another_version_is_refused_by_name(place: Place, version: str, remedy: str) -> None:
    place.connect().close()
    place.execute(f"UPDATE ducklake_metadata SET value = '{version}' WHERE key = 'version'")
    with pytest.raises(UnsupportedVersion, match=f"format version {version}.*{remedy}"):
        place.connect()


@pytest.mark.parametrize("version", ["1.1", "1.1-dev1"])
def test_late_lakes_of_a_development_build_have_all_of_1_1(version: str, tmp_path: Path) -> None:
    """They are read and written by the columns that they have."""
    file = shutil.copy(LAKES / "comments_and_views" / "lake.ducklake", tmp_path)
    description = LakeDescription(f"duckdb:{file}", data_path=str(tmp_path), override_data_path=True)
    with connect(description) as lake:
        assert not lake.nests_schemas
        before = lake.snapshot().id
        transaction = lake.transaction()
        transaction.comment_on_table("main", "t", "written")
        assert transaction.commit() == before + 1
    with duckdb.connect(file) as metadata:
        for table, columns in {
            "schema": ["parent_schema_id BIGINT"],
            "file_column_stats": ["min_is_exact BOOLEAN", "max_is_exact BOOLEAN"],
            "table_column_stats": ["min_is_exact BOOLEAN", "max_is_exact BOOLEAN"],
        }.items():
            for column in columns:
                metadata.execute(f"ALTER TABLE ducklake_{table} ADD COLUMN {column}").fetchall()
        metadata.execute(f"UPDATE ducklake_metadata SET value = '{version}' WHERE key = 'version'").fetchall()
        europe = "VALUES (99, uuid(), 1, NULL, 'europe', 'europe/', true, 0)"
        metadata.execute(f"INSERT INTO ducklake_schema {europe}").fetchall()
    with connect(description) as lake:
        assert lake.snapshot().table("main", "t").comment == "written"
        assert lake.snapshot().schema("main.europe").parts == ("main", "europe")


def test_a_schema_that_lies_within_itself_is_an_error(tmp_path: Path) -> None:
    description = LakeDescription(f"duckdb:{tmp_path}/lake", ducklake_version="1.1")
    with connect(description) as lake:
        transaction = lake.transaction()
        transaction.create_schema("a.b")
        transaction.commit()
    with duckdb.connect(f"{tmp_path}/lake") as metadata:
        metadata.execute("UPDATE ducklake_schema SET parent_schema_id = 2 WHERE schema_id = 1").fetchall()
    with connect(description) as lake, pytest.raises(InvalidMetadata, match="lies within itself"):
        lake.snapshot().schemas()


def test_a_missing_version_is_taken_for_the_present_one(place: Place) -> None:
    place.connect().close()
    place.execute("DELETE FROM ducklake_metadata WHERE key = 'version'")
    with place.connect() as lake:
        assert lake.snapshot().id == 0
        transaction = lake.transaction()
        transaction.create_schema("s")
        transaction.commit()


def test_an_encrypted_lake_is_refused(place: Place) -> None:
    place.connect().close()
    place.execute("UPDATE ducklake_metadata SET value = 'true' WHERE key = 'encrypted'")
    with pytest.raises(LakeEncrypted, match="is encrypted"):
        place.connect()
    place.execute("UPDATE ducklake_metadata SET value = 'maybe' WHERE key = 'encrypted'")
    with pytest.raises(InvalidMetadata, match="'maybe'"):
        place.connect()


def test_encryption_cannot_be_asked_for(place: Place) -> None:
    with pytest.raises(LakeEncrypted, match="would be made"):
        place.connect(encrypted=True)
    place.connect().close()
    with pytest.raises(LakeEncrypted, match="is not encrypted"):
        place.connect(encrypted=True)


def test_an_unknown_scope_is_refused(place: Place) -> None:
    place.connect().close()
    place.execute("INSERT INTO ducklake_metadata VALUES ('target_file_size', '1', 'galaxy', 1)")
    with pytest.raises(InvalidMetadata, match="'galaxy'"):
        place.connect()


def test_a_tenant_of_a_lake_without_tenants_is_refused(place: Place) -> None:
    place.connect().close()
    with pytest.raises(UnsupportedLayout, match="not shared between tenants"):
        place.connect(catalog="acme")


def test_both_snapshot_options_are_refused(place: Place) -> None:
    with pytest.raises(InvalidDescription, match="both set"):
        place.describe(snapshot_version=1, snapshot_time=datetime.now(UTC))


def test_a_time_needs_a_zone(place: Place) -> None:
    with pytest.raises(InvalidDescription, match="no time zone"):
        place.describe(snapshot_time=datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ("mysql:host=x", "Found mysql:"),
        ("lake.ducklake", "Found no such beginning"),
        ("duckdb:", "nothing else"),
        ("md:mine", "MotherDuck"),
        ({"type": "mysql"}, "'mysql'"),
        ({"type": "postgres", "hots": "x"}, "hots"),
        ("sup3rs3cret@host: x", "Found no such beginning"),
    ],
)
def test_a_place_that_is_none_is_refused(metadata: object, found: str) -> None:
    with pytest.raises(InvalidDescription, match=found) as caught:
        connect(LakeDescription(metadata, data_path="/tmp/x"))  # type: ignore[arg-type]
    assert "sup3rs3cret" not in str(caught.value)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_folder_that_is_not_there_is_named(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="no/such/folder"):
        connect(LakeDescription(f"{kind}:{tmp_path}/no/such/folder/m", data_path=str(tmp_path)))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_file_of_another_kind_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_text("not a database" * 100)
    with pytest.raises(MetadataQueryFailed, match="not a"):
        connect(LakeDescription(f"{kind}:{tmp_path}/m", data_path=str(tmp_path), busy_timeout=60))


def test_a_schema_in_sqlite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDescription, match="no schemas"):
        connect(LakeDescription(f"sqlite:{tmp_path}/m", data_path="x", metadata_schema="s"))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_database_with_other_tables_can_become_a_lake(kind: str, place_of: PlaceOf) -> None:
    place = place_of(kind)
    if kind == "duckdb":
        with duckdb.connect() as made:
            # One that the judge opens, too.
            made.execute(f"ATTACH '{place.metadata_file}' AS other (STORAGE_VERSION 'v1.0.0')")
    place.execute("CREATE TABLE ducklake_foo (a INT)")
    place.connect().close()
    assert "ducklake_foo" in place.tables()
    assert place.asked("SELECT count(*) FROM lake.snapshots()") == [(1,)]


HOLD_DUCKDB = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('held', flush=True); time.sleep(60)"
HOLD_SQLITE = (
    "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE'); "
    "print('held', flush=True); time.sleep(60)"
)


@pytest.mark.parametrize(("kind", "program"), [("duckdb", HOLD_DUCKDB), ("sqlite", HOLD_SQLITE)])
def test_a_file_that_another_process_holds_is_waited_for(kind: str, program: str, place_of: PlaceOf) -> None:
    place = place_of(kind)
    place.connect().close()
    with subprocess.Popen([sys.executable, "-c", program, place.metadata_file], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(LakeHeld, match=str(place.metadata_file)) as caught:
            place.connect(busy_timeout=0.5)
        if kind == "duckdb":
            assert f"PID {holder.pid}" in str(caught.value)
        holder.kill()
    place.connect(busy_timeout=0.5).close()


TRY_TO_WRITE = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('CREATE TABLE written (a INTEGER)').fetchall()"


def test_a_file_that_this_process_holds_stays_locked_for_others(place_of: PlaceOf) -> None:
    """POSIX ends a process's locks on a file when it closes any handle of it, and two would write it then."""
    place = place_of("duckdb")
    place.connect().close()
    with duckdb.connect(str(place.metadata_file)):
        with pytest.raises(LakeHeld, match="another DuckDB connection of this process"):
            place.connect(busy_timeout=0.2)
        program = [sys.executable, "-c", TRY_TO_WRITE, str(place.metadata_file)]
        tried = subprocess.run(program, capture_output=True, text=True, check=False)
        assert "Could not set lock" in tried.stderr
    place.connect(busy_timeout=0.2).close()


def test_files_that_are_none_of_duckdbs_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a text that is longer than the beginning of a file")
    (tmp_path / "short").write_text("abc")
    (tmp_path / "folder").mkdir()
    sqlite3.connect(tmp_path / "sqlite").executescript("CREATE TABLE a (b)")
    for name, said in (("text", "not a DuckDB database"), ("short", "not a DuckDB database"), ("folder", "folder"),
                       ("sqlite", "sqlite")):  # fmt: skip
        with pytest.raises((MetadataQueryFailed, InvalidDescription), match=said):
            connect(LakeDescription(f"duckdb:{tmp_path}/{name}", busy_timeout=60))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_file_is_not_held_between_transactions(kind: str, place_of: PlaceOf) -> None:
    place = place_of(kind)
    with place.connect() as lake:
        lake.snapshot()
        place.judged("CREATE TABLE t AS SELECT 1 AS a")
        table = lake.snapshot().table("main", "t")
        place.judged("DROP TABLE t")
        assert lake.snapshot().find("main", "t") is None
        assert table.name == "t"


def test_a_server_that_is_not_there_is_named_without_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    places = [
        f"postgres:host=127.0.0.1 port={port} user=me password=s3cr3t dbname=lake",
        f"postgres:postgresql://me:s3cr3t@127.0.0.1:{port}/lake",
        {"type": "postgres", "host": "127.0.0.1", "port": port, "user": "me", "password": "s3cr3t", "dbname": "lake"},
    ]
    for place in places:
        with pytest.raises(ServerUnreachable, match=f"port={port}") as caught:
            connect(LakeDescription(place, data_path="x", busy_timeout=2))  # type: ignore[arg-type]
        assert "s3cr3t" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_bad_connection_string_is_not_repeated() -> None:
    with pytest.raises(InvalidDescription, match="not a connection string") as caught:
        connect(LakeDescription("postgres:host=h password=s3c r3t", data_path="x"))
    assert "r3t" not in str(caught.value)


@pytest.mark.parametrize(
    "metadata",
    [
        "postgres:postgresql://bob:p@sswordX1@host/db",
        "postgres:dbname='postgresql://u:sswordX1@h/db'",
        {"type": "postgres", "dbname": "postgresql://u:sswordX1@h/db"},
    ],
)
def test_a_password_that_is_cut_in_two_is_not_shown(metadata: object) -> None:
    description = LakeDescription(metadata, data_path="x")  # type: ignore[arg-type]
    assert "sswordX1" not in repr(description)
    with pytest.raises(InvalidDescription, match="%40") as caught:
        connect(description)
    assert "sswordX1" not in str(caught.value)


def test_an_empty_duckdb_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "m").touch()
    with pytest.raises(MetadataQueryFailed, match="not a DuckDB database"):
        connect(LakeDescription(f"duckdb:{tmp_path}/m", busy_timeout=60))


def test_a_lake_for_reading_refuses_every_change(place: Place) -> None:
    with place.connect() as lake:
        first = lake.transaction()
        first.create_table("main", "t", [scalar("a", "int32")])
        first.commit()
    for how in ({"read_only": True}, {"snapshot_version": 1}):
        with place.connect(**how) as lake:
            assert lake.is_read_only
            transaction = lake.transaction()
            table = transaction.table("main", "t")
            with pytest.raises(ReadOnlyLake):
                transaction.insert_inlined(table, [(1,)])
            with pytest.raises(ReadOnlyLake):
                transaction.drop_table("main", "t")
            with pytest.raises(ReadOnlyLake):
                lake.set_option("target_file_size", 1)
            with pytest.raises(ReadOnlyLake):
                lake.add_indexes()
            assert transaction.commit() == 1


def test_a_snapshot_is_found_by_version_and_time(place: Place) -> None:
    with place.connect() as lake:
        for name in ("s1", "s2", "s3"):
            transaction = lake.transaction()
            transaction.create_schema(name)
            transaction.commit()
        times = {int(info.id): info.time for info in lake.snapshots()}
        assert lake.snapshot(time=times[2]).id == 2
        assert lake.snapshot(time=times[2] - timedelta(microseconds=1)).id == 1
        assert lake.snapshot(time=datetime.now(UTC)).id == 3
        with pytest.raises(SnapshotNotFound, match="Snapshots kept: 0 to 3"):
            lake.snapshot(time=times[0] - timedelta(seconds=1))
        with pytest.raises(SnapshotNotFound, match="Snapshot 99"):
            lake.snapshot(version=99)
    with place.connect(snapshot_time=times[1]) as lake:
        assert {schema.name for schema in lake.snapshot().schemas()} == {"main", "s1"}
    with pytest.raises(SnapshotNotFound):
        place.connect(snapshot_version=99).snapshot()


def test_every_reason_not_to_open_is_one_class(place: Place) -> None:
    with pytest.raises(CannotOpen):
        place.connect(create_if_not_exists=False)


def test_two_processes_may_make_the_same_lake(kind: str, place_of: PlaceOf) -> None:
    place = place_of(kind)
    program = (
        "import sys, pickle; from dbt.adapters.ducklake.lake import connect; "
        "connect(pickle.loads(bytes.fromhex(sys.argv[1]))).close()"
    )
    described = pickle.dumps(place.describe(busy_timeout=30)).hex()
    running = [subprocess.Popen([sys.executable, "-c", program, described]) for _ in range(4)]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert len(place.tables()["ducklake_snapshot"]) == 1
    assert place.asked("SELECT count(*) FROM lake.snapshots()") == [(1,)]


@pytest.mark.parametrize(
    ("change", "given", "error"),
    [
        ("UPDATE ducklake_metadata SET value = 'true' WHERE key = 'encrypted'", {}, LakeEncrypted),
        ("SELECT 1", {"data_path": "/elsewhere/"}, DataPathDiffers),
        ("INSERT INTO ducklake_metadata VALUES ('a', 'b', 'nowhere', 1)", {}, InvalidMetadata),
    ],
)
def test_a_lake_that_cannot_be_opened_is_not_migrated(
    place: Place, change: str, given: dict[str, Any], error: type[Exception]
) -> None:
    """There is no way back."""
    place.connect().close()
    place.execute(change)
    before = place.tables()
    with pytest.raises(error):
        place.connect(automatic_migration=True, ducklake_version="1.1", **given)
    assert place.tables() == before


def test_a_schema_that_holds_a_macro(place: Place) -> None:
    """DuckDB cannot open a lake in which the macro is left."""
    place.judged("CREATE SCHEMA s", "CREATE MACRO s.m(x) AS x + 1", "CREATE MACRO s.tm() AS TABLE SELECT 1 AS a")
    with place.connect() as lake:
        transaction = lake.transaction()
        with pytest.raises(ChangeRefused, match="it holds m, tm"):
            transaction.drop_schema("s")
        transaction = lake.transaction()
        transaction.drop_schema("s", cascade=True)
        transaction.commit()
        said = lake.snapshots()[-1].changes
    assert sorted(str(said).split(",")) == ["dropped_scalar_macro:2", "dropped_schema:1", "dropped_table_macro:3"]
    assert place.asked("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'") == [("main",)]
    assert place.asked("SELECT count(*) FROM duckdb_functions() WHERE database_name = 'lake'") == [(0,)]


def test_what_a_lake_of_1_1_has_on_every_database(place: Place) -> None:
    """Nested schemas, comments on columns of views, exact bounds, NaN; and what expires with them."""
    nested = '"Häuser"."b""c"."\'d\'"'
    with place.connect(ducklake_version="1.1", data_inlining_row_limit=10) as lake:
        transaction = lake.transaction()
        transaction.create_schema(nested)
        columns = [scalar("id", "int32"), scalar("f", "float64")]
        transaction.create_table(nested, "t {x}", columns, [("id", "bucket(3)")])
        transaction.create_view("Häuser", "v", "SELECT 1 AS a", column_comments=[("a", "what 'it' is")])
        transaction.commit()
        transaction = lake.transaction()
        table = transaction.table(nested, "t {x}")
        transaction.insert_inlined(table, [(1, math.nan), (2, None), (None, -0.0)])
        transaction.comment_on_view_column("Häuser", "v", "A", None)
        transaction.commit()
    with place.connect(ducklake_version="1.1") as lake:
        first, snapshot = lake.snapshot(1), lake.snapshot()
        assert [schema.parts for schema in snapshot.schemas()][2:] == [("Häuser", 'b"c'), ("Häuser", 'b"c', "'d'")]
        found = snapshot.table(nested.replace("b", "B"), "T {X}")
        assert [row.values for row in snapshot.files(found).inlined_rows][1:] == [(2, None), (None, -0.0)]
        bounds = snapshot.statistics(found)
        assert bounds is not None
        assert [(one.contains_null, one.contains_nan, one.min_is_exact) for one in bounds.columns] == [
            (True, None, True), (True, True, True),
        ]  # fmt: skip
        assert first.view("Häuser", "v").column_comments == (("a", "what 'it' is"),)
        assert snapshot.view("Häuser", "v").column_comments == ()
        transaction = lake.transaction()
        transaction.drop_schema("Häuser", cascade=True)
        transaction.commit()
        lake.maintenance.expire([0, 1, 2])
    left = place.tables()
    assert [row["schema_name"] for row in left["ducklake_schema"]] == ["main"]
    assert left["ducklake_view_column_tag"] == left["ducklake_view"] == left["ducklake_table"] == []
