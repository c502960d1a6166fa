"""A role of PostgreSQL for each tenant, so that the database itself keeps the others' metadata from it.

In shared metadata by row-level security: a policy on each table shows a role the rows of its tenant. With a schema for
each tenant by the schema's privileges. Where files lie, only the storage's own credentials keep tenants apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.ducklake.lake.backends.base import CommitBroken
from dbt.adapters.ducklake.lake.description import LakeDescription
from dbt.adapters.ducklake.lake.errors import ChangeRefused, MetadataQueryFailed, TenantNotFound
from dbt.adapters.ducklake.lake.metadata import COUNTERS, LINEAGE, TENANTS, Metadata, MetadataSession
from dbt.adapters.ducklake.lake.names import TableId, quoted
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import rows_table_of
from dbt.adapters.ducklake.lake.spec.layout import SNAPSHOT_IDS, shared
from dbt.adapters.ducklake.lake.spec.tables import TABLES
from dbt.adapters.ducklake.lake.tenants import Tenant, of_all, refuse_not_shared, tenants_in
from dbt.adapters.ducklake.lake.transaction.commit import in_attempts

ROLES = "ducklake_tenant_role"
_OWN = "ducklake_own_tenant"
_POLICY, _NEXT, _ONCE = "of_the_tenant", "ducklake_snapshot_is_next", "ducklake_snapshot_lineage_once"
# By how much one commit may move a counter.
_MOST = 10_000_000
_SNAPSHOT = f"ducklake_{TABLES[tables.Snapshot]}"


def protect_tenant(description: LakeDescription, role: str, tenant: str | None = None) -> None:
    """Let a role of PostgreSQL, which is made where it is not there, see a tenant and no other: the one of that name
    in shared metadata, else the one whose metadata the description's `metadata_schema` holds."""
    with of_all(description) as metadata:
        if description.kind != "postgres":
            found = f"{metadata.backend.name} has no roles"
            raise ChangeRefused(f"protect tenant {tenant or ''}", found, "Keep its metadata in PostgreSQL.")
        if tenant is None:
            metadata.backend.prepare()

        def work(session: MetadataSession) -> None:
            _make_role(session, metadata, role, is_shared=tenant is not None)
            if tenant is None:
                _give_schema(session, description.metadata_schema or "public", role)
            else:
                refuse_not_shared(session, metadata)
                _give_rows(session, metadata, role, _chosen(session, metadata, tenant))

        try:
            in_attempts(metadata, description.patience, work)
        except CommitBroken as error:
            found = "the connection broke, so whether it is done is unknown; it can be asked again without harm"
            raise MetadataQueryFailed(metadata.backend.name, found) from error


def _chosen(session: MetadataSession, metadata: Metadata, name: str) -> Tenant:
    there = tenants_in(session)
    tenant = next((one for one in there if one.name == name), None)
    if tenant is None:
        raise TenantNotFound(metadata.backend.name, name)
    if tenant.parent is not None or any(one.parent == tenant.id for one in there):
        found = "it was forked or has forks, and a role that sees one of them knows nothing of files that both read"
        raise ChangeRefused(f"protect tenant {name}", found, "Copy its tables to a tenant of its own.")
    return tenant


# What a role may become: whatever it is a member of, also where it does not inherit; itself first.
_ABOVE = """
    SELECT oid, rolname, rolsuper OR rolbypassrls OR rolreplication
        OR rolcreaterole AND current_setting('server_version_num')::int < 160000
        OR rolname IN ('pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
            'pg_execute_server_program') AS sees_all
    FROM pg_roles WHERE pg_has_role($1, oid, 'MEMBER') ORDER BY rolname <> $1, rolname
"""
# Who has what in a schema: as an owner or by default, and by grants. A policy holds only what its own role was granted.
_HOLDERS = """
    SELECT holder, is_held FROM (SELECT oid FROM pg_namespace WHERE nspname = $1) AS place, LATERAL (
        SELECT nspowner, false FROM pg_namespace WHERE oid = place.oid
        UNION ALL SELECT relowner, false FROM pg_class WHERE relnamespace = place.oid
        UNION ALL SELECT proowner, false FROM pg_proc WHERE pronamespace = place.oid
        UNION ALL SELECT a.grantee, false FROM pg_default_acl, aclexplode(defaclacl) AS a
            WHERE defaclnamespace IN (place.oid, 0)
        UNION ALL SELECT a.grantee, true FROM pg_class, aclexplode(relacl) AS a WHERE relnamespace = place.oid
        UNION ALL SELECT a.grantee, true FROM pg_proc, aclexplode(proacl) AS a WHERE pronamespace = place.oid
    ) AS found(holder, is_held)
"""
# Metadata of other lakes that a role may read as what it may become.
_READERS = f"""
    SELECT above.rolname, n.nspname FROM ({_ABOVE}) AS above, pg_class AS c JOIN pg_namespace AS n
        ON n.oid = c.relnamespace
    WHERE c.relname = 'ducklake_metadata' AND n.nspname <> $2 AND has_schema_privilege(above.oid, n.oid, 'USAGE')
        AND has_table_privilege(above.oid, c.oid, 'SELECT')
"""


