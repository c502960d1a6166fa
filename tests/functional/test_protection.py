"""Only a role that PostgreSQL holds to one tenant's metadata protects it; one that may become more is refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from dbt.adapters.ducklake.lake import LakeDescription, connect, create_tenant, protect_tenant
from dbt.adapters.ducklake.lake.errors import ChangeRefused, TenantNotFound
from tests.conftest import drop_schemas


class Place:
    """Metadata of one layout in a schema of their own, and roles that are dropped after the test."""

    def __init__(self, url: str, folder: Path, *, is_shared: bool) -> None:
        self.schema, self.is_shared = f"protected_{uuid.uuid4().hex[:8]}", is_shared
        self.description = LakeDescription(f"postgres:{url}", data_path=str(folder), metadata_schema=self.schema)
        self.tenant = "acme" if is_shared else None
        self._url, self._folder = url, folder
        self._schemas = [self.schema]
        self.roles: list[str] = []
        if is_shared:
            create_tenant(self.description, "acme")
            create_tenant(self.description, "globex")
        else:
            connect(self.description).close()

    def role(self, name: str, rights: str = "") -> str:
        self.roles.append(f"{self.schema}_{name}")
        self.run(f'CREATE ROLE "{self.roles[-1]}" {rights}')
        return self.roles[-1]

    def run(self, sql: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(sql)

    def protect(self, role: str, tenant: str | None = None) -> None:
        protect_tenant(self.description, role, tenant or self.tenant)

    def beside(self) -> Place:
        """Another tenant's metadata in a schema of their own."""
        found = Place(self._url, self._folder / "beside", is_shared=False)
        self._schemas.append(found.schema)
        return found

    def made_by(self, operator: str) -> LakeDescription:
        """Metadata of the same layout in a schema that a role owns, who makes them."""
        self._schemas.append(f"{self.schema}_own")
        self.run(f'CREATE SCHEMA "{self._schemas[-1]}" AUTHORIZATION "{operator}"')
        made = replace(
            self.description, metadata=f"postgres:{self._url_of(operator)}", metadata_schema=self._schemas[-1]
        )
        if self.is_shared:
            create_tenant(made, "acme")
        else:
            connect(made).close()
        return made

    def isolation(self, role: str, more: str = "", of: LakeDescription | None = None) -> str:
        url = self._url_of(role)
        url += more if "?" not in url else more.replace("?", "&")
        with connect(replace(of or self.description, metadata=f"postgres:{url}", catalog=self.tenant)) as lake:
            return lake.isolation()

    def _url_of(self, role: str) -> str:
        parts = urlsplit(self._url)
        return urlunsplit(parts._replace(netloc=f"{role}:@{parts.netloc.rpartition('@')[2]}"))

    def close(self) -> None:
        for role in self.roles:
            self.run(f'REASSIGN OWNED BY "{role}" TO CURRENT_USER; DROP OWNED BY "{role}"')
        drop_schemas(self._url, self._schemas)
        for role in self.roles:
            self.run(f'DROP ROLE "{role}"')


@pytest.fixture(params=[True, False], ids=["shared", "schema"])
def place(request: pytest.FixtureRequest, postgres: str, tmp_path: Path) -> Iterator[Place]:
    found = Place(postgres, tmp_path, is_shared=request.param)
    yield found
    found.close()


@pytest.mark.parametrize("rights", ["SUPERUSER", "BYPASSRLS", "REPLICATION"])
def test_a_role_that_sees_everything(place: Place, rights: str) -> None:
    with pytest.raises(ChangeRefused, match=r"it sees everything\. Name another role, or a new one"):
        place.protect(place.role("strong", rights))


@pytest.mark.parametrize("power", ["pg_read_all_data", "pg_execute_server_program"])
def test_a_member_of_the_server_s_own_powers(place: Place, power: str) -> None:
    role = place.role("member")
    place.run(f'GRANT {power} TO "{role}"')
    with pytest.raises(ChangeRefused, match=f"it may act as {power}, which sees everything"):
        place.protect(role)


