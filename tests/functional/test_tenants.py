"""Tenants in metadata that they share: made, listed, written to and ended, and never seen by another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import (
    Bounds,
    Column,
    ColumnType,
    CommitConflict,
    InlinedRow,
    Lake,
    SnapshotId,
    SortField,
    connect,
    merge_groups,
)
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    InvalidDescription,
    LakeNotFound,
    NameTaken,
    ReadOnlyLake,
    SnapshotNotFound,
    TenantNotFound,
    UnsupportedLayout,
)
from dbt.adapters.ducklake.lake.tenants import create_tenant, drop_tenant, tenants
from tests.conftest import PlaceOf
from tests.functional.test_transactions import ACTIONS, CONFLICTS, QUICK
from tests.interop.reader import rows_at
from tests.interop.test_shared_layout import FIXTURE
from tests.judge import Judge
from tests.places import Rows
from tests.tenants import SHARED_KINDS, TenantPlace
from tests.written import plain, write_deletes, write_file

# What metadata that are shared keep no rows of.
INLINING = {"inline", "inlined_delete"}
WRITTEN = {name: action for name, action in ACTIONS.items() if name not in INLINING}


@pytest.fixture(params=SHARED_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(kind: str, place_of: PlaceOf) -> TenantPlace:
    made = place_of(kind)
    assert isinstance(made, TenantPlace)
    return made


@pytest.fixture
def lake(place: TenantPlace) -> Iterator[Lake]:
    """Acme's lake with a table t(a, b) of rows (0, 0) to (9, 0); another tenant has the same, and came before."""
    with place.beside("globex").connect() as other:
        fill(other, [(n, 7) for n in range(3)])
    with place.connect(patience=QUICK) as opened:
        fill(opened, [(n, 0) for n in range(10)])
        yield opened


def fill(lake: Lake, rows: list[tuple[int, int]]) -> None:
    first = lake.transaction()
    made = first.create_table("main", "t", plain("a", "b"))
    first.append(made, [write_file(made, rows)])
    first.commit()


def commit(lake: Lake, change: Callable[[Any], object]) -> int:
    t = lake.transaction()
    change(t)
    return t.commit()


def no_tenant(place: TenantPlace, **more: Any) -> Any:
    return place.describe(catalog=None, **more)


PAIRS = [(ours, theirs) for ours in WRITTEN for theirs in WRITTEN if "other_table" not in (ours, theirs)]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[f"{ours}-after-{theirs}" for ours, theirs in PAIRS])
def test_a_second_transaction_ends_as_the_matrix_says(place: TenantPlace, ours: str, theirs: str) -> None:
    """The same as in a lake of its own, whatever another tenant does meanwhile to what has the same names."""
    other_place = place.beside("globex")
    with place.connect(patience=QUICK) as lake, other_place.connect(patience=QUICK) as other:
        for one in (lake, other):
            commit(one, prepare)
        t, first, elsewhere = lake.transaction(), lake.transaction(), other.transaction()
        WRITTEN[ours](t)
        WRITTEN[theirs](first)
        WRITTEN[theirs](elsewhere)
        first.say(author="the other one")
        taken = first.commit()
        elsewhere.commit()
        if (ours, theirs) in CONFLICTS:
            with pytest.raises(CommitConflict, match=rf"snapshot {taken} \(by the other one\)"):
                t.commit()
            assert lake.snapshot().id == taken
        else:
            assert t.commit() > taken
    assert place.asked("SELECT max(snapshot_id) FROM lake.snapshots()")[0][0] >= taken


def prepare(t: Any) -> None:
    made = t.create_table("main", "t", plain("a", "b"))
    t.create_schema("s")
    t.append(made, [write_file(made, [(n, 0) for n in range(5)]), write_file(made, [(n, 1) for n in range(5)])])


def test_other_tenants_never_conflict(lake: Lake, place: TenantPlace) -> None:
    with place.beside("globex").connect() as other:
        for action in ("delete", "alter", "rename", "drop"):
            t = lake.transaction()
            WRITTEN[action](t)
            commit(other, lambda u: u.create_table("main", f"x{u.base.id}", plain("a")))
            if action == "drop":
                t.commit()


