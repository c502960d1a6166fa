"""The `catalog_id` layout on a lake that the multi-tenant fork wrote: a tenant sees its own rows, and changes them."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import Lake, LakeDescription, LakeError, NotFound, connect
from dbt.adapters.ducklake.lake.errors import SnapshotNotFound, TenantNotFound, UnsupportedLayout
from tests.interop.reader import rows_at
from tests.judge import Judge
from tests.written import write_deletes, write_file

FIXTURE = Path(__file__).parents[1] / "fixtures" / "shared_layout"
TABLES = {
    "acme": ["history.events", "main.orders", "main.tiny"],
    "globex": ["main.orders"],
    "shared": ["datasets.countries"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "lake"))


def opened(folder: Path, tenant: str | None, **more: Any) -> Lake:
    description = LakeDescription(
        f"duckdb:{folder / 'meta.ducklake'}",
        data_path=str(folder / "data"),
        override_data_path=True,
        catalog=tenant,
        **more,
    )
    return connect(description)


@pytest.mark.parametrize("tenant", TABLES)
def test_a_tenant_sees_its_tables_and_no_others(folder: Path, tenant: str) -> None:
    with opened(folder, tenant) as lake:
        snapshot = lake.snapshot()
        found = [f"{s.name}.{table.name}" for s in snapshot.schemas() for table in snapshot.tables(s.name)]
    assert sorted(found) == TABLES[tenant]


@pytest.mark.parametrize(("tenant", "name"), [(tenant, name) for tenant, names in TABLES.items() for name in names])
def test_rows_are_those_that_the_fork_reads(folder: Path, tenant: str, name: str) -> None:
    schema, table_name = name.split(".")
    with opened(folder, tenant) as lake:
        snapshot = lake.snapshot()
        table = snapshot.table(schema, table_name)
        ours = rows_at(Judge.of_this_process(), snapshot, table)
    expected = json.loads((FIXTURE / "expected" / f"{tenant}.{name}.json").read_text(), parse_float=Decimal)
    names = [column.name for column in table.columns]
    assert [set(row) for row in expected] == [set(names)] * len(expected)
    theirs = [tuple(_plain(row[column]) for column in names) for row in expected]
    assert sorted((tuple(map(_plain_text, row)) for row in ours), key=repr) == sorted(theirs, key=repr)


def _plain(value: Any) -> str:
    """Values without the marks in which JSON and DuckDB's text differ."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_plain(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return str(value)


def _plain_text(value: str | None) -> str:
    return str(value).replace("'", "").replace("=", ": ")


def test_every_snapshot_of_a_tenant_can_be_read(folder: Path) -> None:
    with opened(folder, "acme") as lake:
        counts: dict[tuple[int, str], int] = {}
        for info in lake.snapshots():
            snapshot = lake.snapshot(version=info.id)
            for named in snapshot.tables("main"):
                table = snapshot.table("main", named.name)
                counts[info.id, named.name] = len(rows_at(Judge.of_this_process(), snapshot, table))
    assert counts[3, "orders"] == 500
    assert counts[4, "orders"] == 450
    assert counts[5, "orders"] == 450
    assert counts[13, "gone"] == 1
    assert (14, "gone") not in counts


def test_snapshots_of_others_are_neither_listed_nor_readable(folder: Path) -> None:
    with opened(folder, "acme") as lake:
        ids = [info.id for info in lake.snapshots()]
        assert ids == [*range(1, 17), 26, 27]
        for other in (0, 17, 20, 25, 28):
            with pytest.raises(SnapshotNotFound):
                lake.snapshot(version=other)
    with opened(folder, "globex") as lake:
        assert [info.id for info in lake.snapshots()] == [17, 18, 19]
        assert all("datasets" not in str(info.changes) for info in lake.snapshots())


@pytest.mark.parametrize("schema", ["datasets", "history", "globex", "globex.main", "main' OR '1'='1", 'main"', "MAIN"])
@pytest.mark.parametrize("name", ["countries", "events", "orders", "globex.main.orders", "orders' OR 'a'='a", "*", ""])
def test_no_name_reaches_another_tenant(folder: Path, schema: str, name: str) -> None:
    with opened(folder, "globex") as lake:
        try:
            table = lake.snapshot().table(schema, name)
        except NotFound:
            return
        assert (str(table), len(table.columns)) == ("main.orders", 2)
        rows = rows_at(Judge.of_this_process(), lake.snapshot(), table)
    expected = json.loads((FIXTURE / "expected" / "globex.main.orders.json").read_text())
    assert len(rows) == len(expected)


