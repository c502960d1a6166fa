"""The names in a query become tables and views of lakes, each lake at one snapshot, as temporary views of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

from dbt.adapters.ducklake.lake import NotFound, Snapshot, Table, View, fold
from dbt.adapters.ducklake.spark.query import (
    Rows,
    Spark,
    columns_of_view,
    is_plain_view,
    one_value,
    run_query,
    show_as,
)
from dbt.adapters.ducklake.spark.scan import scan
from dbt.adapters.ducklake.spark.session import CATALOGS, FILES
from dbt.adapters.ducklake.statements.doors import refuse, refuse_in_text
from dbt.adapters.ducklake.statements.errors import NameNotFound, NotAllowed
from dbt.adapters.ducklake.statements.functions import rows_of_function
from dbt.adapters.ducklake.statements.moment import at_moment, now
from dbt.adapters.ducklake.statements.names import QueryNames, TableUse, Travel, names_in, place_in, quoted, replaced
from dbt.adapters.ducklake.statements.raw_text import holds_bytes, may_make_bytes
from dbt.adapters.ducklake.statements.scopes import Located
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession
from dbt.adapters.ducklake.statements.staged import table_as_staged
from dbt.adapters.ducklake.statements.translation.views import query_of_view

# `parquet.`/path`` and its like are Spark's own, as are its global temporary views.
_SPARKS_OWN = frozenset({"parquet", "csv", "json", "text", "orc", "avro", "delta", "binaryfile", "xml", "global_temp"})
_DEEPEST = 64
_NONE: Mapping[int, str] = {}


@dataclass
class Reading:
    """What one statement reads: each lake at the snapshot that it had when it was first asked for."""

    session: LakeSession
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    # What the names of temporary views end with, where this is not the present.
    suffix: str = ""
    # The tables of the present that were read, by their lakes, and whether it is not known what else was.
    tables: set[tuple[str, int]] = field(default_factory=set)
    is_open: bool = False
    # The time of a statement that takes several queries; None if Spark's own will do.
    moment: int | None = None
    # Whether Spark's own temporary views go before tables, as they do for the code of Python models.
    sees_views: bool = False
    # Whether all text that was read, and that the queries make of it, is UTF-8.
    has_valid_text: bool = True
    # The temporary views whose queries are being read.
    views: tuple[str, ...] = ()

    @contextmanager
    def inside(self, view: str) -> Iterator[None]:
        if fold(view) in self.views:
            raise NotAllowed(f"read {view}", "the temporary view reads itself", f"Through: {', '.join(self.views)}.")
        outside, self.views = self.views, (*self.views, fold(view))
        try:
            yield
        finally:
            self.views = outside

    def of(self, lake_name: str) -> Snapshot:
        key = fold(lake_name)
        if key not in self.snapshots:
            self.snapshots[key] = self.session.lake(lake_name).snapshot()
        return self.snapshots[key]

    def may_have_read(self, lake_name: str, table: Table) -> bool:
        return self.is_open or (fold(lake_name), table.id) in self.tables


@contextmanager
def reading(session: LakeSession, has_one_time: bool = False) -> Iterator[Reading]:
    """Read what a statement needs of its lake's metadata in one go: a file is opened once.

    With `has_one_time` all queries of the statement see the same time.
    """
    found = Reading(session, moment=now() if has_one_time else None)
    with session.lake(session.lake_name).reading() as snapshot:
        found.snapshots[fold(session.lake_name)] = snapshot
        yield found


def bound(found: Reading, spark: Spark, sql: str, own: Mapping[int, str] = _NONE) -> str:
    """The query's text with temporary views in place of the lakes' tables and views, which are made for it.

    `own` are views that the caller made, by where in the text the names stand that they replace.
    """
    refuse_in_text(found.session, sql)
    return _bound(found, spark, sql, _home(found.session), (), own)[0]


def rows_of(found: Reading, spark: Spark, sql: str, own: Mapping[int, str] = _NONE) -> Rows:
    """The rows of a query, bound as by `bound`, at the time of the statement."""
    refuse_in_text(found.session, sql)
    return _rows(found, spark, sql, _home(found.session), (), own)


def _rows(
    found: Reading, spark: Spark, sql: str, home: LakeName, within: tuple[str, ...], own: Mapping[int, str] = _NONE
) -> Rows:
    text, tables = _bound(found, spark, sql, home, within, own)
    if found.moment is None:
        return run_query(spark, text)
    at_that_time = at_moment(text, found.moment, lambda name: any(_may_have(one, name) for one in tables.values()))
    if at_that_time == text:
        return run_query(spark, text)
    # A column without an alias is named by its text.
    return run_query(spark, at_that_time).toDF(*run_query(spark, text).columns)


def _may_have(table: Located, column: str) -> bool:
    columns = table.columns()
    return columns is None or column in columns


def tables_in(found: Reading, spark: Spark, sql: str, names: QueryNames) -> dict[int, Located]:
    """What the names of tables in a query mean that was bound before, by where they begin."""
    home = _home(found.session)
    views = {use.start: _view_for(found, spark, sql, use, home, ()) for use in names.tables}
    return {use.start: _located(found.session, spark, use, views[use.start], home) for use in names.tables}


def _home(session: LakeSession) -> LakeName:
    """Where names without a schema are looked for."""
    return LakeName(session.lake_name, session.schema, "")


def _bound(
    found: Reading, spark: Spark, sql: str, home: LakeName, within: tuple[str, ...], own: Mapping[int, str] = _NONE
) -> tuple[str, dict[int, Located]]:
    names = names_in(sql)
    found.has_valid_text &= not (may_make_bytes(sql) or found.session.has_functions)
    if not names.is_certain and CATALOGS in found.session.closed:
        raise NotAllowed(
            "run a query that is not wholly understood here",
            "this target is `strict`, and not all names in it may be seen",
            f"Write it in plainer SQL, or let who keeps the profile allow it: strict_allows: [{CATALOGS}].",
        )
    views, tables = {}, {}
    for use in names.tables:
        view = own.get(use.start) or _view_for(found, spark, sql, use, home, within)
        if view is not None:
            views[use.start] = quoted(view)
        tables[use.start] = _located(found.session, spark, use, view, home)
    return replaced(sql, names, views, tables), tables


def _located(session: LakeSession, spark: Spark, use: TableUse, view: str | None, home: LakeName) -> Located:
    """What a use names. A name that is Spark's own keeps its parts, and only that of a temporary view has columns that
    are known."""
    parts = tuple(map(fold, use.name.parts))
    if view is None and len(parts) > 1:
        return Located(parts, lambda: None)
    if view is not None and use.arguments is None:
        written, parts = parts, tuple(map(fold, session.parts_of(use.name, home)))
        return Located(parts, cache(lambda: columns_of_view(spark, view)), written if len(written) > 1 else ())
    return Located(parts, cache(lambda: columns_of_view(spark, view or use.own_name)))


def _view_for(
    found: Reading, spark: Spark, sql: str, use: TableUse, home: LakeName, within: tuple[str, ...]
) -> str | None:
    """The temporary view for a use, None where the name is Spark's own."""
    if use.arguments is not None:
        found.is_open, found.has_valid_text = True, False
        return _function_view(found, spark, sql, use)
    name = _whole(found, spark, use, home, within)
    if found.sees_views and not within and len(use.name.parts) == 1 and is_plain_view(spark, use.name.parts[0]):
        name = None
    if name is None:
        query = found.session.temporary.get(fold(use.name.parts[0])) if len(use.name.parts) == 1 else None
        if query is not None and not within:
            with found.inside(use.name.parts[0]):
                show_as(_rows(found, spark, query, _home(found.session), ()), use.name.parts[0])
        if query is None and not (len(use.name.parts) == 1 and fold(use.name.parts[0]) in found.session.temporary):
            is_of_files = fold(use.name.parts[0]) in _SPARKS_OWN - {"global_temp"}
            refuse(found.session, FILES if is_of_files else CATALOGS, place_in(sql, use))
        # Rows that were put in Spark's sight elsewhere, such as by a Python model, may be of any table.
        found.is_open |= query is None and len(use.name.parts) == 1
        found.has_valid_text &= query is not None
        return None
    try:
        snapshot = _snapshot_of(found, spark, name, use.travel)
        there = snapshot.find(name.schema, name.name)
        if there is None:
            snapshot.table(name.schema, name.name)
    except NotFound as error:
        raise NameNotFound(str(error), place_in(sql, use)) from error
    assert there is not None
    found.has_valid_text &= isinstance(there, View) or not holds_bytes(there)
    if not use.travel:
        found.tables.add((fold(name.lake), there.id))
    view = f"{_view_name(name)}@{snapshot.id}" if use.travel else f"{_view_name(name)}{found.suffix}"
    then = found
    if use.travel:
        then = Reading(found.session, {fold(name.lake): snapshot}, f"@{snapshot.id}", moment=found.moment)
    if isinstance(there, Table) and not use.travel:
        there = table_as_staged(found.session, name, snapshot, there)
    # By the snapshot as it was read, which may have other files after a compaction, and the columns that are staged.
    key = (snapshot, there)
    # A view may read other lakes, whose snapshots its own lake's does not tell.
    if isinstance(there, View) or found.session.shown.get(view) != key:
        show_as(_rows_of(then, spark, snapshot, there, name, within), view)
        found.session.shown[view] = key
    found.has_valid_text &= then.has_valid_text
    return view


