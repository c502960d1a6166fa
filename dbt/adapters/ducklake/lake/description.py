"""What a profile says of a lake: where it is and how to open it. Names and meanings are those of DuckLake's ATTACH."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from dbt.adapters.ducklake.lake.errors import InvalidDescription
from dbt.adapters.ducklake.lake.transaction.commit import Patience

KINDS = ("duckdb", "sqlite", "postgres")
# The formats that lakes are made in.
VERSIONS = ("1.0", "1.1")
_STORAGE_VERSION = re.compile(r"v\d+\.\d+\.\d+|latest")


@dataclass(frozen=True, slots=True)
class LakeDescription:
    """`metadata` is `duckdb:PATH`, `sqlite:PATH`, `postgres:CONNINFO or URL`, or for PostgreSQL a mapping with
    `type`, `host`, `port`, `user`, `password`, `dbname`. `busy_timeout` is how long, in seconds, a file or connection
    that others hold is waited for."""

    # Not shown: it may hold a password.
    metadata: str | Mapping[str, object] = field(repr=False)
    data_path: str | None = None
    metadata_schema: str | None = None
    catalog: str | None = None
    create_if_not_exists: bool | None = None
    read_only: bool = False
    snapshot_version: int | None = None
    snapshot_time: datetime | None = None
    override_data_path: bool = False
    data_inlining_row_limit: int | None = None
    encrypted: bool = False
    busy_timeout: float = 10.0
    # Of a metadata file in object storage: what fsspec needs to reach it, and when it is put back.
    metadata_options: Mapping[str, object] | None = field(default=None, repr=False)
    metadata_put: str = "commit"
    # Of a new DuckDB file, in DuckDB's words: v1.5.0 (the default), v2.0.0, latest.
    metadata_storage_version: str | None = None
    # The format of a new lake, and what an older one is brought to where that is allowed; None for the version that
    # the extension of the installed DuckDB would take.
    ducklake_version: str | None = None
    automatic_migration: bool = False
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        if self.snapshot_version is not None and self.snapshot_time is not None:
            raise InvalidDescription(
                "`snapshot_version` and `snapshot_time` are both set.", "A lake is seen at one or the other."
            )
        if self.snapshot_time is not None and self.snapshot_time.tzinfo is None:
            raise InvalidDescription(
                f"`snapshot_time` {self.snapshot_time.isoformat()} has no time zone.", "Write one, such as +00:00."
            )
        if self.data_inlining_row_limit is not None and self.data_inlining_row_limit < 0:
            raise InvalidDescription(
                f"`data_inlining_row_limit` is {self.data_inlining_row_limit}.", "It is a number of rows, 0 for none."
            )
        if self.metadata_put not in ("commit", "end"):
            raise InvalidDescription(f"`metadata_put` is {self.metadata_put!r}.", "It takes commit or end.")
        self._check_storage_version()
        if self.ducklake_version is not None and self.ducklake_version not in VERSIONS:
            raise InvalidDescription(
                f"`ducklake_version` is {self.ducklake_version!r}.", f"It takes {' or '.join(VERSIONS)}."
            )
        if self.catalog is not None and (self.ducklake_version is not None or self.automatic_migration):
            raise InvalidDescription(
                "`ducklake_version` or `automatic_migration` is set beside `catalog`.",
                "Metadata that are shared between tenants have a layout of their own: leave it out.",
            )
        if self.automatic_migration and (self.read_only or self.is_time_travel):
            raise InvalidDescription(
                "`automatic_migration` is set for a lake that is opened for reading.", "Leave one of them out."
            )
        if self.metadata_schema == "":
            raise InvalidDescription("`metadata_schema` is empty.", "Name a schema, or leave it out.")

    def _check_storage_version(self) -> None:
        given = self.metadata_storage_version
        if given is None:
            return
        if not _STORAGE_VERSION.fullmatch(given):
            raise InvalidDescription(
                f"`metadata_storage_version` is {given!r}.", "It is a version of DuckDB, such as v1.5.0, or latest."
            )
        if self.kind != "duckdb":
            raise InvalidDescription(
                f"`metadata_storage_version` is {given!r}, and the metadata are in {self.kind}.",
                "Only DuckDB files have one: leave it out.",
            )

    @property
    def is_time_travel(self) -> bool:
        return self.snapshot_version is not None or self.snapshot_time is not None

    @property
    def creation_refused(self) -> str | None:
        """Why a lake that is not there may not be made, None if it may."""
        if self.create_if_not_exists is False:
            return "`create_if_not_exists: false` forbids to make one"
        if self.read_only or self.is_time_travel:
            return "a lake that is opened for reading is not made"
        return None

    @property
    def tenant_creation_refused(self) -> str | None:
        """Why a tenant that is not there may not be made. Unlike a lake it must be asked for, as in the fork: a name
        that is written wrongly would be another tenant."""
        if self.create_if_not_exists is not True:
            return "a tenant is made only with `create_if_not_exists: true`, or by the operation ducklake_create_tenant"
        return self.creation_refused

    @property
    def kind(self) -> str:
        return self._split()[0]

    @property
    def place(self) -> str:
        """The path of a metadata file, or PostgreSQL's connection string."""
        return self._split()[1]

    @property
    def is_remote(self) -> bool:
        """Whether the metadata file lies in object storage."""
        return self.kind != "postgres" and "://" in self.place

    @property
    def wanted_version(self) -> str:
        """The format version of a new lake, and the one to which an older one may be brought."""
        return self.ducklake_version or ("1.1" if int(version("duckdb").split(".")[0]) >= 2 else "1.0")

    @property
    def new_data_path(self) -> str | None:
        """Where a new lake keeps its files: beside a DuckDB file, unless something else is said."""
        if self.data_path is None and self.is_remote:
            return f"{self.place.removeprefix('file://')}.files" if self.kind == "duckdb" else None
        if self.data_path is None and self.kind == "duckdb":
            return f"{Path(self.place).expanduser().absolute()}.files"
        return self.data_path

    def _split(self) -> tuple[str, str]:
        if isinstance(self.metadata, Mapping):
            return _from_mapping(self.metadata)
        kind, colon, place = self.metadata.removeprefix("ducklake:").partition(":")
        if kind == "postgresql" and place.startswith("//"):
            return "postgres", f"{kind}:{place}"
        if kind == "md":
            raise InvalidDescription(
                "`metadata` names MotherDuck (md:).", "Only duckdb:, sqlite: and postgres: are supported."
            )
        if not colon or kind not in KINDS:
            # What stands there instead may be a connection string with a password in it.
            raise InvalidDescription(
                "`metadata` must begin with duckdb:, sqlite: or postgres:.",
                f"Found {kind}:." if colon and kind.isalnum() else "Found no such beginning.",
            )
        if not place:
            raise InvalidDescription(f"`metadata` is {kind}: and nothing else.", "Say where it is.")
        # postgres://… is a URL as a whole, postgres:postgres://… one after the kind.
        return kind, f"{kind}:{place}" if kind == "postgres" and place.startswith("//") else place


_POSTGRES_KEYS = ("host", "port", "user", "password", "dbname")


def _from_mapping(parts: Mapping[str, object]) -> tuple[str, str]:
    kind = parts.get("type")
    if kind != "postgres":
        raise InvalidDescription(
            f"`metadata.type` is {kind!r}.", "As a mapping, metadata describes PostgreSQL: postgres."
        )
    unknown = sorted(set(parts) - {"type", *_POSTGRES_KEYS})
    if unknown:
        raise InvalidDescription(
            f"`metadata` has {', '.join(unknown)}.", f"It takes type, {', '.join(_POSTGRES_KEYS)}."
        )
    given = {key: str(parts[key]) for key in _POSTGRES_KEYS if parts.get(key) is not None}
    return "postgres", " ".join(f"{key}={_conninfo_value(value)}" for key, value in given.items())


def _conninfo_value(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
