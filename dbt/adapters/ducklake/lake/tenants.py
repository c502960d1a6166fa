"""The tenants of metadata tables that they share: made, listed and ended by the operator, and found by their name.

A lake is opened for one tenant and knows of no other. What is here sees all of them, and is for descriptions that name
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

from dbt.adapters.ducklake.lake.backends import backend_for
from dbt.adapters.ducklake.lake.backends.base import CommitBroken
from dbt.adapters.ducklake.lake.description import LakeDescription
from dbt.adapters.ducklake.lake.errors import (
    ChangeRefused,
    DataPathMissing,
    InvalidDescription,
    LakeNotFound,
    MetadataQueryFailed,
    NameTaken,
    ReadOnlyLake,
    TenantNotFound,
    UnsupportedLayout,
)
from dbt.adapters.ducklake.lake.metadata import LINEAGE, TENANTS, Head, Metadata, MetadataSession
from dbt.adapters.ducklake.lake.names import fold
from dbt.adapters.ducklake.lake.paths import as_data_path
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.layout import OLDEST, SHARED_VERSION, SNAPSHOT_IDS, Layout, shared
from dbt.adapters.ducklake.lake.spec.shared import CATALOG, UNIQUE_NAMES, definitions
from dbt.adapters.ducklake.lake.spec.tables import RowClass
from dbt.adapters.ducklake.lake.transaction.commit import in_attempts
from dbt.adapters.ducklake.lake.transaction.made import Made, changes_text

_NONE = "tenants are listed and dropped where there are some"
# The name of a tenant is the name of its folder too. Letters and digits of any script, but nothing that a path, a
# pattern or a URL would read otherwise.
_NAME = re.compile(r"[^\W_][\w-]{0,99}")
# What of a tenant ends with it.
_ENDS: tuple[RowClass, ...] = (
    tables.Schema, tables.Table, tables.View, tables.Macro, tables.Column, tables.DataFile, tables.DeleteFile,
    tables.PartitionInfo, tables.Tag, tables.ColumnTag,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tenant:
    id: int
    uuid: UUID
    name: str
    parent: int | None
    since: int


def tenants(description: LakeDescription) -> list[Tenant]:
    """The tenants that there are."""
    with of_all(description) as metadata:
        _refuse_absent(metadata)
        with metadata.reading() as session:
            refuse_not_shared(session, metadata)
            return tenants_in(session)


def create_tenant(description: LakeDescription, name: str) -> Tenant:
    """A new tenant, in tables that are made for it where there are none yet."""
    check_tenant_name(name)

    def work(session: MetadataSession) -> Tenant:
        if not session.has_table("ducklake_metadata"):
            if description.new_data_path is None:
                raise DataPathMissing(metadata.backend.name)
            bootstrap_shared(session, description.new_data_path)
        refuse_not_shared(session, metadata)
        return new_tenant(session, name)

    with of_all(description) as metadata:
        metadata.backend.prepare()
        return _in_attempts(metadata, description, work)


def drop_tenant(description: LakeDescription, name: str) -> Tenant:
    """End a tenant: nobody can open it from now on. Its files and the rows of its past stay where they are."""

    def work(session: MetadataSession) -> Tenant:
        refuse_not_shared(session, metadata)
        return _end_tenant(session, metadata, name)

    with of_all(description) as metadata:
        _refuse_absent(metadata)
        return _in_attempts(metadata, description, work)


@contextmanager
def of_all(description: LakeDescription) -> Iterator[Metadata]:
    if description.catalog is not None:
        raise InvalidDescription(
            f"`catalog` is {description.catalog!r}, and a tenant knows of no other.",
            "Tenants are made, listed and dropped from a target without `catalog`.",
        )
    backend = backend_for(description)
    try:
        yield Metadata(backend, OLDEST)
    finally:
        backend.close()


def _in_attempts(metadata: Metadata, description: LakeDescription, work: Callable[[MetadataSession], Tenant]) -> Tenant:
    if description.read_only or description.is_time_travel:
        raise ReadOnlyLake(metadata.backend.name, "it is opened for reading")
    try:
        return in_attempts(metadata, description.patience, work)
    except CommitBroken as error:
        found = "the connection broke, so whether it is done is unknown: list the tenants"
        raise MetadataQueryFailed(metadata.backend.name, found) from error


def _refuse_absent(metadata: Metadata) -> None:
    if not metadata.backend.exists():
        raise LakeNotFound(metadata.backend.name, _NONE)


def refuse_not_shared(session: MetadataSession, metadata: Metadata) -> None:
    name = metadata.backend.name
    if not session.has_table("ducklake_metadata"):
        raise LakeNotFound(name, _NONE)
    if not session.has_table(TENANTS) or not session.has_table(LINEAGE):
        found = "they are not shared between tenants, or by an early version of the fork"
        raise UnsupportedLayout(name, found, "With the standard layout, give each tenant a `metadata_schema`.")


def check_tenant_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ChangeRefused(
            f"create tenant {name!r}", "a tenant's name is the name of its folder",
            "Begin with a letter or digit; then letters, digits, _ and - may come, 100 at most.",
        )  # fmt: skip


def layout_of_tenant(session: MetadataSession, where: str, name: str) -> Layout | None:
    """The metadata tables through the eyes of a tenant, None where there is none of that name."""
    sql = "SELECT catalog_id FROM {table} WHERE catalog_name = $1 AND end_snapshot IS NULL"
    rows = session.run_on(TENANTS, sql, name)
    if not rows:
        return None
    if len(rows) > 1:
        raise UnsupportedLayout(where, f"it has {len(rows)} tenants {name!r} at once", "End all but one of them.")
    if name in (".", "..") or set(name) & set("/\\\0"):
        raise UnsupportedLayout(where, f"tenant {name!r} has a name that is no folder", "Move it to another name.")
    return shared(rows[0][0], f"{name}/")


def older_layout(session: MetadataSession) -> str | None:
    """What the tables are called if an early version of the fork made them, by their columns; None for any others."""
    snapshot = session.columns_of("ducklake_snapshot")
    if not session.has_table(TENANTS):
        return "with tenants that have no names (F1)" if "catalog_id" in snapshot else None
    if session.has_table(LINEAGE):
        return None
    if "next_entry_id" in snapshot:
        return "with ids of entries (F2)"
    if "catalog_id" in snapshot:
        return "with snapshots of each tenant (F3)"
    has_parents = "parent_catalog_id" in session.columns_of(TENANTS)
    return "without the lineage of snapshots (F5)" if has_parents else "without forks and lineage (F4)"


def bootstrap_shared(session: MetadataSession, data_path: str) -> None:
    """Make the tables, without a tenant."""
    session.refuse_without_sequences()
    for name, columns in definitions(shared(0, ""), session.storage.physical_types).items():
        session.run_on(name, f"CREATE TABLE {{table}} ({columns})")
    session.run_on(SNAPSHOT_IDS, "CREATE SEQUENCE {table}")
    for name, names in UNIQUE_NAMES.items():
        session.keep_unique(f"ducklake_{name}", names)
    facts = {"version": SHARED_VERSION, "data_path": as_data_path(data_path), "encrypted": "false"}
    session.insert([tables.Metadata(key, value) for key, value in facts.items()])
    session.insert([tables.Snapshot(0, datetime.now(UTC), 0, 0, 0)])


def new_tenant(session: MetadataSession, name: str) -> Tenant:
    # Before its name is looked for: from here on nobody else makes one.
    head = session.head_of_all()
    # Of dropped ones too: their files are where this one's would be.
    had = {fold(row[0]): row[0] for row in session.run_on(TENANTS, "SELECT catalog_name FROM {table}")}
    if fold(name) in had:
        raise NameTaken("Tenant", had[fold(name)], "these metadata, or was, and has its folder")
    id, schema_id, snapshot = head.next_catalog_id, head.next_catalog_id + 1, head.next_snapshot
    made = Tenant(id, uuid4(), name, None, snapshot)
    own = session.through(shared(id, f"{name}/"))
    own.add_snapshot(head, _snapshot_row(head, head.schema_version, ids=2))
    own.insert_into(TENANTS, CATALOG, [(id, made.uuid, name, None, snapshot, None)])
    own.insert([tables.SchemaVersions(snapshot, 0, None)])
    own.insert([tables.Schema(schema_id, uuid4(), snapshot, None, "main", f"{name}/main/", True)])
    own.insert([tables.SnapshotChanges(snapshot, changes_text([Made("created_schema", name="main")]))])
    return made


def _end_tenant(session: MetadataSession, metadata: Metadata, name: str) -> Tenant:
    asked = f"drop tenant {name!r}"
    head = session.head_of_all()
    there = tenants_in(session)
    tenant = next((one for one in there if one.name == name), None)
    if tenant is None:
        raise TenantNotFound(metadata.backend.name, name)
    if forks := [one.name for one in there if one.parent == tenant.id]:
        raise ChangeRefused(asked, f"{', '.join(forks)} were forked from it and read its files", "Drop them first.")
    own, version = session.through(shared(tenant.id, f"{name}/")), head.schema_version + 1
    live = "WHERE end_snapshot IS NULL"
    made = [Made("dropped_table", id=row.table_id) for row in own.read(tables.Table, live)]
    made += [Made("dropped_view", id=row.view_id) for row in own.read(tables.View, live)]
    made += [Made("dropped_schema", id=row.schema_id) for row in own.read(tables.Schema, live)]
    own.add_snapshot(head, _snapshot_row(head, version))
    for row_class in _ENDS:
        own.end(row_class, head.next_snapshot, {})
    own.insert([tables.SchemaVersions(head.next_snapshot, version, None)])
    own.insert([tables.SnapshotChanges(head.next_snapshot, changes_text(made))])
    sql = "UPDATE {table} SET end_snapshot = $1 WHERE catalog_id = $2 AND end_snapshot IS NULL"
    session.run_on(TENANTS, sql, head.next_snapshot, tenant.id)
    return tenant


def _snapshot_row(head: Head, version: int, ids: int = 0) -> tables.Snapshot:
    next_id = head.next_catalog_id + ids
    return tables.Snapshot(head.next_snapshot, datetime.now(UTC), version, next_id, head.next_file_id)


def tenants_in(session: MetadataSession) -> list[Tenant]:
    sql = (
        "SELECT catalog_id, CAST(catalog_uuid AS VARCHAR), catalog_name, parent_catalog_id, begin_snapshot "
        "FROM {table} WHERE end_snapshot IS NULL ORDER BY catalog_name"
    )
    return [Tenant(id, UUID(uuid), *rest) for id, uuid, *rest in session.run_on(TENANTS, sql)]
