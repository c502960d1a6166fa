"""Ways to get at another tenant's data, each tried from a strict session of a tenant: on both layouts, with a role of
PostgreSQL that keeps tenants apart and without.

Whatever an attempt says or does, nothing of the other tenant's may be in it, and all that is the other's stays as it
is.
`pytest -s` prints the outcome of each.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from dbt.adapters.ducklake.errors import OURS
from dbt.adapters.ducklake.lake import Lake, LakeDescription, LakeError, connect, create_tenant, protect_tenant
from dbt.adapters.ducklake.spark.query import fetched
from dbt.adapters.ducklake.spark.session import DOORS, SparkHandle
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import drop_schemas, spark_settings
from tests.places import Place

# What only globex has: names, a value, and an option's value. No outcome of acme's may hold one.
SECRETS = ("treasure", "hidden", "ruby", "7654321")
NOT_THERE = r"is not in snapshot|There is no lake|is not in this lake"
STRICT = r"this target is `strict`"


@dataclass
class Tenants:
    """Acme's session, and what it is not to reach."""

    session: LakeSession
    others: Place
    other_file: str
    other_snapshot: int
    own_role: str | None

    def facts(self) -> dict[str, str]:
        folder = str(Path(self.other_file).parent)
        schema = str(self.others.schema)
        return {"file": self.other_file, "folder": folder, "version": str(self.other_snapshot), "schema": schema}


def description(url: str, folder: Path, mark: str, shared: bool, tenant: str, **more: Any) -> LakeDescription:
    if shared:
        given: dict[str, Any] = {"metadata_schema": f"isolation_{mark}", "catalog": tenant}
    else:
        given = {"metadata_schema": f"isolation_{mark}_{tenant}"}
    return LakeDescription(f"postgres:{url}", data_path=str(folder if shared else folder / tenant), **given, **more)


@pytest.fixture(scope="module", params=[(True, True), (True, False), (False, True), (False, False)],
                ids=["shared, role", "shared", "schemas, role", "schemas"])  # fmt: skip
def tenants(
    request: pytest.FixtureRequest, postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tenants]:
    shared, has_role = request.param
    folder = tmp_path_factory.mktemp("isolation")
    # Other processes test on the same server.
    mark = uuid.uuid4().hex[:8]
    if shared:
        operator = LakeDescription(f"postgres:{postgres}", data_path=str(folder), metadata_schema=f"isolation_{mark}")
        for name in ("globex", "acme"):
            create_tenant(operator, name)
    spark = SparkHandle(spark_settings(tmp_path_factory))
    with connect(description(postgres, folder, mark, shared, "globex")) as lake:
        theirs = LakeSession({"lake": lake}, "lake", "main", spark)
        run(theirs, "create schema hidden")
        run(theirs, "create table hidden.treasure as select 'ruby' as gem, 1 as id")
        run(theirs, "create table orders as select 'ruby' as gem, 7 as id")
        run(theirs, "create view hidden.treasures as select * from hidden.treasure")
        run(theirs, "delete from hidden.treasure where id = 2")
        run(theirs, "call ducklake_set_option('lake', 'target_file_size', 7654321)")
        snapshot = lake.snapshot()
        file = snapshot.files(snapshot.table("hidden", "treasure")).data_files[0].path
        other_snapshot = snapshot.id
    url, role = postgres, None
    with connect(description(postgres, folder, mark, shared, "acme")) as lake:
        run(LakeSession({"lake": lake}, "lake", "main", spark), "create table orders as select 'mine' as gem, 1 as id")
    if has_role:
        for name in ("acme", "globex"):
            own = description(postgres, folder, mark, False, name) if not shared else operator
            protect_tenant(own, f"isolation_{mark}_{name}_role", name if shared else None)
        parts, role = urlsplit(postgres), f"isolation_{mark}_acme_role"
        url = urlunsplit(parts._replace(netloc=f"{role}:@{parts.netloc.rpartition('@')[2]}"))
    # Only what is done to globex from here on is an attempt's.
    others = Place("postgres", folder, postgres, f"isolation_{mark}" if shared else f"isolation_{mark}_globex")
    strict = spark_settings(tmp_path_factory, closed=frozenset(DOORS))
    with connect(description(url, folder, mark, shared, "acme")) as lake:
        session = LakeSession({"lake": lake}, "lake", "main", SparkHandle(strict), closed=strict.closed)
        yield Tenants(session, others, file, other_snapshot, role)
        session.renew()
    schemas = [f"isolation_{mark}{end}" for end in ("", "_acme", "_globex")]
    drop_schemas(postgres, schemas)


