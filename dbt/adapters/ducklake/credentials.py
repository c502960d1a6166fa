"""The profile: its fields, their defaults, and the checks that need no connection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.lake import LakeDescription, LakeError, Patience, fold
from dbt.adapters.ducklake.spark.session import DOORS, SparkSettings, encrypts

_SPARK_KEYS = ("master", "remote", "app_name", "config")
_PASSWORD = re.compile(r"(password\s*=\s*)('(?:\\.|[^'\\])*'|\S+)|(://[^:/@\s]*:).*@", re.IGNORECASE)
# The fields of a lake, as they stand at the top of a target and in each entry of `attach`.
_LAKE_FIELDS = (
    "metadata", "data_path", "metadata_schema", "catalog", "create_if_not_exists", "read_only", "snapshot_version",
    "snapshot_time", "override_data_path", "data_inlining_row_limit", "encrypted", "metadata_options", "metadata_put",
    "metadata_storage_version", "ducklake_version", "automatic_migration",
)  # fmt: skip


@dataclass
class DuckLakeCredentials(Credentials):
    """A target of the profile. Names and meanings of a lake's fields are those of DuckLake's ATTACH."""

    metadata: str | dict[str, Any] = ""
    database: str = "lake"
    schema: str = "main"
    data_path: str | None = None
    metadata_schema: str | None = None
    catalog: str | None = None
    create_if_not_exists: bool | None = None
    read_only: bool = False
    snapshot_version: int | None = None
    snapshot_time: str | None = None
    override_data_path: bool = False
    # What dbt builds comes in files. Above 0 each new table brings an empty one for inlined rows with it, and a DuckDB
    # file with 330 of them takes 20 ms to open instead of 2: a project that is rebuilt daily has as many in a week.
    data_inlining_row_limit: int = 0
    encrypted: bool = False
    metadata_options: dict[str, Any] = field(default_factory=dict)
    metadata_put: str = "commit"
    metadata_storage_version: str | None = None
    # Without quotes, YAML makes a number of it.
    ducklake_version: str | float | None = None
    automatic_migration: bool = False
    attach: list[dict[str, Any]] = field(default_factory=list)
    spark: dict[str, Any] = field(default_factory=dict)
    # Whether models may go past the lakes; what they may do nevertheless.
    strict: bool = False
    strict_allows: list[str] = field(default_factory=list)
    retries: int | None = None
    retry_wait_ms: int | None = None
    retry_backoff: float | None = None
    busy_timeout: float | None = None

    _ALIASES = {"ducklake": "metadata", "lake": "database"}  # noqa: RUF012  dbt's own way to declare them

    def __post_init__(self) -> None:
        if not self.metadata:
            raise DbtRuntimeError(
                "The profile has no `metadata`. Say where the lake's metadata are: duckdb:PATH, sqlite:PATH or "
                "postgres:CONNINFO."
            )
        self._check_spark()
        self._check_strict()
        lakes = self.descriptions()
        for name, description in lakes:
            try:
                _ = description.kind
            except LakeError as error:
                raise DbtRuntimeError(f"Lake {name} of the profile: {error}") from error
        _check_held_files(lakes)

    @property
    def type(self) -> str:
        return "ducklake"

    @property
    def unique_field(self) -> str:
        return f"{_without_password(self.metadata)} {self.catalog or ''}"

    def _connection_keys(self) -> tuple[str, ...]:
        return ("metadata", "data_path", "database", "schema", "metadata_schema", "catalog", "read_only",
                "snapshot_version", "snapshot_time", "attach", "spark", "strict")  # fmt: skip

    def connection_info(self, *, with_aliases: bool = False) -> Iterator[tuple[str, Any]]:
        """What dbt prints: no password."""
        for key, value in super().connection_info(with_aliases=with_aliases):
            if key == "metadata":
                yield key, _without_password(value)
            elif key == "attach":
                yield key, [lake.get("name") for lake in value or []]
            elif key == "spark":
                yield key, self.spark_settings().where
            else:
                yield key, value

    def descriptions(self) -> list[tuple[str, LakeDescription]]:
        """The lakes of the target by their names, its own first."""
        own = {name: getattr(self, name) for name in _LAKE_FIELDS}
        found = [(self.database, self._described(self.database, own))]
        for given in self.attach:
            name = given.get("name")
            if not isinstance(name, str) or not name:
                raise DbtRuntimeError(f"An entry of `attach` has no `name`: {', '.join(given)}.")
            unknown = sorted(set(given) - {"name", *_LAKE_FIELDS})
            if unknown:
                raise DbtRuntimeError(
                    f"Lake {name} of `attach` has {unknown[0]}. It takes name, {', '.join(_LAKE_FIELDS)}."
                )
            if fold(name) in {fold(known) for known, _ in found}:
                raise DbtRuntimeError(f"Two lakes of the profile are called {name}. Give each a name of its own.")
            found.append((name, self._described(name, given)))
        return found

    def _described(self, name: str, given: Mapping[str, Any]) -> LakeDescription:
        values: dict[str, Any] = {"data_inlining_row_limit": type(self).data_inlining_row_limit}
        values |= {key: value for key, value in given.items() if key in _LAKE_FIELDS and value is not None}
        if "ducklake_version" in values:
            values["ducklake_version"] = str(values["ducklake_version"])
        if "snapshot_time" in values:
            values["snapshot_time"] = _moment(name, values["snapshot_time"])
        default = Patience()
        patience = Patience(
            attempts=default.attempts if self.retries is None else self.retries,
            wait_ms=default.wait_ms if self.retry_wait_ms is None else self.retry_wait_ms,
            backoff=default.backoff if self.retry_backoff is None else self.retry_backoff,
        )
        if self.busy_timeout is not None:
            values["busy_timeout"] = self.busy_timeout
        try:
            return LakeDescription(patience=patience, **values)
        except (LakeError, TypeError) as error:
            raise DbtRuntimeError(f"Lake {name} of the profile: {error}") from error

    def spark_settings(self, log_file: str | None = None) -> SparkSettings:
        config = {str(key): _spark_text(value) for key, value in (self.spark.get("config") or {}).items()}
        return SparkSettings(
            master=self.spark.get("master"),
            remote=self.spark.get("remote"),
            app_name=self.spark.get("app_name", "dbt-ducklake"),
            config=config,
            closed=frozenset(DOORS) - set(self.strict_allows) if self.strict else frozenset(),
            log_file=log_file,
        )

    def _check_strict(self) -> None:
        if unknown := [door for door in self.strict_allows if door not in DOORS]:
            raise DbtRuntimeError(f"`strict_allows` of the profile has {unknown[0]!r}. It takes {', '.join(DOORS)}.")

    def _check_spark(self) -> None:
        unknown = sorted(set(self.spark) - set(_SPARK_KEYS))
        if unknown:
            raise DbtRuntimeError(f"`spark` of the profile has {unknown[0]}. It takes {', '.join(_SPARK_KEYS)}.")
        if self.spark.get("master") and self.spark.get("remote"):
            raise DbtRuntimeError("`spark` of the profile has both `master` and `remote`. Spark runs at one of them.")
        if encrypting := next((key for key in self.spark.get("config") or {} if encrypts(str(key))), None):
            raise DbtRuntimeError(
                f"`spark.config` of the profile has {encrypting}. Other readers of the lake cannot open the files "
                "that Spark encrypts. Leave it out."
            )


def _check_held_files(lakes: list[tuple[str, LakeDescription]]) -> None:
    """A run that holds a file until its end would wait for itself if it wrote there as two lakes."""
    written = [(name, one) for name, one in lakes if one.is_remote and not (one.read_only or one.is_time_travel)]
    for (name, one), (other_name, other) in combinations(written, 2):
        is_same = one.place == other.place and (one.metadata_options or {}) == (other.metadata_options or {})
        if is_same and "end" in (one.metadata_put, other.metadata_put):
            raise DbtRuntimeError(
                f"Lakes {name} and {other_name} of the profile are in one metadata file, {one.place}, which "
                "`metadata_put: end` holds for one of them until the run ends. Leave `metadata_put` out, or give one "
                "of them `read_only: true`."
            )


def _spark_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(name: str, text: object) -> datetime:
    try:
        return text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
    except ValueError as error:
        raise DbtRuntimeError(
            f"Lake {name} of the profile: `snapshot_time` is {text!r}. Write it as 2026-01-31 12:00:00+00:00."
        ) from error


def _without_password(metadata: str | Mapping[str, Any]) -> Any:
    if isinstance(metadata, Mapping):
        return {key: "***" if key == "password" else value for key, value in metadata.items()}
    return _PASSWORD.sub(lambda found: f"{found[1] or found[3]}***{'@' if found[3] else ''}", metadata)
