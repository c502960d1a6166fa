"""Opening a lake: what there is at its place, in which layout, and whether it may be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import uuid4

from dbt.adapters.ducklake.lake.backends import backend_for
from dbt.adapters.ducklake.lake.backends.base import Backend, CommitBroken, Contended
from dbt.adapters.ducklake.lake.description import VERSIONS, LakeDescription
from dbt.adapters.ducklake.lake.errors import (
    CannotOpen,
    DataPathDiffers,
    DataPathMissing,
    InvalidMetadata,
    LakeEncrypted,
    LakeNotFound,
    MetadataQueryFailed,
    NameTaken,
    TenantNotFound,
    UnsupportedLayout,
    UnsupportedVersion,
    VersionDiffers,
)
from dbt.adapters.ducklake.lake.lake import Lake
from dbt.adapters.ducklake.lake.metadata import TENANTS, Metadata, MetadataSession
from dbt.adapters.ducklake.lake.migration import is_older, migrate, version_of
from dbt.adapters.ducklake.lake.options import options_from_rows
from dbt.adapters.ducklake.lake.paths import as_data_path, same_data_path
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.layout import OLDEST, STANDARD, Layout, developed
from dbt.adapters.ducklake.lake.tenants import (
    bootstrap_shared,
    check_tenant_name,
    layout_of_tenant,
    new_tenant,
    older_layout,
)

CREATED_BY = "dbt-ducklake"


def connect(description: LakeDescription) -> Lake:
    """Open a lake, or make it where its description allows. Any reason why it cannot be is a `CannotOpen`."""
    backend = backend_for(description)
    try:
        return _opened(backend, description)
    except BaseException:
        backend.close()
        raise


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is at a place: whether it is a lake, in which layout, and its rows of ducklake_metadata."""

    metadata: Metadata
    rows: tuple[tables.Metadata, ...]

    def value(self, key: str) -> str | None:
        return next((row.value for row in self.rows if row.key == key and row.scope is None), None)


def _opened(backend: Backend, description: LakeDescription) -> Lake:
    found = _look(backend, description) if backend.exists() else None
    if found is None:
        _create(backend, description)
        found = _look(backend, description)
        if found is None:
            raise UnsupportedLayout(backend.name, "the lake was made and is not there", "Look who else writes there.")
    _refuse_encrypted(found, description)
    options_from_rows(found.rows, None)
    return Lake(found.metadata, description, _data_path(found, description))


def _look(backend: Backend, description: LakeDescription) -> _Found | None:
    # Which options a lake has, all versions say alike.
    metadata = Metadata(backend, OLDEST)
    with metadata.reading() as session:
        if not session.has_table("ducklake_metadata"):
            return None
        is_shared, version = session.has_table(TENANTS), version_of(session)
        if is_shared or version not in STANDARD:
            _refuse_older(session, backend)
        rows = _rows_of_metadata(session, version)
        is_to_migrate = not is_shared and _is_to_migrate(backend, description, version)
        layout = None if is_to_migrate else _layout_of(session, backend, description, version, is_shared)
    if is_to_migrate:
        _migrate(_Found(metadata, rows), description)
        return _look(backend, description)
    if layout is None:
        if description.tenant_creation_refused is not None:
            raise TenantNotFound(backend.name, str(description.catalog))
        # Nothing is there under that name, so this makes it or meets someone who does.
        _make(backend, description)
        return _look(backend, replace(description, create_if_not_exists=False))
    if not layout.is_shared and description.catalog is not None:
        found = f"`catalog` is {description.catalog!r}, but this lake's metadata is not shared between tenants"
        raise UnsupportedLayout(backend.name, found, "Leave `catalog` out.")
    return _Found(Metadata(backend, layout), rows)


def _rows_of_metadata(session: MetadataSession, version: str) -> tuple[tables.Metadata, ...]:
    if version != "0.1":
        return tuple(session.read(tables.Metadata))
    # Then all options were the lake's, and had no scopes.
    rows = session.run_on("ducklake_metadata", 'SELECT "key", "value" FROM {table}')
    return tuple(tables.Metadata(key, value) for key, value in rows)


def _tenant(backend: Backend, description: LakeDescription) -> str:
    if description.catalog is None:
        raise UnsupportedLayout(backend.name, "it is shared between tenants", "Say which with `catalog`.")
    return description.catalog


def _refuse_older(session: MetadataSession, backend: Backend) -> None:
    if (layout := older_layout(session)) is not None:
        raise UnsupportedLayout(
            backend.name,
            f"an early version of the multi-tenant fork made them, {layout}",
            "Bring them to the layout of the fork's last version. Do not let DuckDB migrate them.",
        )