def test_what_is_written_is_read(lake: Lake, place: TenantPlace) -> None:
    table = lake.snapshot().table("main", "t")
    file = lake.snapshot().files(table).data_files[0]
    commit(lake, lambda t: t.delete(table, [write_deletes(table, file.id, [(3, 1)])]))
    older = lake.snapshot().files(table).data_files[0].delete_file
    assert older is not None
    commit(lake, lambda t: t.delete(table, [write_deletes(table, file.id, [(3, 1), (4, 1)], replaces=older.id)]))
    second = lake.snapshot().id
    commit(lake, lambda t: t.add_column("main", "t", Column("c", ColumnType("varchar"))))
    commit(lake, lambda t: t.set_partitioning("main", "t", [("a", "identity")]))
    commit(lake, lambda t: t.create_schema("Häuser"))
    commit(lake, lambda t: t.create_view("Häuser", "v", "SELECT 1 AS x", comment="one"))
    commit(lake, lambda t: t.rename_table("main", "t", "u"))
    with place.attached() as judge:
        assert judge.rows("SELECT a, c FROM u ORDER BY a") == [(n, None) for n in range(10) if n not in (3, 4)]
        assert judge.rows(f"SELECT count(*) FROM t AT (VERSION => {second - 1})") == [(9,)]
        assert judge.rows(f"SELECT count(*) FROM t AT (VERSION => {second - 2})") == [(10,)]
        assert judge.rows('SELECT x FROM "Häuser".v') == [(1,)]
    assert place.beside("globex").asked("SELECT a, b FROM t ORDER BY a") == [(n, 7) for n in range(3)]


def test_one_statement_may_read_two_tenants(lake: Lake, place: TenantPlace) -> None:
    """A tenant's lake beside one that all read, in the same metadata: what is read of both is read at once."""
    with place.beside("globex").connect(read_only=True, busy_timeout=1.0) as other:
        with lake.reading() as own, other.reading() as theirs:
            assert own.files(own.table("main", "t")).data_files[0].record_count == 10
            assert theirs.files(theirs.table("main", "t")).data_files[0].record_count == 3
            assert lake.snapshot().id == own.id
        with other.reading():
            assert len(lake.snapshots()) == 2
        commit(lake, lambda t: t.create_schema("after"))


def test_files_lie_in_the_tenants_folder(lake: Lake, place: TenantPlace) -> None:
    made = lake.transaction()
    made.create_schema("s")
    made.create_table("s", "x", plain("a"))
    made.commit()
    table = lake.snapshot().table("s", "x")
    assert table.location == f"{place.data_path}acme/s/x/"
    assert lake.snapshot().table("main", "t").location == f"{place.data_path}acme/main/t/"
    assert lake.own_path == f"{place.data_path}acme/"