# What is written, and what is said: an error's words, or None where it runs and finds nothing of another's.
ATTEMPTS: dict[str, str | None] = {
    # Names.
    "select * from hidden.treasure": NOT_THERE,
    "select * from lake.hidden.treasure": NOT_THERE,
    "select * from globex.hidden.treasure": STRICT,
    "select * from globex.main.orders": STRICT,
    "select * from `globex.hidden`.treasure": NOT_THERE,
    "select * from `lake.hidden.treasure`": NOT_THERE,
    "select * from `globex/hidden`.`treasure`": NOT_THERE,
    "select * from main.`../../globex/hidden/treasure`": NOT_THERE,
    "select * from main.`treasure' OR '1'='1`": NOT_THERE,
    'select * from `main"; select 1; --`.treasure': NOT_THERE,
    "select gem from orders": None,
    "select (select max(gem) from hidden.treasure) as g": NOT_THERE,
    "with orders as (select * from hidden.treasure) select * from orders": NOT_THERE,
    "select * from orders o where exists (select 1 from hidden.treasure t where t.id = o.id)": NOT_THERE,
    "select * from identifier('hidden.treasure')": STRICT,
    "select * from spark_catalog.default.treasure": STRICT,
    "select * from global_temp.treasure": STRICT,
    "select * from hidden.treasures": NOT_THERE,
    "select * from public.ducklake_table": NOT_THERE,
    "select * from {schema}.ducklake_catalog": NOT_THERE,
    "select * from ducklake_catalog": NOT_THERE,
    "table hidden.treasure": STRICT,
    "use globex": "not in snapshot|There is no|is not",
    "use globex.hidden": "There is no lake",
    # Time.
    "select * from orders version as of {version}": "was never there",
    "select * from hidden.treasure version as of {version}": "was never there",
    "select * from orders timestamp as of '2001-01-01'": "was never there",
    "select * from lake.main.orders version as of 0": "was never there|is not in snapshot",
    # What a lake says of itself.
    "select * from ducklake_snapshots('lake')": None,
    "select * from ducklake_snapshots('globex')": "There is no lake",
    "select * from ducklake_table_info('lake')": None,
    "select * from ducklake_table_info('globex')": "There is no lake",
    "select * from ducklake_options('lake')": None,
    "select * from ducklake_list_files('lake', 'treasure', schema => 'hidden')": NOT_THERE,
    "select * from ducklake_list_files('lake', 'orders', snapshot_version => {version})": NOT_THERE,
    "select * from ducklake_table_changes('lake', 'hidden', 'treasure', 0, 1000)": NOT_THERE,
    "select * from ducklake_table_insertions('lake', 'main', 'orders', 0, {version})": NOT_THERE,
    "select * from ducklake_table_deletions('globex', 'hidden', 'treasure', 0, {version})": "There is no lake",
    "show schemas": None,
    "show tables": None,
    "show tables in hidden": NOT_THERE,
    "show tables in globex.hidden": "There is no lake|not",
    "describe hidden.treasure": NOT_THERE,
    "describe extended lake.hidden.treasure": NOT_THERE,
    # Changes.
    "insert into hidden.treasure values ('x', 2)": NOT_THERE,
    "insert into globex.hidden.treasure values ('x', 2)": "There is no lake",
    "update hidden.treasure set gem = 'x'": NOT_THERE,
    "delete from hidden.treasure": NOT_THERE,
    "merge into hidden.treasure t using orders o on t.id = o.id when matched then delete": NOT_THERE,
    "merge into orders o using hidden.treasure t on t.id = o.id when matched then update set gem = t.gem": NOT_THERE,
    "insert into orders select gem, id from hidden.treasure": NOT_THERE,
    "create or replace table orders as select * from hidden.treasure": NOT_THERE,
    "truncate table hidden.treasure": NOT_THERE,
    "drop table hidden.treasure": NOT_THERE,
    "drop table if exists globex.hidden.treasure": "There is no lake",
    "drop schema hidden cascade": NOT_THERE,
    "drop schema globex cascade": NOT_THERE,
    "alter table hidden.treasure rename to mine": NOT_THERE,
    "alter table orders rename to globex.hidden.mine": "lake|name|not",
    "comment on table hidden.treasure is 'x'": NOT_THERE,
    "create schema `../globex`": None,
    # Other attempts may come after it and see this table, so no secret is in its name.
    "create table main.`../../../globex/main/orders` as select 1 as id": None,
    "create table globex.hidden.treasure2 as select 1 as id": "There is no lake",
    # Views and hooks of one's own.
    "create view v1 as select * from hidden.treasure": NOT_THERE,
    "create view v2 as select * from globex.hidden.treasure": "lake|strict",
    "create view v3 as select * from parquet.`{file}`": STRICT,
    "create temporary view v4 as select * from hidden.treasure": NOT_THERE,
    "create global temporary view v5 as select * from globex.main.orders": STRICT,
    # Maintenance.
    "call ducklake_expire_snapshots('lake', versions => [{version}])": None,
    "call ducklake_expire_snapshots('globex', older_than => '2100-01-01 00:00:00+00:00')": "There is no lake",
    "call ducklake_expire_snapshots('lake', older_than => '2100-01-01 00:00:00+00:00')": None,
    "call ducklake_cleanup_old_files('lake', cleanup_all => true)": None,
    "call ducklake_delete_orphaned_files('lake', cleanup_all => true)": None,
    "call ducklake_delete_orphaned_files('globex', cleanup_all => true)": "There is no lake",
    "call ducklake_merge_adjacent_files('globex')": "There is no lake",
    "call ducklake_merge_adjacent_files('lake', 'treasure', schema => 'hidden')": NOT_THERE,
    "call ducklake_rewrite_data_files('lake', 'treasure', schema => 'hidden')": NOT_THERE,
    "call ducklake_flush_inlined_data('globex')": "There is no lake",
    "call ducklake_compact('lake', 'treasure', schema => 'hidden')": NOT_THERE,
    "call ducklake_add_data_files('lake', 'orders', '{file}')": STRICT,
    "call ducklake_add_data_files('lake', 'orders', '{folder}/../treasure/*.parquet')": STRICT,
    "checkpoint globex": "There is no lake|not",
    # Options.
    "call ducklake_set_option('globex', 'target_file_size', 1)": "There is no lake",
    "call ducklake_set_option('lake', 'target_file_size', 1000, schema => 'hidden')": NOT_THERE,
    "call ducklake_set_option('lake', 'data_path', '{folder}')": "not an option",
    "call ducklake_set_option('lake', 'target_file_size', 1000000)": None,
    # Paths.
    "select * from parquet.`{file}`": STRICT,
    "select * from text.`{folder}`": STRICT,
    "select * from binaryFile.`{file}`": STRICT,
    "select * from read_files('{file}')": STRICT,
    "select * from read_files('{folder}', format => 'binaryFile')": STRICT,
    "select * from identifier('parquet.`{file}`')": STRICT,
    "create table x1 using parquet location '{folder}'": "ducklake|not supported",
    "create temporary view x2 using parquet options (path '{file}')": "expected|not supported|AS",
    "insert overwrite directory '{folder}' select 1": "not supported",
    "insert overwrite local directory '{folder}' using csv select 1": "not supported",
    "load data inpath '{file}' into table orders": "not supported",
    "alter table orders set location '{folder}'": "not supported",
    # Java, programs, settings.
    "select reflect('java.lang.System', 'getProperty', 'user.dir')": STRICT,
    "select java_method('java.nio.file.Files', 'readString', '{file}')": STRICT,
    "select `try_reflect`('java.lang.System', 'getenv', 'HOME')": STRICT,
    "select identifier('ref' || 'lect')('java.lang.System', 'getenv', 'HOME')": STRICT,
    "select transform(id) using 'cat {file}' as (x string) from orders": STRICT,
    "from orders map id using 'ls {folder}' as x": STRICT,
    "from orders reduce id using 'ls {folder}' as x": STRICT,
    "create temporary function f as 'org.apache.hadoop.hive.ql.udf.UDFLength' using jar '{file}'": STRICT,
    "add jar '{file}'": "not supported",
    "add file '{file}'": "not supported",
    "list files": "not supported",
    "set spark.sql.runSQLOnFiles = true": STRICT,
    "set spark.sql.variable.substitute = true": STRICT,
    "set spark.hadoop.fs.s3a.access.key": STRICT,
    "set": STRICT,
    "select '${{env:PATH}}' as v": None,
    "execute immediate 'select * from parquet.`{file}`'": "not supported",
    "begin select * from parquet.`{file}`; end": "not supported",
    "select 1; select * from hidden.treasure": NOT_THERE,
    "select transform(id) -- \\\n'\nusing \"cat {file}\" as (x string) from orders -- '": "ends in a backslash",
    "from orders -- \\\n'\ninsert overwrite directory \"{folder}\" using csv select * -- '": "ends in a backslash",
    "create temporary function f() returns string return (select max(a) from spark_catalog.default.t)": STRICT,
    "select g.* from orders o, spark_catalog.default.t g where o.id !< 0": STRICT,
    "call ducklake_add_data_files('lake', 'orders', 'FILE://{file}')": STRICT,
    "select /* /* */ * from parquet.`{file}` -- */": "strict|not|error|SYNTAX",
}


