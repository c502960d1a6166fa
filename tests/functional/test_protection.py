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
from dbt.adapters.ducklake.lake.errors import ChangeRefused
from tests.conftest import drop_schemas


class Place:
    """Metadata of one layout in a schema of their own, and roles that are dropped after the test."""

    def __init__(self, url: str, folder: Path, *, is_shared: bool) -> None:
        self.schema, self.is_shared = f"protected_{uuid.uuid4().hex[:8]}", is_shared
        self.description = LakeDescription(f"postgres:{url}", data_path=str(folder), metadata_schema=self.schema)
        self.tenant = "acme" if is_shared else None
        self._url = url
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

    def isolation(self, role: str) -> str:
        parts = urlsplit(self._url)
        url = urlunsplit(parts._replace(netloc=f"{role}:@{parts.netloc.rpartition('@')[2]}"))
        with connect(replace(self.description, metadata=f"postgres:{url}", catalog=self.tenant)) as lake:
            return lake.isolation()

    def close(self) -> None:
        for role in self.roles:
            self.run(f'REASSIGN OWNED BY "{role}" TO CURRENT_USER; DROP OWNED BY "{role}"')
        drop_schemas(self._url, [self.schema])
        for role in self.roles:
            self.run(f'DROP ROLE "{role}"')


@pytest.fixture(params=[True, False], ids=["shared", "schema"])
def place(request: pytest.FixtureRequest, postgres: str, tmp_path: Path) -> Iterator[Place]:
    found = Place(postgres, tmp_path, is_shared=request.param)
    yield found
    found.close()


@pytest.mark.parametrize("rights", ["SUPERUSER", "BYPASSRLS"])
def test_a_role_that_sees_everything(place: Place, rights: str) -> None:
    with pytest.raises(ChangeRefused, match=r"it sees everything\. Name another role, or a new one"):
        place.protect(place.role("strong", rights))


@pytest.mark.parametrize("inherits", ["INHERIT", "NOINHERIT"])
def test_a_member_of_the_owner(place: Place, inherits: str) -> None:
    owner, role = place.role("owner"), place.role("member", inherits)
    place.run(f'ALTER TABLE "{place.schema}".ducklake_table OWNER TO "{owner}"; GRANT "{owner}" TO "{role}"')
    with pytest.raises(ChangeRefused, match=f"it may act as {owner}, which owns these metadata"):
        place.protect(role)


@pytest.mark.parametrize("power", ["pg_read_all_data", "pg_execute_server_program"])
def test_a_member_of_the_server_s_own_powers(place: Place, power: str) -> None:
    role = place.role("member")
    place.run(f'GRANT {power} TO "{role}"')
    with pytest.raises(ChangeRefused, match=f"it may act as {power}, which sees everything"):
        place.protect(role)


def test_an_owner_of_shared_metadata(place: Place) -> None:
    role = place.role("owner")
    place.run(f'ALTER TABLE "{place.schema}".ducklake_table OWNER TO "{role}"')
    if place.is_shared:
        with pytest.raises(ChangeRefused, match="it owns these metadata"):
            place.protect(role)
    else:
        # Nobody else's are there.
        place.protect(role)


def test_a_member_of_another_tenant_s_role(place: Place) -> None:
    if not place.is_shared:
        pytest.skip("a schema holds one tenant")
    ours, theirs = place.role("acme"), place.role("globex")
    place.protect(theirs, "globex")
    place.run(f'GRANT "{theirs}" TO "{ours}"')
    with pytest.raises(ChangeRefused, match=f"it may act as {theirs}, which is another tenant's role"):
        place.protect(ours)


def test_a_harmless_group_is_no_reason(place: Place) -> None:
    group, role = place.role("group"), place.role("member", "LOGIN")
    place.run(f'GRANT "{group}" TO "{role}"')
    place.protect(role)
    place.protect(role)
    assert place.isolation(role).startswith(f"PostgreSQL: role {role} ")
    place.run(f'GRANT pg_read_all_data TO "{group}"')
    found = "is not held, as it may act as pg_read_all_data, which sees everything"
    assert place.isolation(role) == f"dbt-ducklake alone: role {role} {found}"