def test_ids_go_on_over_all_tenants(lake: Lake, place: TenantPlace) -> None:
    """Section 14.4 and 14.5 of the format page, row by row."""
    with place.beside("globex").connect() as other:
        commit(lake, lambda t: t.create_table("main", "x", plain("a")))
        commit(other, lambda t: t.create_table("main", "x", plain("a")))
        commit(lake, lambda t: t.append(*appended(t, "x")))
        last = commit(other, lambda t: t.append(*appended(t, "x")))
    rows = {name: plain_rows(found) for name, found in place.tables().items()}
    ids = {row["catalog_name"]: row["catalog_id"] for row in rows["ducklake_catalog"]}
    assert ids == {"globex": 0, "acme": 3}
    assert [row["catalog_id"] for row in rows["ducklake_schema"]] == [0, 3]
    assert [row["schema_id"] for row in rows["ducklake_schema"]] == [1, 4]
    assert [row["path"] for row in rows["ducklake_schema"]] == ["globex/main/", "acme/main/"]
    assert sorted((row["table_id"], row["catalog_id"]) for row in rows["ducklake_table"]) == [
        (2, 0), (5, 3), (6, 3), (7, 0)
    ]  # fmt: skip
    assert sorted((row["data_file_id"], row["catalog_id"]) for row in rows["ducklake_data_file"]) == [
        (0, 0), (1, 3), (2, 3), (3, 0)
    ]  # fmt: skip
    lineage = [(row["catalog_id"], row["previous_snapshot_id"], row["snapshot_id"])
               for row in rows["ducklake_snapshot_lineage"]]  # fmt: skip
    assert lineage == [(0, 0, 1), (0, 1, 2), (3, 2, 3), (3, 3, 4), (3, 4, 5), (0, 5, 6), (3, 6, 7), (0, 7, 8)]
    assert last == 8
    versions = [(row["catalog_id"], row["begin_snapshot"], row["schema_version"])
                for row in rows["ducklake_schema_versions"]]  # fmt: skip
    assert versions == [(0, 1, 0), (0, 2, 1), (3, 3, 0), (3, 4, 2), (3, 5, 3), (0, 6, 4)]
    counters = [(row["snapshot_id"], row["schema_version"], row["next_catalog_id"], row["next_file_id"])
                for row in rows["ducklake_snapshot"]]  # fmt: skip
    assert counters == [
        (0, 0, 0, 0), (1, 0, 2, 0), (2, 1, 3, 1), (3, 1, 5, 1), (4, 2, 6, 2), (5, 3, 7, 2), (6, 4, 8, 2), (7, 4, 8, 3),
        (8, 4, 8, 4),
    ]  # fmt: skip
    assert [(row["catalog_id"], row["changes_made"]) for row in rows["ducklake_snapshot_changes"]][2:5] == [
        (3, 'created_schema:"main"'), (3, 'created_table:"main"."t",inserted_into_table:5'),
        (3, 'created_table:"main"."x"'),
    ]  # fmt: skip
    assert {(row["key"], row["value"]) for row in rows["ducklake_metadata"]} == {
        ("version", "0.5-dev1"), ("data_path", place.data_path), ("encrypted", "false")
    }  # fmt: skip


def appended(t: Any, name: str, row: tuple[int, ...] = (1,)) -> tuple[Any, Any]:
    table = t.table("main", name)
    return table, [write_file(table, [row])]


def plain_rows(rows: Rows) -> Rows:
    """Rows with numbers as numbers, in the order of the snapshots and ids that they name."""
    found = [{key: int(value) if str(value).isdigit() else value for key, value in row.items()} for row in rows]
    order = ("snapshot_id", "begin_snapshot", "data_file_id", "table_id", "schema_id", "catalog_id")
    return sorted(found, key=lambda row: [row[key] or 0 for key in order if key in row])


