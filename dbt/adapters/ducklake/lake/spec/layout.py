"""How the metadata tables of one lake are laid out: which exist, which columns they have, whose rows are ours.

The rest of this room names tables and columns as `spec.tables` does and knows of one lake. Whatever differs from
that, in the standard layout or another, is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.tables import LOGICAL_TYPES, TABLES, RowClass

SUPPORTED_VERSION = "1.0"


@dataclass(frozen=True)
class Layout:
    """A description of the metadata tables, with the tenant whose rows are seen through it (None: all rows)."""

    name: str
    version: str
    writable: bool
    absent: frozenset[RowClass] = frozenset()
    # An expression over the physical columns, for each column of spec.tables that a table does not have.
    derived: Mapping[RowClass, Mapping[str, str]] = field(default_factory=dict)
    unscoped: frozenset[RowClass] = frozenset()
    tenant: int | None = None

    def relations(self, qualified: Callable[[str], str]) -> dict[str, str]:
        """For every table of spec.tables, what stands for it in a FROM clause."""
        return {name: self._relation(row_class, qualified) for row_class, name in TABLES.items()}

    def columns(self, row_class: RowClass) -> tuple[str, ...]:
        return tuple(name for name in row_class._fields if name not in self.derived.get(row_class, {}))

    def scope(self, row_class: RowClass) -> dict[str, int]:
        """Columns, with their values, that every row of ours in this table carries beside those of spec.tables."""
        return {} if self.tenant is None or row_class in self.unscoped else {"catalog_id": self.tenant}

    def _relation(self, row_class: RowClass, qualified: Callable[[str], str]) -> str:
        if row_class in self.absent:
            nothing = (f"CAST(NULL AS {_ANY_SQL[t]}) AS {quoted(c)}" for c, t in LOGICAL_TYPES[row_class].items())
            return f"(SELECT {', '.join(nothing)} WHERE 1 = 0)"
        physical = qualified(f"ducklake_{TABLES[row_class]}")
        if self.tenant is None:
            return physical
        derived = self.derived.get(row_class, {})
        shown = (f"{derived[c]} AS {quoted(c)}" if c in derived else quoted(c) for c in row_class._fields)
        return f"(SELECT {', '.join(shown)} FROM {physical} AS of_all WHERE {self._condition(row_class, qualified)})"

    def _condition(self, row_class: RowClass, qualified: Callable[[str], str]) -> str:
        # The tenant is a number that was read from the database, never a text of the user's.
        tenant = int(self.tenant or 0)
        if row_class is tables.Snapshot:
            lineage = qualified("ducklake_snapshot_lineage")
            return (
                f"EXISTS (SELECT 1 FROM {lineage} AS lineage WHERE lineage.snapshot_id = of_all.snapshot_id "
                f"AND lineage.catalog_id = {tenant})"
            )
        return "1 = 1" if row_class in self.unscoped else f"catalog_id = {tenant}"


_ANY_SQL = {"BIGINT": "BIGINT", "VARCHAR": "VARCHAR", "BOOLEAN": "BOOLEAN", "UUID": "VARCHAR", "TIMESTAMPTZ": "VARCHAR"}

STANDARD = Layout(name="standard", version=SUPPORTED_VERSION, writable=True)


def shared(tenant: int) -> Layout:
    """The `catalog_id` layout of the multi-tenant fork (F6 and F7 of the format page), through one tenant's eyes."""
    return Layout(
        name="shared",
        version="0.5-dev1",
        writable=False,
        absent=frozenset({tables.SortInfo, tables.SortExpression, tables.FileVariantStats}),
        derived={
            # The other form, `s1:r1|s2:r2`, holds row counts instead; it fails this cast rather than being misread.
            tables.DataFile: {"partial_max": "CAST(replace(partial_file_info, 'partial_max:', '') AS BIGINT)"},
            tables.DeleteFile: {"partial_max": "CAST(NULL AS BIGINT)"},
            tables.SchemaVersions: {"table_id": "CAST(NULL AS BIGINT)"},
        },
        unscoped=frozenset({tables.Metadata, tables.Snapshot}),
        tenant=tenant,
    )
