"""CREATE SCHEMA, and USE."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.ducklake.lake import exact_path
from dbt.adapters.ducklake.statements.again import again_at_once
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.writing import writing

_CODE = "CREATE SCHEMA"


@dataclass(frozen=True)
class CreateSchema:
    name: Name
    if_not_exists: bool = False


@dataclass(frozen=True)
class Use:
    name: Name


def read_create_schema(reader: Reader) -> CreateSchema:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    statement = CreateSchema(reader.name(), if_not_exists)
    reader.finish()
    return statement


def read_use(reader: Reader) -> Use:
    _ = reader.accept("SCHEMA") or reader.accept("DATABASE")
    statement = Use(reader.name())
    reader.finish()
    return statement


def run_create_schema(session: LakeSession, statement: CreateSchema) -> Outcome:
    lake_name, schema = session.schema_named(statement.name)
    lake = session.lake(lake_name)

    def once() -> Outcome:
        # Planned on the snapshot that was looked at: in the next the schema may be there.
        base = lake.snapshot()
        if statement.if_not_exists and base.find_schema(schema) is not None:
            return Outcome(_CODE)
        with writing(session, lake, base) as found:
            found.transaction.create_schema(schema)
        return Outcome(_CODE, snapshot=found.snapshot)

    # dbt makes its schemas side by side, and several may have to make the one that they lie in.
    return again_at_once(session, lake.description.patience.attempts, once)


def run_use(session: LakeSession, statement: Use) -> Outcome:
    lake_name, schema = session.schema_named(statement.name)
    lake = session.lake(lake_name)
    found = lake.snapshot().schema(schema)
    # Another schema of that spelling may come.
    session.lake_name, session.schema = lake_name, exact_path(found.parts) if lake.nests_schemas else found.name
    return Outcome("USE")