def test_tables_are_made_as_the_fork_makes_them(place_of: PlaceOf) -> None:
    place = place_of("shared duckdb")
    with place.connect():
        pass

    def columns(file: Path) -> dict[str, tuple[list[Any], list[Any]]]:
        with duckdb.connect(str(file), read_only=True) as opened:
            names = [row[0] for row in opened.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
            keys = {
                name: opened.execute(
                    "SELECT constraint_column_names FROM duckdb_constraints() WHERE table_name = ? "
                    "AND constraint_type = 'PRIMARY KEY'", [name]
                ).fetchall()
                for name in names
            }  # fmt: skip
            shown = "SELECT column_name, column_type, null FROM (DESCRIBE {})"
            return {name: (opened.execute(shown.format(name)).fetchall(), keys[name]) for name in names}

    theirs = {name: made for name, made in columns(FIXTURE / "meta.ducklake").items() if "inlined_data_1" not in name}
    assert columns(place.metadata_file) == theirs


def test_options_are_a_tenants_own(lake: Lake, place: TenantPlace) -> None:
    lake.set_option("target_file_size", "1MB")
    lake.set_option("parquet_compression", "zstd", "main")
    lake.set_option("target_file_size", "2MB", "main", "t")
    lake.set_option("target_file_size", "3MB", "main", "t")
    schema, table = lake.snapshot().schema("main"), lake.snapshot().table("main", "t")
    with place.beside("globex").connect() as other:
        other.set_option("target_file_size", "9MB")
        assert other.options().value("target_file_size") == "9000000"
        own = other.snapshot().table("main", "t")
        assert other.options().value("target_file_size", own.schema.id, own.id) == "9000000"
        assert other.options().value("parquet_compression", own.schema.id, own.id) is None
    found = lake.options()
    assert found.value("target_file_size") == "1000000"
    assert found.value("target_file_size", schema.id, table.id) == "3000000"
    assert found.value("parquet_compression", schema.id, table.id) == "zstd"


def test_snapshots_of_others_are_not_there(lake: Lake, place: TenantPlace) -> None:
    with place.beside("globex").connect() as other:
        theirs = commit(other, lambda t: t.create_schema("secret"))
        assert [one.id for one in other.snapshots()] == [1, 2, theirs]
    assert [one.id for one in lake.snapshots()] == [3, 4]
    for version in (0, 1, 2, theirs):
        with pytest.raises(SnapshotNotFound) as caught:
            lake.snapshot(version=version)
        assert "secret" not in str(caught.value)
    with pytest.raises(SnapshotNotFound):
        lake.maintenance.expire([theirs])
    assert lake.maintenance.expire([1, 2]).data_files == 0
    with place.beside("globex").connect() as other:
        assert [one.id for one in other.snapshots()] == [1, 2, theirs]


def test_expiry_takes_a_tenants_own(lake: Lake, place: TenantPlace) -> None:
    with place.beside("globex").connect() as other:
        for one in (lake, other):
            commit(one, lambda t: t.drop_table("main", "t"))
        before = place.beside("globex").asked("SELECT count(*) FROM t AT (VERSION => 2)")
        expired = lake.maintenance.expire([one.id for one in lake.snapshots()][:-1])
        assert (expired.tables, expired.data_files) == (1, 1)
        waiting = lake.maintenance.scheduled_files()
        assert [file.path.startswith(f"{place.data_path}acme/main/t/") for file in waiting] == [True]
        assert other.maintenance.scheduled_files() == []
    assert place.beside("globex").asked("SELECT count(*) FROM t AT (VERSION => 2)") == before == [(3,)]
    # Later commits still know what came before.
    commit(lake, lambda t: t.create_schema("after"))


def test_a_writer_whose_base_has_expired_is_told(lake: Lake) -> None:
    t = lake.transaction()
    t.append(t.table("main", "t"), [write_file(t.table("main", "t"), [(1, 1)])])
    for name in ("x", "y"):
        other = lake.transaction()
        other.create_schema(name)
        other.commit()
    lake.maintenance.expire([one.id for one in lake.snapshots()][:-1])
    with pytest.raises(CommitConflict, match="some have expired"):
        t.commit()


@pytest.mark.parametrize(
    ("asked", "change"),
    [
        ("sort", lambda t: t.set_sort("main", "t", [SortField("a")])),
        ("inline rows", lambda t: t.insert_inlined(t.table("main", "t"), [(1, 1)])),
        ("flush", lambda t: t.flush_inlined(t.table("main", "t"), ["x"], [], [])),
    ],
)
def test_what_the_layout_has_no_place_for_is_refused(lake: Lake, asked: str, change: Callable[[Any], object]) -> None:
    with pytest.raises(ChangeRefused, match=rf"Cannot {asked}.*shared between tenants"):
        change(lake.transaction())


def test_tenants_are_made_listed_and_dropped(place: TenantPlace) -> None:
    with pytest.raises(LakeNotFound):
        tenants(no_tenant(place))
    made = create_tenant(no_tenant(place), "acme")
    create_tenant(no_tenant(place), "globex")
    assert [one.name for one in tenants(no_tenant(place))] == ["acme", "globex"]
    with pytest.raises(NameTaken):
        create_tenant(no_tenant(place), "Acme")
    with place.connect(create_if_not_exists=None) as lake:
        fill(lake, [(1, 1)])
    assert drop_tenant(no_tenant(place), "acme") == made
    assert [one.name for one in tenants(no_tenant(place))] == ["globex"]
    with pytest.raises(TenantNotFound):
        place.connect(create_if_not_exists=None)
    with pytest.raises(TenantNotFound):
        drop_tenant(no_tenant(place), "acme")
    rows = {name: plain_rows(found) for name, found in place.tables().items()}
    last = rows["ducklake_snapshot_changes"][-1]
    assert (last["catalog_id"], last["changes_made"]) == (made.id, "dropped_schema:1,dropped_table:4")
    assert not [row for row in rows["ducklake_data_file"] if row["end_snapshot"] is None]
    # Its files are where those of another of its name would be.
    for name in ("acme", "ACME"):
        with pytest.raises(NameTaken, match="has its folder"):
            create_tenant(no_tenant(place), name)


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../globex", "a/b", "a\\b", "a'b", 'a"b', "a.b", "a\0b", "-a", "_a", "a b", "a%2fb", "a*",
     "x" * 101, "a\n", "a:b", "$a"],
)  # fmt: skip
def test_names_that_are_no_folder_are_refused(place_of: PlaceOf, name: str) -> None:
    place = place_of("shared duckdb")
    assert isinstance(place, TenantPlace)
    with pytest.raises(ChangeRefused, match="the name of its folder"):
        create_tenant(no_tenant(place), name)
    with pytest.raises(ChangeRefused), connect(place.describe(catalog=name)):
        pass
    assert not place.metadata_file.exists()


