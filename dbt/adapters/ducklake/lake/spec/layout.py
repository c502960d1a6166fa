"""How the metadata tables of one lake are laid out: which exist, which columns they have, whose rows are ours.

The rest of this room names tables and columns as `spec.tables` does and knows of one lake. Whatever differs from
that, in the standard layout or another, is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from dbt.adapters.ducklake.lake.names import fold, quoted
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.tables import LOGICAL_TYPES, TABLES, RowClass


class InlinedColumns(NamedTuple):
    """The columns that lead every table of inlined rows, before those of the lake's table."""

    row_id: str
    begin: str
    end: str


_PREFIX, _INTERNAL = "_ducklake_", "_ducklake_internal_"
_PLAIN = InlinedColumns("row_id", "begin_snapshot", "end_snapshot")
_PREFIXED = InlinedColumns(*(f"{_PREFIX}{name}" for name in _PLAIN))


@dataclass(frozen=True)
class Layout:
    """A description of the metadata tables, with the tenant whose rows are seen through it (None: all rows)."""

    name: str
    version: str
    inlined: InlinedColumns = _PREFIXED
    absent: frozenset[RowClass] = frozenset()
    # An expression over the physical columns, for each column of spec.tables that a table does not have.
    derived: Mapping[RowClass, Mapping[str, str]] = field(default_factory=dict)
    # Physical columns in place of derived ones, with what they hold of a row.
    stored: Mapping[RowClass, Mapping[str, Callable[[Any], object]]] = field(default_factory=dict)
    unscoped: frozenset[RowClass] = frozenset()
    tenant: int | None = None
    # Below the data path, where new schemas of the tenant lie.
    folder: str = ""

    @property
    def is_shared(self) -> bool:
        return self.tenant is not None

    def relations(self, qualified: Callable[[str], str]) -> dict[str, str]:
        """For every table of spec.tables, what stands for it in a FROM clause."""
        return {name: self._relation(row_class, qualified) for row_class, name in TABLES.items()}

    def has(self, row_class: RowClass) -> bool:
        return row_class not in self.absent

    def columns(self, row_class: RowClass) -> tuple[str, ...]:
        """The columns of spec.tables that a table has as they are."""
        return tuple(name for name in row_class._fields if name not in self.derived.get(row_class, {}))

    def is_reserved(self, column: str) -> bool:
        """Whether DuckDB uses a column's name itself in inlined tables, so that it inlines no rows of its table."""
        if self.refuses_reserved:
            return fold(column).startswith(_PREFIX)
        return fold(column) in self.inlined or fold(column).startswith(_INTERNAL)

    @property
    def is_of_1_1(self) -> bool:
        return self.inlined == _PREFIXED

    # Whether names like those of DuckLake's own columns are given to no column at all.
    refuses_reserved = is_of_1_1
    # Whether tables may be partitioned by units since 1970.
    has_epochs = is_of_1_1
    # Whether the comment on a column ends with it; older clients leave it.
    ends_comments_with_columns = is_of_1_1
    # Whether clients look for NaN in inlined rows.
    looks_for_nan = is_of_1_1
    # Whether a file's columns are those of its last rows, and not of its first.
    merges_across_columns = is_of_1_1

    @property
    def nests_schemas(self) -> bool:
        return NESTING in self.columns(tables.Schema)

    @property
    def tells_deletes(self) -> bool:
        """Whether the metadata allow delete files that hold positions of several snapshots."""
        return "partial_max" in self.columns(tables.DeleteFile)

    @property
    def tells_versions_of_tables(self) -> bool:
        """Whether a schema version is told of each table that it is about, and not of the snapshot."""
        return "table_id" in self.columns(tables.SchemaVersions)

    def physical(self, row_class: RowClass) -> dict[str, Callable[[Any], object]]:
        """The columns that a row is inserted in beside its scope, each with what it holds of the row."""
        own: dict[str, Callable[[Any], object]] = {name: attrgetter(name) for name in self.columns(row_class)}
        return {**own, **self.stored.get(row_class, {})}

    def scope(self, row_class: RowClass) -> dict[str, int]:
        """Columns, with their values, that every row of ours in this table carries beside those of spec.tables."""
        return {} if self.tenant is None or row_class in self.unscoped else {"catalog_id": self.tenant}

    def _relation(self, row_class: RowClass, qualified: Callable[[str], str]) -> str:
        if row_class in self.absent:
            nothing = (f"CAST(NULL AS {_ANY_SQL[t]}) AS {quoted(c)}" for c, t in LOGICAL_TYPES[row_class].items())
            return f"(SELECT {', '.join(nothing)} WHERE 1 = 0)"
        physical = qualified(f"ducklake_{TABLES[row_class]}")
        derived = self.derived.get(row_class, {})
        if self.tenant is None and not derived:
            return physical
        if self.is_shared and row_class is tables.Metadata:
            return self._options(physical, qualified)
        shown = (f"{derived[c]} AS {quoted(c)}" if c in derived else quoted(c) for c in row_class._fields)
        return f"(SELECT {', '.join(shown)} FROM {physical} AS of_all WHERE {self._condition(row_class, qualified)})"

    def _options(self, metadata: str, qualified: Callable[[str], str]) -> str:
        """What holds for all tenants, and before it what the tenant's own tags say."""
        tenant, tag, schema = int(self.tenant or 0), qualified("ducklake_tag"), qualified("ducklake_schema")
        own = f"catalog_id = {tenant} AND end_snapshot IS NULL"
        kind = (
            f"CASE WHEN object_id = {tenant} THEN NULL WHEN object_id IN (SELECT schema_id FROM {schema} "
            f"WHERE catalog_id = {tenant}) THEN 'schema' ELSE 'table' END"
        )
        return (
            '(SELECT "key", "value", CAST(NULL AS VARCHAR) AS "scope", CAST(NULL AS BIGINT) AS scope_id '
            f'FROM {metadata} AS of_all WHERE "scope" IS NULL AND NOT EXISTS (SELECT 1 FROM {tag} AS own WHERE {own} '
            f'AND object_id = {tenant} AND own."key" = \'{OPTION_TAG}\' || of_all."key") '
            f'UNION ALL SELECT substr("key", {len(OPTION_TAG) + 1}), "value", {kind}, '
            f"CASE WHEN object_id = {tenant} THEN NULL ELSE object_id END FROM {tag} "
            f"WHERE {own} AND \"key\" LIKE '{OPTION_TAG}%')"
        )

    def _condition(self, row_class: RowClass, qualified: Callable[[str], str]) -> str:
        # The tenant is a number that was read from the database, never a text of the user's.
        tenant = int(self.tenant or 0)
        if not self.is_shared:
            return "1 = 1"
        if row_class is tables.Snapshot:
            lineage = qualified("ducklake_snapshot_lineage")
            return (
                f"EXISTS (SELECT 1 FROM {lineage} AS lineage WHERE lineage.snapshot_id = of_all.snapshot_id "
                f"AND lineage.catalog_id = {tenant})"
            )
        return "1 = 1" if row_class in self.unscoped else f"catalog_id = {tenant}"


