"""DELETE FROM a table: rows go by delete files; a file whose rows all go is ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt.adapters.ducklake.statements.changing import (
    Target,
    changed,
    read_target,
    read_where,
)
from dbt.adapters.ducklake.statements.kinds.drop import Truncate, run_truncate
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.session import LakeSession


@dataclass(frozen=True)
class Delete:
    target: Target
    condition: str | None = None


def read_delete(reader: Reader) -> Delete:
    reader.expect("FROM")
    target = read_target(reader, "WHERE", "USING")
    if reader.sees("USING"):
        raise reader.unexpected("DELETE takes no USING here. Use MERGE INTO, or a subquery after WHERE.")
    return Delete(target, read_where(reader))


def run_delete(session: LakeSession, statement: Delete) -> Outcome:
    if statement.condition is None:
        return replace(run_truncate(session, Truncate(statement.target.name)), code="DELETE")
    return changed(session, "DELETE", statement.target, statement.condition, "delete", lambda _: {})