def test_a_tenant_is_made_only_where_it_is_asked_for(place: TenantPlace) -> None:
    for create in (None, False):
        with pytest.raises(LakeNotFound, match="create_if_not_exists: true"):
            place.connect(create_if_not_exists=create)
    with place.connect():
        pass
    other = place.beside("globex")
    for create in (None, False):
        with pytest.raises(TenantNotFound, match="'globex'"):
            other.connect(create_if_not_exists=create)
    with pytest.raises(TenantNotFound):
        other.connect(read_only=True)
    with other.connect():
        pass
    assert [one.name for one in tenants(no_tenant(place))] == ["acme", "globex"]


def test_a_tenant_knows_of_no_other(place: TenantPlace) -> None:
    with place.connect():
        pass
    for ask in (tenants, lambda it: create_tenant(it, "x"), lambda it: drop_tenant(it, "acme")):
        with pytest.raises(InvalidDescription, match="a tenant knows of no other"):
            ask(place.describe())
    with pytest.raises(ReadOnlyLake):
        create_tenant(no_tenant(place, read_only=True), "x")
    with pytest.raises(UnsupportedLayout, match="Say which with `catalog`"):
        connect(no_tenant(place))


def test_a_standard_lake_has_no_tenants(place_of: PlaceOf) -> None:
    place = place_of("duckdb")
    with place.connect():
        pass
    for ask in (tenants, lambda it: create_tenant(it, "x"), lambda it: drop_tenant(it, "x")):
        with pytest.raises(UnsupportedLayout, match="metadata_schema"):
            ask(place.describe())
    with pytest.raises(UnsupportedLayout, match="not shared between tenants"):
        place.connect(catalog="x")
    with pytest.raises(UnsupportedLayout, match="SQLite has no sequence"):
        place_of("sqlite").connect(catalog="x", create_if_not_exists=True)


_OTHER = "'0190a0a0-0000-7000-8000-000000000000'"


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO ducklake_catalog VALUES (99, {_OTHER}, 'fork', 0, 2, NULL)",
        "UPDATE ducklake_catalog SET parent_catalog_id = 99",
    ],
    ids=["it has a fork", "it is a fork"],
)
def test_forks_keep_the_files_that_they_share(place: TenantPlace, sql: str) -> None:
    with place.connect() as lake:
        fill(lake, [(1, 1)])
    with place.connect() as lake:
        # While the lake is open, as another's client does in the middle of a run.
        place.execute(sql)
        table = lake.snapshot().table("main", "t")
        file = lake.snapshot().files(table).data_files[0]
        inlined = InlinedRow(0, SnapshotId(1), None, "x", (1, 1))

        def end_inlined() -> None:
            transaction = lake.transaction()
            transaction.end_inlined(table, [inlined])
            transaction.commit()

        def merge_files() -> None:
            transaction = lake.transaction()
            transaction.merge_files(table, [file.id], [])
            transaction.commit()

        health = lake.maintenance
        for asked in (end_inlined, merge_files, lambda: health.expire([1]), health.scheduled_files, health.known_files):
            with pytest.raises(ChangeRefused, match="this tenant was forked or has forks"):
                asked()
        assert lake.snapshot().files(table).data_files == (file,)
    if sql.startswith("INSERT"):
        with pytest.raises(ChangeRefused, match="fork were forked from it"):
            drop_tenant(no_tenant(place), "acme")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["DROP TABLE ducklake_catalog", "ALTER TABLE ducklake_snapshot ADD COLUMN catalog_id VARCHAR"], "F1"),
        (["DROP TABLE ducklake_snapshot_lineage", "ALTER TABLE ducklake_snapshot ADD COLUMN next_entry_id BIGINT"],
         "F2"),
        (["DROP TABLE ducklake_snapshot_lineage", "ALTER TABLE ducklake_snapshot ADD COLUMN catalog_id BIGINT",
          "UPDATE ducklake_metadata SET value = '0.4-dev1' WHERE key = 'version'"], "F3"),
        (["DROP TABLE ducklake_snapshot_lineage", "DROP TABLE ducklake_catalog",
          "CREATE TABLE ducklake_catalog (catalog_id BIGINT, catalog_name VARCHAR)"], "F4"),
        (["DROP TABLE ducklake_snapshot_lineage"], "F5"),
    ],
)  # fmt: skip
def test_older_layouts_are_known_by_their_columns(place_of: PlaceOf, changes: list[str], said: str) -> None:
    place = place_of("shared duckdb")
    with place.connect():
        pass
    for sql in changes:
        place.execute(sql)
    with pytest.raises(UnsupportedLayout, match=rf"{said}\).*Do not let DuckDB migrate"):
        place.connect()