def _view_name(name: LakeName) -> str:
    """A name of its own for each table: parts with dots in them are told from parts with dots between."""
    return ".".join(f'"{part}"' if set(part) & set('.@"') else part for part in name.parts)


def is_of_lake(found: Reading, spark: Spark, use: TableUse, home: str) -> bool:
    """Whether a name is a lake's by what it begins with. Spark's own catalogs go before schemas of their names."""
    session, name = found.session, use.name
    if len(name.parts) < 3 or session.begins_with_lake(name):
        return True
    first = name.parts[0]
    if not session.lake(home).nests_schemas or session.is_catalog(first):
        return False
    # One that is not there, below one that is, is missed by the lake and not by Spark.
    snapshots = [found.of(home)]
    if use.travel is not None:
        snapshots.append(_snapshot_of(found, spark, LakeName(home, "", ""), use.travel))
    return any(snapshot.schema_at((first,)) is not None for snapshot in snapshots)


def _whole(found: Reading, spark: Spark, use: TableUse, home: LakeName, within: tuple[str, ...]) -> LakeName | None:
    session, parts = found.session, use.name.parts
    # A stored view means the same to everyone, whatever temporary views a session has.
    if len(parts) == 1 and not within and fold(parts[0]) in session.temporary:
        return None
    is_sparks = len(parts) == 2 and fold(parts[0]) in _SPARKS_OWN
    if is_sparks and session.lake(home.lake).snapshot().find_schema(parts[0]) is None:
        return None
    # What a view names by three parts or more was in another lake when it was made.
    is_lakes = session.begins_with_lake(use.name) if within else is_of_lake(found, spark, use, home.lake)
    return meant_by(found, spark, use, home) if is_lakes or len(parts) < 3 else None