def _layout_of(
    session: MetadataSession, backend: Backend, description: LakeDescription, version: str, is_shared: bool
) -> Layout | None:
    """The layout of a lake, None where there is no such tenant."""
    if is_shared:
        return layout_of_tenant(session, backend.name, _tenant(backend, description))
    return STANDARD[version] if version in VERSIONS else developed(version, session.columns_of)


def _migrate(found: _Found, description: LakeDescription) -> None:
    """There is no way back, so whatever else may keep the lake from being opened comes first."""
    _refuse_encrypted(found, description)
    options_from_rows(found.rows, None)
    _data_path(found, description)
    migrate(found.metadata, description.wanted_version, description.patience)


def _is_to_migrate(backend: Backend, description: LakeDescription, version: str) -> bool:
    """Whether the lake is brought to another version before it is opened, as the profile asks. As in ATTACH, a version
    that is named is the one that the lake must have."""
    wanted, asked = description.wanted_version, description.ducklake_version
    if version not in STANDARD and not is_older(version, wanted):
        remedy = "DuckDB's ducklake extension for DuckDB 2.0 does not read it either: use the client that wrote it."
        raise UnsupportedVersion(backend.name, version, ", ".join(STANDARD), remedy)
    if is_older(version, wanted):
        if description.automatic_migration:
            return True
        remedy = "To bring it there, set `automatic_migration: true`, or run the operation ducklake_migrate."
        if version not in STANDARD:
            raise UnsupportedVersion(backend.name, version, ", ".join(STANDARD), remedy)
        if asked is not None:
            raise VersionDiffers(backend.name, version, asked, f"{remedy} Or leave `ducklake_version` out.")
    elif asked is not None and is_older(asked, version):
        remedy = "There is no way back: leave `ducklake_version` out."
        raise VersionDiffers(backend.name, version, asked, remedy)
    return False


def _refuse_encrypted(found: _Found, description: LakeDescription) -> None:
    stored = found.value("encrypted")
    if stored == "true":
        raise LakeEncrypted(found.metadata.backend.name, "is encrypted")
    if stored not in (None, "false"):
        raise InvalidMetadata(f"`encrypted` is {stored!r}", "It is true or false.")
    if description.encrypted:
        raise LakeEncrypted(found.metadata.backend.name, "is not encrypted, and `encrypted: true` asks for one that is")


def _data_path(found: _Found, description: LakeDescription) -> str:
    name, stored, asked = found.metadata.backend.name, found.value("data_path"), description.data_path
    if stored is None and asked is None:
        raise DataPathMissing(name)
    if asked is None or stored is None or description.override_data_path:
        return as_data_path(asked or stored or "")
    if not same_data_path(asked, stored):
        raise DataPathDiffers(name, asked, stored)
    # Stored paths are put together by concatenation, so the stored spelling is the one to use.
    return as_data_path(stored)


def _create(backend: Backend, description: LakeDescription) -> None:
    if (refusal := description.creation_refused) is not None:
        raise LakeNotFound(backend.name, refusal)
    if description.catalog is not None and (refusal := description.tenant_creation_refused) is not None:
        raise LakeNotFound(backend.name, refusal)
    if description.encrypted:
        raise LakeEncrypted(backend.name, "would be made with `encrypted: true`")
    if description.new_data_path is None:
        raise DataPathMissing(backend.name)
    _make(backend, description)


def _make(backend: Backend, description: LakeDescription) -> None:
    """Make the metadata tables, or the tenant in them."""
    if description.catalog is not None:
        check_tenant_name(description.catalog)
    metadata = Metadata(backend, STANDARD[description.wanted_version])
    try:
        backend.prepare()
        with metadata.writing() as session:
            is_there = session.has_table("ducklake_metadata")
            if not is_there and description.catalog is None:
                _bootstrap(session, description.new_data_path or "")
            elif not is_there:
                bootstrap_shared(session, description.new_data_path or "")
            if description.catalog is not None:
                new_tenant(session, description.catalog)
    except (Contended, CommitBroken, NameTaken):
        # Someone else makes it in the same moment, or it may be made; whether it is there is looked at next.
        return
    except MetadataQueryFailed as error:
        raise CannotOpen(f"A lake cannot be made at {backend.name}. {error}") from error


def _bootstrap(session: MetadataSession, data_path: str) -> None:
    for row_class in filter(session.layout.has, tables.TABLES):
        session.create(row_class)
    session.insert([tables.Snapshot(0, datetime.now(UTC), 0, 1, 0)])
    session.insert([tables.SnapshotChanges(0, 'created_schema:"main"')])
    facts: Mapping[str, str] = {
        "version": session.layout.version,
        "created_by": CREATED_BY,
        "data_path": as_data_path(data_path),
        "encrypted": "false",
    }
    session.insert([tables.Metadata(key, value) for key, value in facts.items()])
    session.insert([tables.Schema(0, uuid4(), 0, None, "main", "main/", True)])
