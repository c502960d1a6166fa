"""Metadata in PostgreSQL: whatever a server, a database or a role has set, and whatever others hold."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from dbt.adapters.ducklake.lake import Lake
from dbt.adapters.ducklake.lake.backends.postgres import _lock_key
from dbt.adapters.ducklake.lake.columns import scalar
from dbt.adapters.ducklake.lake.errors import CommitContended, InvalidDescription, LakeHeld, MetadataQueryFailed
from dbt.adapters.ducklake.lake.transaction.commit import Patience
from tests.interop.reader import rows_at
from tests.places import Place

PlaceIn = Callable[..., Place]


@pytest.fixture
def place_in(postgres: str, tmp_path: Path) -> Iterator[PlaceIn]:
    """Lakes in databases of their own, which are made with these words and have these settings."""
    made: list[str] = []

    def make(words: str = "", **settings: str) -> Place:
        name = f"lake_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(postgres, autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name} {words}")
            made.append(name)
            for key, value in settings.items():
                server.execute(f"ALTER DATABASE {name} SET {key} = {value}")
        folder = tmp_path / name
        folder.mkdir()
        return Place("postgres", folder, make_conninfo(postgres, dbname=name))

    yield make
    with psycopg.connect(postgres, autocommit=True) as server:
        for name in made:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


COLUMNS = {
    "i": "INTEGER", "f": "FLOAT", "d": "DOUBLE", "n": "DECIMAL(38,10)", "s": "VARCHAR", "b": "BLOB", "p": "INTERVAL",
    "a": "DATE", "t": "TIME", "m": "TIMESTAMP", "z": "TIMESTAMPTZ", "u": "UUID", "o": "BOOLEAN", "l": "DOUBLE[]",
    "h": "HUGEINT", "q": "TIMETZ",
}  # fmt: skip
ROWS = [
    "1, 5592405.5, 0.30000000000000004, 1.5, 'it''s a \\ é €', '\\xAB'::BLOB, "
    "INTERVAL '-33 days 5 months -04:05:06.7', "
    "'2024-03-05', '10:00:00.000001', '2024-03-05 10:00:00.123456', '2024-03-05 10:00:00+05', "
    "'12345678-1111-1111-1111-111111111111', true, [0.1, NULL, 'nan'::DOUBLE], "
    "-170141183460469231731687303715884105727, '10:00:00+05:30'",
    "2, 'nan', '-inf', -0.5, 'NULL', '', INTERVAL '1 month -2 days 00:00:00.000001', '4714-11-24 (BC)', '24:00:00', "
    "'-infinity', 'infinity', '00000000-0000-0000-0000-000000000000', false, [], 1, '23:59:59.999999-15:59:59'",
    "3" + ", NULL" * (len(COLUMNS) - 1),
]
SETTINGS = [
    {"extra_float_digits": "0"}, {"extra_float_digits": "-15"}, {"IntervalStyle": "sql_standard"},
    {"IntervalStyle": "iso_8601"}, {"IntervalStyle": "postgres_verbose"}, {"DateStyle": "'German, DMY'"},
    {"DateStyle": "'SQL, MDY'", "TimeZone": "'Asia/Kathmandu'"}, {"standard_conforming_strings": "off"},
    {"transform_null_equals": "on", "array_nulls": "off"}, {"bytea_output": "escape", "client_encoding": "LATIN1"},
    {"search_path": "hostile, pg_catalog"}, {"default_transaction_isolation": "serializable", "row_security": "off"},
]  # fmt: skip
HOSTILE = """
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.to_regclass(text) RETURNS regclass LANGUAGE sql AS 'SELECT NULL::regclass';
CREATE FUNCTION hostile.equal(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR hostile.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = hostile.equal);
CREATE TABLE hostile.pg_attribute (a integer)
"""


def of_settings(settings: dict[str, str]) -> str:
    return " ".join(settings.values())


@pytest.mark.parametrize("settings", SETTINGS, ids=of_settings)
def test_settings_change_no_value(settings: dict[str, str], place_in: PlaceIn) -> None:
    plain, place = place_in(), place_in(**settings)
    with psycopg.connect(str(place.postgres)) as server:
        server.execute(HOSTILE)
    of_columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    shown = ", ".join(f"{name}::VARCHAR" for name in COLUMNS)
    with place.connect(ducklake_version="1.0"):
        pass
    # In a database as it comes the extension writes what ours then reads, and writes again under the settings.
    plain.judged(f"CREATE TABLE t ({of_columns})", *(f"INSERT INTO t VALUES ({row})" for row in ROWS))
    expected = sorted(plain.asked(f"SELECT {shown} FROM t"), key=repr)
    with plain.connect() as given, place.connect() as lake, plain.attached() as judge:
        snapshot = given.snapshot()
        table = snapshot.table("main", "t")
        values = [row.values for row in snapshot.files(table).inlined_rows]
        assert len(values) == len(ROWS)
        transaction = lake.transaction()
        transaction.create_table("main", "t", table.columns)
        transaction.insert_inlined(transaction.table("main", "t"), values)
        transaction.commit()
        written = lake.snapshot()
        found = written.table("main", "t")
        assert repr([row.values for row in written.files(found).inlined_rows]) == repr(values)
        assert rows_at(judge, written, found) == expected
    # Under some of them the extension cannot so much as attach the lake.
    with psycopg.connect(str(place.postgres), autocommit=True) as server:
        server.execute(f"ALTER DATABASE {server.info.dbname} RESET ALL")
    assert sorted(place.asked(f"SELECT {shown} FROM t"), key=repr) == expected


@pytest.mark.parametrize("settings", [{"default_transaction_read_only": "on"}, {"statement_timeout": "'1min'"}])
def test_settings_keep_nobody_from_writing(settings: dict[str, str], place_in: PlaceIn) -> None:
    with place_in(**settings).connect() as lake:
        transaction = lake.transaction()
        transaction.create_table("main", "t", [scalar("id", "int32")])
        assert transaction.commit() == 1


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "UTF8"])
def test_databases_of_any_encoding(encoding: str, place_in: PlaceIn) -> None:
    place = place_in(
        f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", client_encoding="'SQL_ASCII'"
    )
    text = "ü" if encoding == "LATIN1" else "€ ü"
    with place.connect() as lake:
        transaction = lake.transaction()
        table = transaction.create_table("main", "Häuser", [scalar("é", "varchar"), scalar("n", "int32")])
        transaction.insert_inlined(table, [(text, 1), (None, 2)])
        transaction.comment_on_table("main", "Häuser", "schön")
        transaction.commit()
        snapshot = lake.snapshot()
        found = snapshot.table("main", "häuser")
        assert (found.name, found.columns[0].name, found.comment) == ("Häuser", "é", "schön")
        assert [row.values for row in snapshot.files(found).inlined_rows] == [(text, 1), (None, 2)]

        def make() -> None:
            transaction = lake.transaction()
            transaction.create_table("main", "€", [scalar("n", "int32")])
            transaction.commit()

        if encoding == "LATIN1":
            with pytest.raises(MetadataQueryFailed, match="no equivalent in encoding"):
                make()
        else:
            make()
            assert [table.name for table in lake.snapshot().tables("main")] == ["Häuser", "€"]


def test_a_wait_ends_and_tells_who_holds_what(place_in: PlaceIn) -> None:
    place = place_in()
    patience = Patience(attempts=2, wait_ms=1)
    with place.connect(busy_timeout=0.3, patience=patience) as lake, psycopg.connect(str(place.postgres)) as other:

        def make(name: str) -> None:
            transaction = lake.transaction()
            transaction.create_table("main", name, [scalar("n", "int32")])
            transaction.commit()

        make("a")
        pid = f"process {other.info.backend_pid} of .*, idle in transaction, since 20"
        # A row that ours needs, and nothing else.
        other.execute(
            "INSERT INTO ducklake_snapshot SELECT * FROM (SELECT max(snapshot_id) + 1 FROM ducklake_snapshot)"
        )
        with pytest.raises(CommitContended, match=f"waited for what others hold: {pid}"):
            make("b")
        assert [table.name for table in lake.snapshot().tables("main")] == ["a"]
        other.rollback()
        make("b")
        # What keeps writers from each other.
        other.execute("SELECT pg_advisory_xact_lock(%s)", [_lock_key("public")])
        with pytest.raises(CommitContended, match=pid):
            make("c")
        other.rollback()
        other.execute("LOCK TABLE ducklake_table IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(LakeHeld, match=pid):
            lake.snapshot().tables("main")
        other.rollback()
        assert [table.name for table in lake.snapshot().tables("main")] == ["a", "b"]


def test_names_that_postgres_would_cut_are_refused(postgres: str, tmp_path: Path) -> None:
    place = Place("postgres", tmp_path, postgres, "é" * 32)
    with pytest.raises(InvalidDescription, match="has 64 bytes, and PostgreSQL cuts names behind 63"):
        place.connect()


def append(lake: Lake, count: int) -> int:
    for _ in range(count):
        transaction = lake.transaction()
        transaction.insert_inlined(transaction.table("main", "t"), [(os.getpid(),)])
        transaction.commit()
    return len(lake.snapshot().files(lake.snapshot().table("main", "t")).inlined_rows)


def test_a_forked_process_has_connections_of_its_own(place_in: PlaceIn) -> None:
    place = place_in()
    with place.connect(data_inlining_row_limit=10, patience=Patience(attempts=100, wait_ms=5, backoff=1.0)) as lake:
        transaction = lake.transaction()
        transaction.create_table("main", "t", [scalar("p", "int64")])
        transaction.commit()
        # Several connections are open when the others begin.
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(append, [lake] * 3, [2] * 3))
        children = [get_context("fork").Process(target=append, args=(lake, 5)) for _ in range(4)]
        for child in children:
            child.start()
        append(lake, 10)
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * 4
        snapshot = lake.snapshot()
        rows = [row.values[0] for row in snapshot.files(snapshot.table("main", "t")).inlined_rows]
        assert sorted(Counter(rows).values()) == [5, 5, 5, 5, 16]
        assert append(lake, 1) == 37
