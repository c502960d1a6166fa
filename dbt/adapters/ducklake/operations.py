"""What macros, hooks and operations ask beyond dbt's own materialisations: tenants, maintenance, other times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from typing import Any

from dbt.adapters.base import BaseRelation, available
from dbt.adapters.sql import SQLAdapter

from dbt.adapters.ducklake import maintenance, time_travel
from dbt.adapters.ducklake.connections import DuckLakeConnectionManager
from dbt.adapters.ducklake.errors import OURS, as_dbt
from dbt.adapters.ducklake.lake import (
    InvalidDescription,
    Lake,
    LakeDescription,
    Tenant,
    create_tenant,
    drop_tenant,
    fold,
    migrate_lake,
    protect_tenant,
    tenants,
)
from dbt.adapters.ducklake.row_checks import check_promises
from dbt.adapters.ducklake.statements.maintenance.rows import check_rows
from dbt.adapters.ducklake.statements.session import LakeSession


class LakeOperations(SQLAdapter):
    connections: DuckLakeConnectionManager

    @contextmanager
    def _session(self) -> Iterator[LakeSession]:
        with self._translated():
            yield self.connections.handle_for_node().session

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OURS as error:
            raise as_dbt(error) from error

    def _lake(self, database: str | None) -> Lake:
        with self._session() as session:
            return session.lake(_unquoted(database) or session.lake_name)

    # Tenants.

    @available.parse(lambda *a, **k: {})
    def create_tenant(self, name: str) -> dict[str, Any]:
        with self._translated():
            return _plain(create_tenant(self._described(), name))

    @available.parse(lambda *a, **k: {})
    def drop_tenant(self, name: str) -> dict[str, Any]:
        with self._translated():
            return _plain(drop_tenant(self._described(), name))

    @available.parse(lambda *a, **k: None)
    def protect_tenant(self, role: str, name: str | None) -> None:
        with self._translated():
            protect_tenant(self._described(), role, name)

    @available.parse(lambda *a, **k: [])
    def tenants(self) -> list[dict[str, Any]]:
        with self._translated():
            return [_plain(tenant) for tenant in tenants(self._described())]

    def _described(self) -> LakeDescription:
        """The target's own lake, which is not opened."""
        return self.config.credentials.descriptions()[0][1]  # type: ignore[no-any-return]

    @available.parse(lambda *a, **k: [])
    def migrate_lake(self, dry_run: bool, database: str | None) -> list[str]:
        """What each step of a lake's migration did; of the target's own lake where none is named."""
        lakes = self.config.credentials.descriptions()
        name = _unquoted(database) or lakes[0][0]
        described = next((one for known, one in lakes if fold(known) == fold(name)), None)
        with self._translated():
            if described is None:
                raise InvalidDescription(f"There is no lake {name}.", "Name one of the target's.")
            steps = migrate_lake(described, dry_run)
        return [f"{step.before} to {step.after}: {'; '.join(step.did) or 'the version'}" for step in steps]

    # Maintenance.

    @available
    def compact_statement(self, relation: BaseRelation | str, model: Mapping[str, Any]) -> str:
        """What a post-hook compacts a relation with, by its model's `compaction`; nothing where that is false."""
        policy = maintenance.policy_of(model.get("config") or {}, str(relation))
        home = self.config.credentials.database, self.config.credentials.schema
        with self._translated():
            return "" if policy is None else maintenance.compact_statement(relation, home, policy)

    @available
    def maintenance_call(self, procedure: str, database: str | None, arguments: Mapping[str, Any]) -> str:
        """One of DuckLake's procedures as a statement; of the target's own lake where none is named."""
        return maintenance.call(procedure, database or self.config.credentials.database, arguments)

    @available.parse(lambda *a, **k: [])
    def maintenance_steps(
        self, database: str | None, models: Sequence[Mapping[str, Any]], older_than: str | None, orphans: bool
    ) -> list[maintenance.Step]:
        """What there is to do to a lake, by the policies of these models."""
        name = database or self.config.credentials.database
        policies = {
            fold(f"{model['schema']}.{model['alias']}"): maintenance.policy_of(model["config"], model["alias"])
            for model in models
            if fold(str(model["database"])) == fold(name)
        }
        with self._translated():
            return list(maintenance.steps(self._lake(name), name, policies, older_than, orphans))

    @available.parse(lambda *a, **k: {})
    def lake_report(
        self, database: str | None, orphans: bool, nodes: Sequence[Mapping[str, Any]] | None = None
    ) -> dict[str, Any]:
        """With `nodes`, the models and snapshots of the project, its rows are looked at too."""
        with self._session() as session:
            name = _unquoted(database) or session.lake_name
            found = maintenance.report(session, session.lake(name), orphans)
            if nodes is not None:
                rows = chain(check_rows(session, name), check_promises(session, name, nodes))
                found["rows"] = [asdict(one) for one in rows]
            return found

    @available.parse(lambda *a, **k: [])
    def report_lines(self, report: Mapping[str, Any]) -> list[str]:
        return maintenance.shown(report)

    # Other times.

    @available
    def relation_at(self, relation: BaseRelation | str, version: object = None, timestamp: object = None) -> str:
        with self._translated():
            return time_travel.at(relation, version, timestamp)

    @available
    def rollback_statement(self, relation: BaseRelation | str, version: object, timestamp: object) -> str:
        with self._translated():
            return time_travel.rollback(relation, version, timestamp)

    @available.parse(lambda *a, **k: "")
    def relation_changes(self, relation: BaseRelation | str, start: object, end: object = None) -> str:
        """The change feed of a relation; without an end, up to the newest snapshot."""
        home = self.config.credentials.database, self.config.credentials.schema
        with self._translated():
            last = self.snapshot_id(time_travel.lake_of(relation)) if end is None else end
            return time_travel.changes(relation, home, start, last)

    @available.parse(lambda *a, **k: 0)
    def snapshot_id(self, database: str | None = None) -> int:
        """The newest snapshot of a lake; of the target's own where none is named."""
        with self._translated():
            return int(self._lake(database).snapshot().id)


def _unquoted(database: str | None) -> str:
    """dbt quotes the databases whose schemas it lists."""
    return (database or "").strip("`").replace("``", "`")


def _plain(tenant: Tenant) -> dict[str, Any]:
    return {**asdict(tenant), "uuid": str(tenant.uuid)}