def test_the_view_of_a_tenant_is_read(folder: Path) -> None:
    with opened(folder, "acme") as lake:
        assert "FROM acme.orders" in lake.snapshot().view("main", "big_orders").sql
    with opened(folder, "globex") as lake, pytest.raises(NotFound):
        lake.snapshot().view("main", "big_orders")


def metadata_of(folder: Path) -> dict[str, set[str]]:
    """Every row of every table, as text."""
    with duckdb.connect(str(folder / "meta.ducklake"), read_only=True) as opened_file:
        names = [name for (name,) in opened_file.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return {name: {str(row) for row in opened_file.execute(f'FROM "{name}"').fetchall()} for name in names}


def test_what_we_write_beside_the_fork(folder: Path) -> None:
    """Rows as section 14.5 of the format page has them; of the other tenants not one is touched."""
    before = metadata_of(folder)
    with opened(folder, "globex") as lake:
        transaction = lake.transaction()
        orders = transaction.table("main", "orders")
        file = transaction.base.files(orders).data_files[0]
        transaction.append(orders, [write_file(orders, [(900, "9.00"), (901, "9.01")])])
        transaction.delete(orders, [write_deletes(orders, file.id, [(0, 28)])])
        assert transaction.commit() == 28
        named = lake.transaction()
        named.create_schema("s")
        named.comment_on_table("main", "orders", "of globex")
        assert named.commit() == 29
        rows = rows_at(Judge.of_this_process(), lake.snapshot(), lake.snapshot().table("main", "orders"))
        assert len(rows) == len(json.loads((FIXTURE / "expected" / "globex.main.orders.json").read_text())) + 1
    after = metadata_of(folder)
    new = {name: sorted(after[name] - before[name]) for name in after if after[name] - before[name]}
    gone = {name for name in before if before[name] - after[name]}
    # What is told of a table as it is now is told anew.
    assert gone <= {"ducklake_table_stats", "ducklake_table_column_stats"}
    assert set(new) == {
        "ducklake_snapshot", "ducklake_snapshot_changes", "ducklake_snapshot_lineage", "ducklake_data_file",
        "ducklake_file_column_stats", "ducklake_delete_file", "ducklake_table_stats", "ducklake_table_column_stats",
        "ducklake_schema", "ducklake_schema_versions", "ducklake_tag",
    }  # fmt: skip
    assert new["ducklake_snapshot_lineage"] == ["(8, 27, 28)", "(8, 28, 29)"]
    assert [row[:4] for row in new["ducklake_snapshot_changes"]] == ["(28,", "(29,"]
    assert "28, 8, 'inserted_into_table:10,deleted_from_table:10'" in new["ducklake_snapshot_changes"][0]
    assert new["ducklake_schema_versions"] == ["(8, 29, 15)"]
    assert [row.rpartition("), ")[2] for row in new["ducklake_snapshot"]] == ["14, 16, 18)", "15, 17, 18)"]
    assert new["ducklake_tag"] == ["(8, 10, 'comment', 29, None, 'of globex')"]
    assert new["ducklake_schema"][0].startswith("(8, 16, UUID(")
    assert new["ducklake_schema"][0].endswith("29, None, 's', 'globex/s/', True)")
    assert new["ducklake_data_file"][0].startswith("(8, 16, 10, 28, None, None, 'ducklake-")
    assert new["ducklake_delete_file"][0].startswith("(8, 17, 10, 28, None, 10, 'ducklake-")
    for tenant in ("acme", "shared"):
        for name in TABLES[tenant]:
            test_rows_are_those_that_the_fork_reads(folder, tenant, name)


def test_a_tenant_must_be_named_and_exist(folder: Path) -> None:
    with pytest.raises(UnsupportedLayout, match="Say which with `catalog`"):
        opened(folder, None)
    with pytest.raises(TenantNotFound, match="'nobody'") as caught:
        opened(folder, "nobody")
    assert not any(tenant in str(caught.value) for tenant in TABLES)
    assert isinstance(caught.value, LakeError)