def meant_by(found: Reading, spark: Spark, use: TableUse, home: LakeName) -> LakeName:
    """The table of a lake that a use means, by the schemas of the snapshot that it is read at."""

    def at(lake: str) -> Snapshot:
        return _snapshot_of(found, spark, LakeName(lake, "", ""), use.travel)

    return found.session.whole_at(use.name, home, at)


def _snapshot_of(found: Reading, spark: Spark, name: LakeName, travel: Travel | None) -> Snapshot:
    if travel is None:
        return found.of(name.lake)
    lake = found.session.lake(name.lake)
    if travel.is_version:
        return lake.snapshot(version=_version(travel))
    return lake.snapshot(time=_moment(spark, travel))


def _version(travel: Travel) -> int:
    text = travel.expression.strip("'\"")
    if not text.isdecimal():
        raise NotAllowed("read VERSION AS OF", f"{travel.expression} is no snapshot", "A snapshot is a whole number.")
    return int(text)


def _moment(spark: Spark, travel: Travel) -> datetime:
    """The moment, evaluated as Spark does, in the session's time zone."""
    micros = one_value(spark, f"SELECT unix_micros(CAST({travel.expression} AS TIMESTAMP))")
    if not isinstance(micros, int):
        raise NotAllowed("read TIMESTAMP AS OF", f"{travel.expression} is NULL", "Give a moment.")
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _rows_of(
    found: Reading, spark: Spark, snapshot: Snapshot, there: Table | View, name: LakeName, within: tuple[str, ...]
) -> Rows:
    if isinstance(there, View):
        return _rows_of_view(found, spark, snapshot, there, name, within)
    _warn_of_nanoseconds(found.session, there)
    storage = found.session.storage(found.session.lake(name.lake))
    committed = snapshot.table(name.schema, name.name)
    files = snapshot.files(committed)
    files = files if there == committed else files.under(committed, there, snapshot.id)
    return scan(spark, storage, there, files, snapshot.id)


def _warn_of_nanoseconds(session: LakeSession, table: Table) -> None:
    names = [
        column.name for column in table.columns if any(leaf.type.name == "timestamp_ns" for leaf in column.leaves())
    ]
    if names and table.named.uuid not in session.warned:
        session.warned.add(table.named.uuid)
        session.warn(f"{', '.join(names)} of {table}: Spark cuts the nanoseconds off and reads microseconds.")


def _rows_of_view(
    found: Reading, spark: Spark, snapshot: Snapshot, view: View, name: LakeName, within: tuple[str, ...]
) -> Rows:
    if str(name) in within or len(within) > _DEEPEST:
        raise NotAllowed(f"read {name}", "the view reads itself", f"Through: {', '.join(within)}.")
    sql = query_of_view(snapshot, view, name.lake)
    refuse_in_text(found.session, sql)
    home = LakeName(name.lake, found.session.exact_schema(name.lake, view.schema.parts), "")
    return _rows(found, spark, sql, home, (*within, str(name)))


def _function_view(found: Reading, spark: Spark, sql: str, use: TableUse) -> str:
    rows = rows_of_function(found, spark, sql, use)
    view = f"{use.own_name}({use.arguments})"
    show_as(rows, view)
    return view
