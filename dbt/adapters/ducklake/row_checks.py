"""What models and snapshots of a project promise of their rows, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.ducklake.incremental_config import Key, keys_of_config
from dbt.adapters.ducklake.lake import Table, fold
from dbt.adapters.ducklake.spark.errors import SparkRoomError
from dbt.adapters.ducklake.spark.query import fetched
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.maintenance.rows import Finding
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession

# A row that came back after longer was deleted in between.
_LONGEST_GAP = "10 MINUTES"


@dataclass(frozen=True)
class Check:
    """`sql` counts what is wrong."""

    table: str
    sql: str
    found: str
    repair: str


def check_promises(session: LakeSession, lake: str, nodes: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    snapshot = session.lake(lake).snapshot()
    for node in nodes:
        there = snapshot.find(node["schema"], node["alias"])
        if fold(str(node["database"])) != fold(lake) or not isinstance(there, Table):
            continue
        for check in _checks(node):
            try:
                rows = run(session, check.sql).rows
                count = fetched(rows)[0][0] if rows is not None else 0
            except (StatementError, SparkRoomError) as error:
                yield Finding(check.table, f"it cannot be checked: {error}", "Correct `unique_key` of the model.")
                continue
            if count:
                yield Finding(check.table, check.found.format(count), check.repair)


def _checks(node: Mapping[str, Any]) -> Iterator[Check]:
    config = node["config"]
    keys = keys_of_config(config)
    if not keys:
        return
    name = f"{node['schema']}.{node['alias']}"
    table = ".".join(map(quoted, (node["database"], node["schema"], node["alias"])))
    if config["materialized"] == "incremental" and (config.get("incremental_strategy") or "merge") == "merge":
        yield _twice(name, table, keys, bool(config.get("null_safe_keys")), str(node["name"]))
    elif config["materialized"] == "snapshot":
        yield from _of_snapshot(name, table, keys, config.get("snapshot_meta_column_names") or {})


def _twice(name: str, table: str, keys: Sequence[Key], null_safe: bool, model: str) -> Check:
    listed = ", ".join(map(_sql, keys))
    known = "" if null_safe else f" WHERE {' AND '.join(f'{_sql(key)} IS NOT NULL' for key in keys)}"
    return Check(
        name,
        f"SELECT count(*) FROM (SELECT 1 AS one FROM {table}{known} GROUP BY {listed} HAVING count(*) > 1)",
        f"{{}} keys ({listed}) stand there more than once",
        f"dbt run --full-refresh --select {model}; where its sources are gone, INSERT INTO {table} REPLACE USING "
        f"({listed}) SELECT the one row of each that is right.",
    )


def _of_snapshot(name: str, table: str, keys: Sequence[Key], names: Mapping[str, str]) -> Iterator[Check]:
    begin, end = (quoted(names.get(one) or one) for one in ("dbt_valid_from", "dbt_valid_to"))
    order = f"(PARTITION BY {', '.join(map(_sql, keys))} ORDER BY {begin})"
    versions = (
        f"SELECT {begin} AS begins, lag({end}) OVER {order} AS before, row_number() OVER {order} AS place FROM {table}"
    )
    yield Check(
        name,
        f"SELECT count(*) FROM ({versions}) WHERE begins > before AND begins <= before + INTERVAL {_LONGEST_GAP}",
        "{} versions begin some seconds after the one before them ended; between, the row is not valid",
        f"MERGE INTO {table} setting {end} of each such version to the {begin} of the next one.",
    )
    yield Check(
        name,
        f"SELECT count(*) FROM ({versions}) WHERE place > 1 AND (begins < before OR before IS NULL)",
        "{} versions begin before the one before them ended",
        f"MERGE INTO {table} setting {end} of each such earlier version to the {begin} of the next one.",
    )


def _sql(key: Key) -> str:
    return quoted(key.column) if key.column is not None else key.text
