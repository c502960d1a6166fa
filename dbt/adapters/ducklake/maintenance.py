"""Maintenance as dbt's macros ask for it: a model's policy as a statement, the steps of a whole lake, and a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from dbt.adapters.base import BaseRelation
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.lake import Lake, fold
from dbt.adapters.ducklake.spark.schema import quoted, string_literal
from dbt.adapters.ducklake.statements.maintenance.cleaning import remove_orphans, usually_before
from dbt.adapters.ducklake.statements.maintenance.policy import Policy
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.time_travel import parts_of, three_parts

_SETTINGS = tuple(field.name for field in fields(Policy))


@dataclass(frozen=True)
class Step:
    """One thing to do to a lake; dbt's macros read these by name."""

    label: str
    statement: str


def policy_of(config: Mapping[str, Any], asked: str) -> Policy | None:
    """The `compaction` of a model's settings; None where it says false."""
    given = config.get("compaction")
    if given is None or given is True:
        return Policy()
    if given is False:
        return None
    if not isinstance(given, Mapping) or (unknown := [name for name in given if name not in _SETTINGS]):
        found = f"{unknown[0]!r}" if isinstance(given, Mapping) else repr(given)
        raise DbtRuntimeError(
            f"`compaction` of {asked} has {found}. It takes true, false, or some of: {', '.join(_SETTINGS)}."
        )
    return Policy(**{name: _number(name, value, asked) for name, value in given.items()})


def _number(name: str, value: Any, asked: str) -> Any:
    if value is None and name.startswith("max_"):
        return None
    is_share = name == "deleted_share"
    is_number = isinstance(value, int | float if is_share else int) and not isinstance(value, bool)
    if not is_number or (not 0 <= value <= 1 if is_share else value < 1):
        wanted = "a share between 0 and 1" if is_share else "a whole number from 1 on"
        raise DbtRuntimeError(f"`compaction` of {asked} has {name}: {value!r}. It takes {wanted}.")
    return value


def compact_statement(relation: BaseRelation | str, home: tuple[str, str], policy: Policy) -> str:
    """The statement that does to a table what it needs."""
    lake, schema, table = three_parts(parts_of(relation), home)
    given = {
        name: value for name, value in asdict(policy).items() if value is not None and value != getattr(Policy(), name)
    }
    named = "".join(f", {name} => {value}" for name, value in given.items())
    named = f", schema => {string_literal(schema)}{named}"
    return f"CALL ducklake_compact({string_literal(lake)}, {string_literal(table)}{named})"


def call(procedure: str, lake: str, arguments: Mapping[str, Any]) -> str:
    """A CALL with the arguments that are given."""
    named = "".join(f", {name} => {_literal(value)}" for name, value in arguments.items() if value is not None)
    return f"CALL {procedure}({string_literal(lake)}{named})"


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_literal, value))}]"
    return string_literal(str(value))


def steps(
    lake: Lake, name: str, policies: Mapping[str, Policy | None], older_than: str | None, orphans: bool
) -> Iterator[Step]:
    """What there is to do to a lake, in bounded steps. `policies` are those of models, by schema.name."""
    asked = {(one.small_file_size, one.deleted_share) for one in [Policy(), *policies.values()] if one is not None}
    counted = {sizes: lake.maintenance.table_health(*sizes) for sizes in sorted(asked)}
    for (small, share), tables in counted.items():
        for found in tables:
            policy = policies.get(fold(f"{found.schema}.{found.name}"), Policy())
            if policy and (policy.small_file_size, policy.deleted_share) == (small, share) and policy.is_due(found):
                statement = compact_statement(
                    f"{quoted(found.schema)}.{quoted(found.name)}", (name, found.schema), policy
                )
                yield Step(f"compact {found.schema}.{found.name}", statement)
    yield Step("expire snapshots", call("ducklake_expire_snapshots", name, {"older_than": older_than}))
    yield Step("remove files that no snapshot needs", call("ducklake_cleanup_old_files", name, {}))
    if orphans:
        yield Step("remove files that nobody knows", call("ducklake_delete_orphaned_files", name, {}))


def report(session: LakeSession, lake: Lake, orphans: bool) -> dict[str, Any]:
    """How a lake is, as JSON has it."""
    usual = Policy()
    health = lake.maintenance.health(usual.small_file_size, usual.deleted_share)
    return {
        "lake": lake.name,
        "snapshots": health.snapshots,
        "oldest_snapshot": health.oldest.isoformat() if health.oldest else None,
        "newest_snapshot": int(health.newest),
        "scheduled_files": health.scheduled_files,
        "scheduled_since": health.scheduled_since.isoformat() if health.scheduled_since else None,
        "leftover_tables": list(health.leftover_tables),
        "missing_indexes": lake.maintenance.missing_indexes(),
        "unreadable": list(health.unreadable),
        "orphans": len(remove_orphans(session, lake, usually_before(), dry_run=True)) if orphans else None,
        "tables": [
            {**asdict(one), "deleted_share": round(one.deleted_share, 4), "due": usual.is_due(one)}
            for one in health.tables
        ],
    }


def shown(found: Mapping[str, Any]) -> list[str]:
    """A report as lines for a terminal."""
    head = ("table", "files", "MiB", "rows", "small", "deletes", "deleted", "inlined", "")
    rows = [
        (
            f"{one['schema']}.{one['name']}", str(one["files"]), f"{one['size'] / 2**20:.1f}", str(one["rows"]),
            str(one["small_files"]), str(one["delete_files"]), f"{one['deleted_share']:.0%}", str(one["inlined_rows"]),
            "compact" if one["due"] else "",
        )
        for one in found["tables"]
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        " ".join(
            [
                row[0].ljust(widths[0]),
                *(text.rjust(width) for text, width in zip(row[1:-1], widths[1:-1], strict=True)),
                row[-1],
            ]
        ).rstrip()
        for row in (head, *rows)
    ]
    lines.append(f"{found['snapshots']} snapshots, the oldest of {found['oldest_snapshot']}")
    lines.append(
        f"{found['scheduled_files']} files wait for their removal"
        + (f" since {found['scheduled_since']}" if found["scheduled_since"] else "")
    )
    if found["orphans"] is not None:
        lines.append(f"{found['orphans']} files that nobody knows")
    for name, said in (
        ("leftover_tables", "inlined tables that nobody needs"),
        ("missing_indexes", "indexes that are missing"),
        ("unreadable", "what makes it unreadable"),
    ):
        if found[name]:
            lines.append(f"{said}: {'; '.join(found[name])}")
    if (faults := found.get("rows")) is not None:
        lines += [f"{one['table']}: {one['found']}. {one['repair']}" for one in faults]
        lines.append(f"{len(faults) or 'no'} faults in rows")
    return lines