def test_files_of_several_commits_are_merged(lake: Lake, place: TenantPlace) -> None:
    for _ in range(4):
        commit(lake, lambda t: t.append(*appended(t, "t", (1, 1))))
    commit(lake, lambda t: t.create_table("main", "other", plain("x")))
    commit(lake, lambda t: t.append(*appended(t, "t", (2, 2))))
    snapshot = lake.snapshot()
    table = snapshot.table("main", "t")
    groups = merge_groups(snapshot.files(table), snapshot.layouts(table), 10**9, Bounds())
    assert [len(group.files) for group in groups] == [6]


def test_a_name_that_leaves_its_folder_is_not_opened(place_of: PlaceOf) -> None:
    place = place_of("shared duckdb")
    with place.connect():
        pass
    place.execute("UPDATE ducklake_catalog SET catalog_name = '../acme'")
    with pytest.raises(UnsupportedLayout, match="no folder"):
        place.connect(catalog="../acme")


def test_a_schema_for_each_tenant_is_written_by_turns(place_of: PlaceOf) -> None:
    """The standard layout: METADATA_SCHEMA, by us and by the extension, made by the one and by the other."""
    ours, theirs = place_of("postgres"), place_of("postgres")
    with ours.connect() as lake:
        fill(lake, [(0, 0)])
    theirs.judged("CREATE TABLE t (a BIGINT, b BIGINT)", "INSERT INTO t VALUES (0, 0)", data_inlining_row_limit=0)
    for number in range(1, 6):
        for place in (ours, theirs):
            with place.connect() as lake:
                transaction = lake.transaction()
                table = transaction.table("main", "t")
                transaction.append(table, [write_file(table, [(number, 1)])])
                transaction.commit()
            place.judged(f"INSERT INTO t VALUES ({number}, 2)", f"DELETE FROM t WHERE a = {number} AND b = 1")
    expected = [(0, 0), *((number, 2) for number in range(1, 6))]
    for place in (ours, theirs):
        assert place.asked("SELECT a, b FROM t ORDER BY ALL") == expected
        with place.connect() as lake:
            snapshot = lake.snapshot()
            files = snapshot.files(snapshot.table("main", "t"))
            assert rows_at(Judge.of_this_process(), snapshot, snapshot.table("main", "t"))
            assert len(files.inlined_rows) + sum(file.record_count for file in files.data_files) >= 6
        assert place.asked("SELECT count(*) FROM lake.snapshots()") == [(17 if place is ours else 18,)]


def test_no_other_schema_is_looked_at(place_of: PlaceOf) -> None:
    """A tenant's lake opens, and is written to, where the others' schemas are broken."""
    place, other = place_of("postgres"), place_of("postgres")
    for one in (place, other):
        with one.connect() as lake:
            fill(lake, [(0, 0)])
    other.execute("DROP TABLE ducklake_snapshot")
    other.execute("ALTER TABLE ducklake_metadata RENAME TO gone")
    with place.connect() as lake:
        commit(lake, lambda t: t.create_schema("s"))
        assert len(lake.snapshots()) == 3