_ANY_SQL = {"BIGINT": "BIGINT", "VARCHAR": "VARCHAR", "BOOLEAN": "BOOLEAN", "UUID": "VARCHAR", "TIMESTAMPTZ": "VARCHAR"}

_NO_NUMBER, _NO_TRUTH = "CAST(NULL AS BIGINT)", "CAST(NULL AS BOOLEAN)"
NESTING = "parent_schema_id"
_NO_ROW_GROUPS = {"row_group_count": _NO_NUMBER}
_NO_EXACTNESS = {"min_is_exact": _NO_TRUTH, "max_is_exact": _NO_TRUTH}
# What the last development build before 1.1 had not, and what 1.0 has not.
_SINCE_1_1: Mapping[RowClass, Mapping[str, str]] = {
    tables.Schema: {NESTING: _NO_NUMBER},
    tables.FileColumnStats: _NO_EXACTNESS,
    tables.TableColumnStats: _NO_EXACTNESS,
}
_SINCE_DEV: Mapping[RowClass, Mapping[str, str]] = {
    **_SINCE_1_1, tables.DataFile: _NO_ROW_GROUPS, tables.DeleteFile: _NO_ROW_GROUPS,
}  # fmt: skip

_STANDARD = (
    Layout("standard", "1.0", _PLAIN, absent=frozenset({tables.ViewColumnTag}), derived=_SINCE_DEV),
    Layout("standard", "1.1-dev1", derived=_SINCE_1_1),
    Layout("standard", "1.1"),
)
# By their versions, the oldest first.
STANDARD = {layout.version: layout for layout in _STANDARD}
OLDEST, NEWEST = _STANDARD[0], _STANDARD[-1]
SHARED_VERSION = "0.5-dev1"
OPTION_TAG = "option:"
SNAPSHOT_IDS = "ducklake_snapshot_id_seq"


def developed(version: str, columns_of: Callable[[str], Collection[str]]) -> Layout:
    """The layout of a development build, which has of a version what was made by then, by the columns there are."""
    missing = {
        row_class: {
            name: null for name, null in added.items() if name not in columns_of(f"ducklake_{TABLES[row_class]}")
        }
        for row_class, added in _SINCE_1_1.items()
    }
    return replace(NEWEST, version=version, derived={of: columns for of, columns in missing.items() if columns})


def shared(tenant: int, folder: str) -> Layout:
    """The `catalog_id` layout of the multi-tenant fork (F6 and F7 of the format page), through one tenant's eyes."""
    return Layout(
        name="shared",
        version=SHARED_VERSION,
        inlined=_PLAIN,
        absent=frozenset({tables.SortInfo, tables.SortExpression, tables.FileVariantStats, tables.ViewColumnTag}),
        derived={
            **_SINCE_DEV,
            # The other form, `s1:r1|s2:r2`, holds row counts instead; it fails this cast rather than being misread.
            tables.DataFile: {
                "partial_max": "CAST(replace(partial_file_info, 'partial_max:', '') AS BIGINT)",
                **_NO_ROW_GROUPS,
            },
            tables.DeleteFile: {"partial_max": _NO_NUMBER, **_NO_ROW_GROUPS},
            tables.SchemaVersions: {"table_id": _NO_NUMBER},
        },
        stored={
            tables.DataFile: {
                "partial_file_info": lambda row: None if row.partial_max is None else f"partial_max:{row.partial_max}"
            }
        },
        unscoped=frozenset({tables.Metadata, tables.Snapshot}),
        tenant=tenant,
        folder=folder,
    )
