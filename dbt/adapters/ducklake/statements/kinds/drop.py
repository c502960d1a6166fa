"""DROP TABLE, VIEW and SCHEMA; TRUNCATE; RENAME lives with ALTER."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.ducklake.lake import Table, View, fold
from dbt.adapters.ducklake.spark.query import forget
from dbt.adapters.ducklake.statements.again import again_where_others_were_faster
from dbt.adapters.ducklake.statements.changing import Target, changed
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import quoted
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.writing import can_end, table_named, writing


@dataclass(frozen=True)
class Drop:
    """`kind` is TABLE, VIEW or SCHEMA."""

    kind: str
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Truncate:
    name: Name


def read_drop(reader: Reader) -> Drop:
    reader.accept("TEMPORARY")
    kind = next((word for word in ("TABLE", "VIEW", "SCHEMA", "DATABASE") if reader.accept(word)), None)
    if kind is None:
        raise reader.unexpected("DROP takes TABLE, VIEW or SCHEMA.")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    cascade = reader.accept("CASCADE")
    _ = reader.accept("RESTRICT") or reader.accept("PURGE")
    reader.finish()
    return Drop("SCHEMA" if kind == "DATABASE" else kind, name, if_exists, cascade)


def read_truncate(reader: Reader) -> Truncate:
    reader.accept("TABLE")
    statement = Truncate(reader.name())
    reader.finish()
    return statement


def run_drop(session: LakeSession, statement: Drop) -> Outcome:
    code = f"DROP {statement.kind}"
    if statement.kind == "SCHEMA":
        return _drop_schema(session, statement)
    if _is_temporary(session, statement.name):
        forget(session.spark.session(), statement.name.parts[0])
        session.temporary.pop(fold(statement.name.parts[0]), None)
        return Outcome(code)
    name = session.whole(statement.name)
    lake = session.lake(name.lake)
    with writing(session, lake) as found:
        there = found.transaction.find(name.schema, name.name)
        if there is None and statement.if_exists:
            return Outcome(code)
        if isinstance(there, Table if statement.kind == "VIEW" else View):
            kind = "table" if isinstance(there, Table) else "view"
            raise NotAllowed(code.lower(), f"{name} is a {kind}", f"Use DROP {kind.upper()}.", statement.name.place)
        drop = found.transaction.drop_table if statement.kind == "TABLE" else found.transaction.drop_view
        drop(name.schema, name.name)
    return Outcome(code, snapshot=found.snapshot)


def run_truncate(session: LakeSession, statement: Truncate) -> Outcome:
    return again_where_others_were_faster(session, statement.name, lambda: _truncate(session, statement))


def _truncate(session: LakeSession, statement: Truncate) -> Outcome:
    name = session.whole(statement.name)
    lake = session.lake(name.lake)
    with lake.reading() as base:
        table = table_named(lake.transaction(base), name, "truncate", statement.name)
        files = base.files(table)
    if not can_end(files):
        target = Target(statement.name, ".".join(map(quoted, statement.name.parts)), statement.name.parts[-1])
        return changed(session, "TRUNCATE", target, None, "delete", lambda _: {})
    with writing(session, lake, base) as found:
        rows = found.remove_all(table)
        is_change = bool(found.transaction.changes)
    return Outcome("TRUNCATE", rows_affected=rows, snapshot=found.snapshot if is_change else None)


def _drop_schema(session: LakeSession, statement: Drop) -> Outcome:
    lake_name, schema = session.schema_named(statement.name)
    lake = session.lake(lake_name)
    if statement.if_exists and lake.snapshot().find_schema(schema) is None:
        return Outcome("DROP SCHEMA")
    with writing(session, lake) as found:
        found.transaction.drop_schema(schema, statement.cascade)
    return Outcome("DROP SCHEMA", snapshot=found.snapshot)


def _is_temporary(session: LakeSession, name: Name) -> bool:
    return len(name.parts) == 1 and fold(name.parts[0]) in session.temporary