def _unheld(session: MetadataSession, metadata: Metadata, role: str, *, is_shared: bool) -> str | None:
    """Why neither policies nor privileges hold a role, None if they do."""
    above = session.run(_ABOVE, role)
    for _, name, sees_all in above:
        if sees_all:
            return f"{_as(name, role)} sees everything"
    if is_shared:
        holders = set(session.run(_HOLDERS, metadata.backend.schema))
        for id, name, _ in above:
            if (id, False) in holders or (name != role and (id, True) in holders):
                return f"{_as(name, role)} has rights to these metadata that no policy holds"
        return None
    for name, schema in session.run(_READERS, role, metadata.backend.schema):
        if name != role:
            return f"{_as(name, role)} may read the metadata in schema {schema}"
    return None


def _as(name: str, role: str) -> str:
    return "it" if name == role else f"it may act as {name}, which"


def _make_role(session: MetadataSession, metadata: Metadata, role: str, *, is_shared: bool) -> None:
    if not session.run("SELECT 1 FROM pg_roles WHERE rolname = $1", role):
        # Without a password nobody can connect as it yet, unless the server's own rules let them.
        session.run(f"CREATE ROLE {quoted(role)} LOGIN")
    elif (found := _unheld(session, metadata, role, is_shared=is_shared)) is not None:
        raise ChangeRefused(f"protect a tenant by role {role}", found, "Name another role, or a new one.")


