"""What a profile may say, and what is said of one that is wrong: before anything is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.credentials import DuckLakeCredentials
from dbt.adapters.ducklake.spark.session import DOORS

OWN = {"metadata": "duckdb:own.ducklake"}
HELD = {"metadata": "duckdb:s3://bucket/all.ducklake", "metadata_put": "end"}


def profile(given: Mapping[str, Any]) -> DuckLakeCredentials:
    target = DuckLakeCredentials.translate_aliases({"schema": "main", **given})
    DuckLakeCredentials.validate(target)
    return DuckLakeCredentials.from_dict(target)


def wrong() -> Iterator[Any]:
    def case(name: str, given: Mapping[str, Any], said: str) -> Any:
        return pytest.param(given, said, id=name)

    def attached(**lake: Any) -> dict[str, Any]:
        return {**OWN, "attach": [lake]}

    yield case("no metadata", {}, r"no `metadata`\. Say where the lake's metadata are: duckdb:PATH, sqlite:PATH or")
    yield case("kind", {"metadata": "mysql:x"}, r"Lake lake of the profile: `metadata` must begin with duckdb:")
    yield case("motherduck", {"metadata": "md:x"}, "MotherDuck")
    yield case("two moments", {**OWN, "snapshot_version": 1, "snapshot_time": "2026-01-31 12:00:00+00:00"}, "are both")
    yield case("moment", {**OWN, "snapshot_time": "yesterday"}, r"'yesterday'\. Write it as 2026-01-31 12:00:00\+00:00")
    yield case("zone", {**OWN, "snapshot_time": "2026-01-31 12:00:00"}, "has no time zone")
    yield case("inlining", {**OWN, "data_inlining_row_limit": -1}, "a number of rows, 0 for none")
    yield case("put", {**OWN, "metadata_put": "never"}, r"'never'\. It takes commit or end")
    yield case("spark's key", {**OWN, "spark": {"host": "x"}}, r"has host\. It takes master, remote, app_name, config")
    encrypting = {"config": {"spark.hadoop.parquet.crypto.factory.class": "x"}}
    yield case("encryption", {**OWN, "spark": encrypting}, "cannot open the files that Spark encrypts")
    yield case("two sparks", {**OWN, "spark": {"master": "local", "remote": "sc://x"}}, "both `master` and `remote`")
    yield case("door", {**OWN, "strict_allows": ["doors"]}, rf"'doors'\. It takes {', '.join(DOORS)}")
    yield case("no name", attached(metadata="duckdb:b"), r"`attach` has no `name`: metadata")
    yield case(
        "key of a lake", attached(name="b", path="duckdb:b"), r"Lake b of `attach` has path\. It takes name, met"
    )
    yield case("no metadata there", attached(name="b"), "Lake b of the profile: ")
    yield case("twice", attached(name="LAKE", metadata="duckdb:b"), r"Two lakes of the profile are called LAKE\. Give")
    held = [{"name": "two", "metadata": HELD["metadata"], "metadata_schema": "two"}]
    yield case(
        "held by itself", {**HELD, "attach": held}, r"Lakes lake and two .* in one metadata file, s3://bucket/al"
    )


@pytest.mark.parametrize(("given", "said"), list(wrong()))
def test_a_wrong_profile_is_told_what_to_do(given: dict[str, Any], said: str) -> None:
    with pytest.raises(DbtRuntimeError, match=said):
        profile(given)


@pytest.mark.parametrize(
    "more",
    [
        {"read_only": True}, {"snapshot_version": 3}, {"metadata": "duckdb:s3://bucket/b"},
        {"metadata_options": {"endpoint_url": "http://elsewhere"}},
    ],
)  # fmt: skip
def test_a_file_that_is_held_to_the_end_is_no_matter_to_other_lakes(more: dict[str, Any]) -> None:
    found = profile({**HELD, "attach": [{"name": "two", "metadata": HELD["metadata"], **more}]}).descriptions()
    assert [name for name, _ in found] == ["lake", "two"]


def test_each_lake_has_what_its_entry_says_and_else_the_defaults() -> None:
    attach = [{"name": "b", "metadata": "sqlite:b", "data_path": "/b", "data_inlining_row_limit": 7, "read_only": True}]
    own = {**OWN, "data_path": "/a", "retries": 3, "busy_timeout": 2.5, "snapshot_time": "2026-01-31 12:00:00+00:00"}
    (_, lake), (name, other) = profile({**own, "attach": attach}).descriptions()
    assert name == "b"
    assert (lake.kind, lake.place, lake.data_path, lake.read_only) == ("duckdb", "own.ducklake", "/a", False)
    assert (other.kind, other.place, other.data_path, other.read_only) == ("sqlite", "b", "/b", True)
    assert (lake.data_inlining_row_limit, other.data_inlining_row_limit) == (0, 7)
    assert (lake.snapshot_time, other.snapshot_time) == (datetime(2026, 1, 31, 12, tzinfo=UTC), None)
    assert lake.patience == other.patience
    assert (lake.patience.attempts, lake.busy_timeout, other.busy_timeout) == (3, 2.5, 2.5)


def test_dbt_duckdb_s_and_the_extension_s_names_are_understood() -> None:
    found = profile({"ducklake": "ducklake:sqlite:own.db", "lake": "shop"})
    assert [(name, one.kind, one.place) for name, one in found.descriptions()] == [("shop", "sqlite", "own.db")]


@pytest.mark.parametrize(
    "metadata",
    [
        "postgres:host=h user=u password=s3cret dbname=d", "postgres:host=h password='s3cret \\' s3cret' dbname=d",
        "postgres://u:s3cret@h/d", "postgres:postgresql://u:s3cret@s3cret@h/d",
        {"type": "postgres", "host": "h", "user": "u", "password": "s3cret", "dbname": "d"},
    ],
)  # fmt: skip
def test_what_dbt_prints_has_no_password(metadata: Any) -> None:
    attach = [{"name": "b", "metadata": metadata, "metadata_options": {"secret": "s3cret"}}]
    found = profile({"metadata": metadata, "attach": attach, "spark": {"config": {"spark.x.secret": "s3cret"}}})
    assert "s3cret" not in str(dict(found.connection_info())) + found.unique_field
    assert dict(found.connection_info())["attach"] == ["b"]


def test_strict_closes_what_is_not_allowed() -> None:
    assert not profile(OWN).spark_settings().closed
    assert profile({**OWN, "strict": True}).spark_settings().closed == frozenset(DOORS)
    some = profile({**OWN, "strict": True, "strict_allows": ["files", "java"]}).spark_settings()
    assert some.closed == frozenset(DOORS) - {"files", "java"}


def test_spark_s_settings_are_text() -> None:
    config = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 8}
    found = profile({**OWN, "spark": {"master": "local[4]", "config": config}}).spark_settings()
    assert (found.master, found.config) == (
        "local[4]", {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"},
    )  # fmt: skip


@pytest.mark.parametrize("given", ["1.0", 1.0])
def test_a_version_may_be_a_number(given: object) -> None:
    attach = [
        {"name": "b", "metadata": "sqlite:b", "data_path": "/b", "ducklake_version": 1.1, "automatic_migration": True}
    ]
    (_, own), (_, other) = profile({**OWN, "ducklake_version": given, "attach": attach}).descriptions()
    assert (own.ducklake_version, own.wanted_version, own.automatic_migration) == ("1.0", "1.0", False)
    assert (other.ducklake_version, other.automatic_migration) == ("1.1", True)


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(DbtRuntimeError, match=r"`ducklake_version` is '0\.4'\. It takes 1\.0 or 1\.1"):
        profile({**OWN, "ducklake_version": 0.4})