def metadata_of(place: Place, shared: bool) -> str:
    """All rows of globex's, hashed."""
    rows = place.tables()
    ids = {row["catalog_id"] for row in rows.get("ducklake_catalog", []) if row["catalog_name"] == "globex"}
    own = {
        name: [row for row in found if not shared or row.get("catalog_id") in ids]
        for name, found in rows.items()
        if shared is False or (found and "catalog_id" in found[0])
    }
    return hashlib.sha256(json.dumps(own, default=str, sort_keys=True).encode()).hexdigest()


def files_of(tenants: Tenants) -> dict[str, int]:
    folder = Path(tenants.others.folder) / "globex"
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("sql", ATTEMPTS, ids=range(len(ATTEMPTS)))
def test_nothing_of_another_tenants_is_reached(tenants: Tenants, sql: str) -> None:
    expected, facts = ATTEMPTS[sql], tenants.facts()
    shared = bool(tenants.session.lake("lake").is_shared)
    before = metadata_of(tenants.others, shared), files_of(tenants)
    text = sql.format(**facts)
    said = attempt(tenants.session, text)
    tenants.session.renew()
    print(f"\n{'shared' if shared else 'schemas'}, {'role' if tenants.own_role else 'no role'} | {sql} | {said[:160]}")
    told = said
    for word in (*facts.values(), text):
        # What was asked may be said again.
        told = told.replace(word, "")
    for word in words(text):
        told = told.replace(word, "")
    assert not [secret for secret in SECRETS if secret in told.lower()], said
    if expected is None:
        assert said.startswith("rows"), said
    else:
        assert said.startswith("error"), said
        assert re.search(expected, said), said
    assert (metadata_of(tenants.others, shared), files_of(tenants)) == before