def _give_schema(session: MetadataSession, schema: str, role: str) -> None:
    if schema == "public":
        raise ChangeRefused(f"protect a tenant by role {role}", "its metadata are in the schema public",
                            "Give each tenant a `metadata_schema` of its own.")  # fmt: skip
    if session.has_table(TENANTS):
        raise ChangeRefused(f"protect a tenant by role {role}", f"tenants share the metadata in schema {schema}",
                            "Say which tenant: name.")  # fmt: skip
    schema, role = quoted(schema), quoted(role)
    session.run(f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC")
    session.run(f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}")
    for kind in ("TABLES", "SEQUENCES"):
        session.run(f"REVOKE ALL ON ALL {kind} IN SCHEMA {schema} FROM PUBLIC")
        session.run(f"GRANT ALL ON ALL {kind} IN SCHEMA {schema} TO {role}")
        session.run(f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT ALL ON {kind} TO {role}")


def _give_rows(session: MetadataSession, metadata: Metadata, role: str, tenant: Tenant) -> None:
    _make_policies(session, metadata)
    others = session.run_on(
        ROLES, "SELECT role_name FROM {table} JOIN pg_roles ON rolname = role_name "
        "WHERE role_name <> $1 AND catalog_id <> $2 AND pg_has_role(oid, $1, 'MEMBER')", role, tenant.id,
    )  # fmt: skip
    if others:
        raise ChangeRefused(f"protect tenant {tenant.name} by role {role}", f"{others[0][0]}, which is another "
                            "tenant's role, may act as it", "Name another role, or a new one.")  # fmt: skip
    session.run_on(ROLES, "DELETE FROM {table} WHERE role_name = $1", role)
    session.run_on(ROLES, "INSERT INTO {table} VALUES ($1, $2)", role, tenant.id)
    named = metadata.backend.qualified
    schema = named("").rpartition(".")[0]
    # Nothing of what it may have had: not TRUNCATE, which no policy keeps from rows, nor a table of its own making.
    session.run(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC, {quoted(role)}")
    session.run(f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {quoted(role)}")
    session.run(f"GRANT USAGE ON SCHEMA {schema} TO {quoted(role)}")
    session.run(f"GRANT SELECT ON {named('ducklake_metadata')}, {named(TENANTS)} TO {quoted(role)}")
    session.run(f"GRANT USAGE ON SEQUENCE {named(SNAPSHOT_IDS)} TO {quoted(role)}")
    for function in (f"{named(_OWN)}()", f"{named(COUNTERS)}()", f"{named(_NEXT)}(bigint, bigint, bigint, bigint)"):
        session.run(f"GRANT EXECUTE ON FUNCTION {function} TO {quoted(role)}")
    layout = shared(tenant.id, "")
    of_tenants = [f"ducklake_{name}" for of, name in TABLES.items() if layout.has(of) and layout.scope(of)]
    own = session.through(layout).read(tables.InlinedDataTables)
    inlined = [
        row.table_name for row in own if row.table_name == rows_table_of(TableId(row.table_id), row.schema_version)
    ]
    for name in (*of_tenants, *inlined):
        session.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {named(name)} TO {quoted(role)}")
    # UPDATE for LOCK TABLE alone: no policy lets it change a row.
    session.run(f"GRANT SELECT, INSERT, UPDATE ON {named(LINEAGE)} TO {quoted(role)}")
    session.run(f"GRANT SELECT, INSERT, DELETE ON {named(_SNAPSHOT)} TO {quoted(role)}")


def _make_policies(session: MetadataSession, metadata: Metadata) -> None:
    """What holds for all roles. Asked again it changes nothing."""
    named = metadata.backend.qualified
    session.run(f"CREATE TABLE IF NOT EXISTS {named(ROLES)} (role_name text PRIMARY KEY, catalog_id bigint NOT NULL)")
    session.run(
        f"CREATE OR REPLACE FUNCTION {named(_OWN)}() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER "
        f"SET search_path = pg_catalog AS $$ SELECT catalog_id FROM {named(ROLES)} WHERE role_name = session_user $$"
    )
    # Ids go on over all tenants, whose snapshots a role does not see.
    session.run(
        f"CREATE OR REPLACE FUNCTION {named(COUNTERS)}(OUT bigint, OUT bigint, OUT bigint, OUT bigint) LANGUAGE sql "
        "STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$ SELECT max(snapshot_id), max(schema_version), "
        f"max(next_catalog_id), max(next_file_id) FROM {named(_SNAPSHOT)} "
        f"WHERE snapshot_id > (SELECT max(snapshot_id) FROM {named(_SNAPSHOT)}) - 1000 $$"
    )
    # An id of the sequence that is no other's, and counters that go on: from them the others' next ids are made.
    session.run(
        f"CREATE OR REPLACE FUNCTION {named(_NEXT)}(id bigint, version bigint, catalog bigint, file bigint) "
        "RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$ "
        f"SELECT id <= (SELECT last_value FROM {named(SNAPSHOT_IDS)}) AND version BETWEEN v AND v + {_MOST} "
        f"AND catalog BETWEEN c AND c + {_MOST} AND file BETWEEN f AND f + {_MOST} "
        f"FROM {named(COUNTERS)}() AS before(i, v, c, f) $$"
    )
    for function in (f"{named(_OWN)}()", f"{named(COUNTERS)}()", f"{named(_NEXT)}(bigint, bigint, bigint, bigint)"):
        session.run(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
    layout = shared(0, "")
    # Once for each statement, not for each row.
    own = f"catalog_id = (SELECT {named(_OWN)}())"
    for row_class, name in TABLES.items():
        if layout.has(row_class) and layout.scope(row_class):
            _make_policy(session, named(f"ducklake_{name}"), own)
    # Whose a snapshot is, is said once.
    session.run(f"CREATE UNIQUE INDEX IF NOT EXISTS {_ONCE} ON {named(LINEAGE)} (snapshot_id)")
    _make_policy(session, named(LINEAGE), own, {"SELECT": own, "INSERT": own})
    # Of its forks too: what it needs no more, they may read.
    forks = f"parent_catalog_{own.removeprefix('catalog_')}"
    _make_policy(session, named(TENANTS), own, {"SELECT": f"{own} OR {forks}"})
    seen = f"EXISTS (SELECT 1 FROM {named(LINEAGE)} AS l WHERE l.snapshot_id = {_SNAPSHOT}.snapshot_id AND l.{own})"
    counters = "snapshot_id, schema_version, next_catalog_id, next_file_id"
    is_next = f"{seen} AND {named(_NEXT)}({counters})"
    _make_policy(session, named(_SNAPSHOT), seen, {"SELECT": seen, "INSERT": is_next, "DELETE": seen})


def _make_policy(session: MetadataSession, table: str, seen: str, of: Mapping[str, str] | None = None) -> None:
    """Which rows of a table a role reads and writes; `of` says it of some commands, and no other is allowed then."""
    session.run(f"REVOKE ALL ON {table} FROM PUBLIC")
    session.run(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    for command in ("ALL", "SELECT", "INSERT", "DELETE"):
        session.run(f"DROP POLICY IF EXISTS {_POLICY}_{command.lower()} ON {table}")
    for command, condition in (of or {"ALL": seen}).items():
        uses = "" if command == "INSERT" else f" USING ({condition})"
        checks = f" WITH CHECK ({condition})" if command in ("ALL", "INSERT") else ""
        session.run(f"CREATE POLICY {_POLICY}_{command.lower()} ON {table} FOR {command}{uses}{checks}")


def isolation(metadata: Metadata) -> str:
    """What keeps this lake's metadata from those of others, for people."""
    if metadata.backend.kind != "postgres":
        return (
            "dbt-ducklake alone: whoever opens the file sees all tenants" if metadata.layout.is_shared else "its file"
        )
    with metadata.reading() as session:
        # Not as which role it acts at the moment: it can lay that down.
        role = session.run("SELECT session_user")[0][0]
        if (found := _unheld(session, metadata, role, is_shared=metadata.layout.is_shared)) is not None:
            return f"dbt-ducklake alone: role {role} is not held, as {found}"
        if metadata.layout.is_shared:
            table = metadata.backend.qualified(f"ducklake_{TABLES[tables.Table]}")
            if session.run("SELECT row_security_active($1)", table)[0][0]:
                return f"PostgreSQL: role {role} sees the rows of this tenant alone"
            return f"dbt-ducklake alone: role {role} sees the rows of all tenants"
        others = {schema for _, schema in session.run(_READERS, role, metadata.backend.schema)}
    if others:
        return f"dbt-ducklake alone: role {role} may read the metadata of {len(others)} other lakes in this database"
    return f"PostgreSQL: role {role} may read the metadata of no other lake in this database"