@pytest.mark.parametrize(
    "given",
    [
        "ALTER TABLE {schema}.ducklake_table OWNER TO {group}",
        "ALTER TABLE {schema}.ducklake_inlined_data_tables OWNER TO {group}",
        "ALTER SCHEMA {schema} OWNER TO {group}",
        "CREATE FUNCTION {schema}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; "
        "ALTER FUNCTION {schema}.f() OWNER TO {group}",
        "GRANT TRUNCATE ON ALL TABLES IN SCHEMA {schema} TO {group}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {group}",
    ],
)
@pytest.mark.parametrize("inherits", ["INHERIT", "NOINHERIT"])
def test_a_member_of_a_group_with_rights(place: Place, given: str, inherits: str) -> None:
    group, role = place.role("group"), place.role("member", f"LOGIN {inherits}")
    place.run(f'GRANT "{group}" TO "{role}"')
    place.run(given.format(schema=f'"{place.schema}"', group=f'"{group}"'))
    if not place.is_shared:
        # Nobody else's are there.
        place.protect(role)
        assert place.isolation(role).startswith(f"PostgreSQL: role {role} ")
        return
    found = f"it may act as {group}, which has rights to these metadata that no policy holds"
    with pytest.raises(ChangeRefused, match=found):
        place.protect(role)


def test_an_owner_of_shared_metadata(place: Place) -> None:
    role = place.role("owner")
    place.run(f'ALTER TABLE "{place.schema}".ducklake_table OWNER TO "{role}"')
    if place.is_shared:
        with pytest.raises(ChangeRefused, match="it has rights to these metadata that no policy holds"):
            place.protect(role)
    else:
        place.protect(role)


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_a_member_of_another_tenant_s_role(place: Place, when: str) -> None:
    ours, theirs = place.role("acme", "LOGIN NOINHERIT"), place.role("globex")
    other = place if place.is_shared else place.beside()

    def become() -> None:
        place.run(f'GRANT "{theirs}" TO "{ours}"')

    if when == "before":
        become()
        place.protect(ours)
        if place.is_shared:
            with pytest.raises(ChangeRefused, match=f"{ours}, which is another tenant's role, may act as it"):
                other.protect(theirs, "globex")
            return
    other.protect(theirs, "globex" if place.is_shared else None)
    found = f"it may act as {theirs}, which "
    if when == "between":
        become()
        with pytest.raises(ChangeRefused, match=found):
            place.protect(ours)
        return
    if when == "after":
        place.protect(ours)
        assert place.isolation(ours).startswith(f"PostgreSQL: role {ours} ")
        become()
    assert place.isolation(ours).startswith(f"dbt-ducklake alone: role {ours} is not held, as {found}")


def test_a_role_that_is_laid_down_holds_nothing(place: Place) -> None:
    login, role = place.role("login", "LOGIN"), place.role("acme")
    place.run(f'GRANT "{role}" TO "{login}"; GRANT pg_read_all_data TO "{login}"')
    place.protect(role)
    if place.is_shared:
        # Policies go by who connected.
        with pytest.raises(TenantNotFound):
            place.isolation(login, f"?options=-crole%3D{role}")
        return
    assert place.isolation(login, f"?options=-crole%3D{role}").startswith(f"dbt-ducklake alone: role {login} is not")


def test_a_harmless_group_is_no_reason(place: Place) -> None:
    group, role = place.role("group"), place.role("member", "LOGIN")
    place.run(f'GRANT "{group}" TO "{role}"')
    place.protect(role)
    place.protect(role)
    assert place.isolation(role).startswith(f"PostgreSQL: role {role} ")
    place.run(f'GRANT pg_read_all_data TO "{group}"')
    found = "is not held, as it may act as pg_read_all_data, which sees everything"
    assert place.isolation(role) == f"dbt-ducklake alone: role {role} {found}"


def test_an_operator_need_not_be_a_superuser(place: Place) -> None:
    """As on servers that somebody else runs."""
    operator = place.role("operator", "LOGIN CREATEROLE")
    made, role = place.made_by(operator), f"{place.schema}_made"
    for _ in range(2):
        protect_tenant(made, role, place.tenant)
    place.roles.append(role)
    assert place.isolation(role, of=made).startswith(f"PostgreSQL: role {role} ")
