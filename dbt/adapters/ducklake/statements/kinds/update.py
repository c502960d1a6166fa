"""UPDATE a table: the rows as they were go, and come again with new values and their old ids."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.ducklake.lake import Table
from dbt.adapters.ducklake.statements.changing import (
    Assignment,
    Target,
    assigned_values,
    changed,
    read_assignments,
    read_target,
    read_where,
)
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.session import LakeSession


@dataclass(frozen=True)
class Update:
    target: Target
    assignments: tuple[Assignment, ...]
    condition: str | None = None


def read_update(reader: Reader) -> Update:
    target = read_target(reader, "SET")
    reader.expect("SET")
    assignments = read_assignments(reader, "WHERE", "FROM")
    if reader.sees("FROM"):
        raise reader.unexpected("UPDATE takes no FROM here. Use MERGE INTO.")
    return Update(target, assignments, read_where(reader))


def run_update(session: LakeSession, statement: Update) -> Outcome:
    def values(table: Table) -> dict[int, str]:
        return assigned_values(table, statement.target, statement.assignments, f"update {statement.target.name}")

    return changed(session, "UPDATE", statement.target, statement.condition, "update", values)