def words(text: str) -> list[str]:
    """The names in an attempt, which its error may say again."""
    return [secret for secret in SECRETS if secret in text.lower()]


def attempt(session: LakeSession, sql: str) -> str:
    try:
        outcome = run(session, sql)
        rows = outcome.listing.rows if outcome.listing else [] if outcome.rows is None else fetched(outcome.rows)
        return f"rows {list(rows)}"
    except OURS as error:
        return f"error {error}"


NAMES = [
    "acme' OR '1'='1", 'acme" --', "acme; DROP SCHEMA", "../globex", "acme/../globex", "acme\0", "\uff21CME", "ACME",
    " acme", "acme ", "%", "glob_x", "acme\n", "", ".", "$1", "\\x61cme", "acme.globex", "0", "a" * 200,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_crafted_names_of_tenants_open_nothing(tenants: Tenants, name: str) -> None:
    own = tenants.session.lake("lake")
    if not own.is_shared:
        pytest.skip("a schema for each tenant has no names of tenants")
    with pytest.raises((LakeError, ValueError)) as caught:
        connect(_with(own, catalog=name))
    assert "globex" not in str(caught.value).replace(name, "")
    with suppress(LakeError, ValueError), connect(_with(own, catalog=name, create_if_not_exists=True)) as made:
        # A name like any other, and a role that may make tenants: it is a new one's.
        assert [schema.name for schema in made.snapshot().schemas()] == ["main"]
        assert not made.snapshot().tables("main")


def test_a_role_opens_no_other_tenant(tenants: Tenants) -> None:
    own = tenants.session.lake("lake")
    if tenants.own_role is None:
        assert own.isolation().startswith("dbt-ducklake alone")
        return
    assert own.isolation().startswith(f"PostgreSQL: role {tenants.own_role}")
    other = {"catalog": "globex"} if own.is_shared else {"metadata_schema": str(tenants.others.schema)}
    with pytest.raises(LakeError):
        connect(_with(own, **other)).snapshot().schemas()


def _with(lake: Lake, **more: Any) -> LakeDescription:
    return replace(lake.description, **more)
