"""The `catalog_id` layout, read-only, on a lake that the multi-tenant fork wrote: a tenant sees its own rows."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import Lake, LakeDescription, LakeError, NotFound, connect
from dbt.adapters.ducklake.lake.errors import ReadOnlyLake, SnapshotNotFound, TenantNotFound, UnsupportedLayout
from tests.interop.reader import rows_at
from tests.judge import Judge

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


def test_nothing_is_written_yet(folder: Path) -> None:
    with opened(folder, "acme") as lake:
        with pytest.raises(ReadOnlyLake, match="does not write the shared layout"):
            lake.transaction().create_schema("x")
        with pytest.raises(ReadOnlyLake):
            lake.set_option("target_file_size", "1MB")


def test_a_tenant_must_be_named_and_exist(folder: Path) -> None:
    with pytest.raises(UnsupportedLayout, match="Say which with `catalog`"):
        opened(folder, None)
    with pytest.raises(TenantNotFound, match="'nobody'") as caught:
        opened(folder, "nobody")
    assert not any(tenant in str(caught.value) for tenant in TABLES)
    assert isinstance(caught.value, LakeError)
