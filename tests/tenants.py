"""Places of one tenant in metadata that others share, and their judge.

No extension from PyPI reads the `catalog_id` layout. So what a tenant has is copied, by rules that stand here and
nowhere in what is tested, into tables of the standard layout, and DuckDB's extension reads those.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from dbt.adapters.ducklake.lake import LakeDescription, connect
from tests.judge import Judge
from tests.places import Place, Rows

SHARED_KINDS = ("shared duckdb", "shared postgres")


@dataclass
class TenantPlace(Place):
    tenant: str = "acme"

    def describe(self, **more: Any) -> LakeDescription:
        return super().describe(**{"catalog": self.tenant, "create_if_not_exists": True, **more})

    def beside(self, tenant: str) -> TenantPlace:
        """The place of another tenant in the same metadata."""
        return TenantPlace(self.kind, self.folder, self.postgres, self.schema, self.options, tenant)

    @contextmanager
    def attached(self, **more: Any) -> Iterator[Judge]:
        copy = self.folder / f"standard_{self.tenant}.ducklake"
        copy.unlink(missing_ok=True)
        data_path = str(more.pop("data_path", self.data_path))
        with connect(LakeDescription(f"duckdb:{copy}", data_path=data_path, ducklake_version="1.0")):
            pass
        every = self.tables()
        id = next(row["catalog_id"] for row in every["ducklake_catalog"] if row["catalog_name"] == self.tenant)
        with duckdb.connect(str(copy)) as standard:
            _copy(standard, every, str(id))
        with Judge.of_this_process().attached(f"duckdb:{copy}", **{"read_only": True, **more}) as judge:
            judge.run("USE lake")
            yield judge


def _copy(standard: duckdb.DuckDBPyConnection, every: dict[str, Rows], tenant: str) -> None:
    own = {
        name: [row for row in rows if "catalog_id" not in row or str(row["catalog_id"]) == tenant]
        for name, rows in every.items()
    }
    snapshots = {str(row["snapshot_id"]) for row in own["ducklake_snapshot_lineage"]}
    own["ducklake_snapshot"] = [row for row in own["ducklake_snapshot"] if str(row["snapshot_id"]) in snapshots]
    for row in own["ducklake_data_file"]:
        said = row["partial_file_info"]
        row["partial_max"] = said.removeprefix("partial_max:") if said else None
    tables = [name for (name,) in standard.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    for name in tables:
        if name != "ducklake_metadata":
            standard.execute(f"DELETE FROM {name}")
    for name in tables:
        columns = [row[0] for row in standard.execute(f"DESCRIBE {name}").fetchall()]
        rows = [] if name == "ducklake_metadata" else own.get(name, [])
        for row in rows:
            marks = ", ".join("?" for _ in columns)
            standard.execute(f"INSERT INTO {name} VALUES ({marks})", [row.get(column) for column in columns])
    kept = {row["table_name"] for row in own["ducklake_inlined_data_tables"]}
    for name in kept:
        shown = ", ".join(f'"{column}" VARCHAR' for column in (every[name][0] if every[name] else {"row_id": 0}))
        standard.execute(f"CREATE TABLE {name} ({shown})")
        for row in every[name]:
            standard.execute(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in row)})", list(row.values()))
