"""Table functions in FROM: DuckLake's by their own names, for what a lake says of itself and its change feed, and
`read_files` for rows that are in no lake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from dbt.adapters.ducklake.lake import Column, ColumnType, Lake, Snapshot, SnapshotId, Table
from dbt.adapters.ducklake.spark.feed import Feed
from dbt.adapters.ducklake.spark.local_rows import dataframe_of
from dbt.adapters.ducklake.spark.query import Rows, Spark, rows_of_files
from dbt.adapters.ducklake.spark.session import FILES
from dbt.adapters.ducklake.statements.arguments import Arguments, read_arguments
from dbt.adapters.ducklake.statements.doors import refuse
from dbt.adapters.ducklake.statements.errors import NotAllowed, NotUnderstood
from dbt.adapters.ducklake.statements.names import TableUse, place_in
from dbt.adapters.ducklake.statements.session import LakeSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Read(Protocol):
    """What a statement reads: the session, and each lake at one snapshot."""

    session: LakeSession

    def of(self, lake_name: str) -> Snapshot: ...


def rows_of_function(found: Read, spark: Spark, sql: str, use: TableUse) -> Rows:
    name = use.own_name.lower()
    arguments = read_arguments(name, use.arguments or "", place_in(sql, use))
    if name in _FEEDS:
        return _feed(found, spark, arguments)
    if name == "read_files":
        refuse(found.session, FILES, place_in(sql, use))
        return _files(spark, arguments)
    function = _FUNCTIONS.get(name)
    if function is None:
        there = ", ".join(sorted([*_FUNCTIONS, *_FEEDS, "read_files"]))
        raise NotUnderstood(name, f"In FROM there are: {there}.", place_in(sql, use))
    columns, rows = function(found, arguments)
    return dataframe_of(spark, columns, rows)


def _files(spark: Spark, arguments: Arguments) -> Rows:
    """`read_files(location, format => 'csv', ...)`: the other arguments are the options of Spark's reader."""
    options = dict(arguments.named)
    location = arguments.positional[0] if len(arguments.positional) == 1 else options.pop("location", None)
    if not isinstance(location, str) or len(arguments.positional) > 1:
        raise NotAllowed(
            "call read_files", "it was given no location, or more than one value without a name",
            "Write read_files('path', format => 'csv', header => 'true').", arguments.place,
        )  # fmt: skip
    kind, schema = options.pop("format", None), options.pop("schema", None)
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    return rows_of_files(spark, location, str(kind or "parquet"), None if schema is None else str(schema), texts)


Result = tuple[Sequence[Column], Iterable[Sequence[Any]]]


def _lake(found: Read, arguments: Arguments, named: object) -> tuple[Lake, Snapshot]:
    if not isinstance(named, str):
        raise NotAllowed(f"call {arguments.function}", f"the lake is {named!r}", "Give its name as a string.")
    return found.session.lake(named, arguments.place), found.of(named)


def _snapshots(found: Read, arguments: Arguments) -> Result:
    lake, _ = _lake(found, arguments, arguments.taken("catalog", required=1)["catalog"])
    columns = _columns(
        "snapshot_id int64, snapshot_time timestamptz, schema_version int64, changes varchar, author varchar, "
        "commit_message varchar, commit_extra_info varchar"
    )
    rows = [
        (one.id, _micros(one.time), one.schema_version, one.changes, one.author, one.message, one.extra_info)
        for one in lake.snapshots()
    ]
    return columns, rows


def _current_snapshot(found: Read, arguments: Arguments) -> Result:
    _, snapshot = _lake(found, arguments, arguments.taken("catalog", required=1)["catalog"])
    return _columns("id int64"), [(snapshot.id,)]


def _table_info(found: Read, arguments: Arguments) -> Result:
    _, snapshot = _lake(found, arguments, arguments.taken("catalog", required=1)["catalog"])
    columns = _columns(
        "table_name varchar, schema_id int64, table_id int64, table_uuid uuid, file_count int64, "
        "file_size_bytes int64, delete_file_count int64, delete_file_size_bytes int64"
    )
    tables = (table for schema in snapshot.schemas() for table in snapshot.definitions(schema.name))
    return columns, [_info(snapshot, table) for table in tables]


def _info(snapshot: Snapshot, table: Table) -> tuple[Any, ...]:
    files = snapshot.files(table).data_files
    deletes = [file.delete_file for file in files if file.delete_file is not None]
    sizes = len(files), sum(file.size for file in files), len(deletes), sum(delete.size for delete in deletes)
    return (table.name, table.schema.id, table.id, table.named.uuid, *sizes)


def _list_files(found: Read, arguments: Arguments) -> Result:
    given = arguments.taken("catalog", "table_name", "schema", "snapshot_version", "snapshot_time", required=2)
    lake, snapshot = _lake(found, arguments, given["catalog"])
    if (version := given.get("snapshot_version")) is not None:
        snapshot = lake.snapshot(version=int(str(version)))
    elif (time := given.get("snapshot_time")) is not None:
        snapshot = lake.snapshot(time=_moment(arguments, time))
    table = snapshot.table(str(given.get("schema") or found.session.schema), str(given["table_name"]))
    columns = _columns(
        "data_file varchar, data_file_size_bytes int64, data_file_footer_size int64, data_file_encryption_key blob, "
        "delete_file varchar, delete_file_size_bytes int64, delete_file_footer_size int64, "
        "delete_file_encryption_key blob"
    )
    rows = []
    for file in snapshot.files(table).data_files:
        delete = file.delete_file
        of_delete = (delete.path, delete.size, delete.footer_size) if delete else (None, None, None)
        rows.append((file.path, file.size, file.footer_size, None, *of_delete, None))
    return columns, rows


def _options(found: Read, arguments: Arguments) -> Result:
    lake, _ = _lake(found, arguments, arguments.taken("catalog", required=1)["catalog"])
    rows = [
        (key, value, "GLOBAL" if scope is None else scope.upper(), scope_id)
        for (key, scope, scope_id), value in sorted(lake.options().values.items(), key=repr)
    ]
    return _columns("option_name varchar, value varchar, scope varchar, scope_id int64"), rows


def _feed(found: Read, spark: Spark, arguments: Arguments) -> Rows:
    given = arguments.taken("catalog", "schema", "table_name", "start_snapshot", "end_snapshot", required=5)
    lake, _ = _lake(found, arguments, given["catalog"])
    first = _snapshot_at(lake, arguments, given["start_snapshot"], is_start=True)
    last = _snapshot_at(lake, arguments, given["end_snapshot"], is_start=False)
    snapshot = lake.snapshot(version=last)
    table = snapshot.table(str(given["schema"]), str(given["table_name"]))
    feed = Feed(spark, found.session.storage(lake), table, snapshot.changes(table, SnapshotId(first)))
    return _FEEDS[arguments.function](feed)


def _snapshot_at(lake: Lake, arguments: Arguments, value: object, is_start: bool) -> int:
    """A snapshot by its id or by a moment: the first one from there on, or the last one up to there."""
    if isinstance(value, int):
        return value
    moment = _moment(arguments, value)
    if not is_start:
        return lake.snapshot(time=moment).id
    later = [one.id for one in lake.snapshots() if one.time >= moment]
    return min(later) if later else lake.snapshot().id + 1


_FEEDS: dict[str, Callable[[Feed], Rows]] = {
    "ducklake_table_insertions": Feed.insertions,
    "ducklake_table_deletions": Feed.deletions,
    "ducklake_table_changes": Feed.changes,
}
_FUNCTIONS: dict[str, Callable[[Read, Arguments], Result]] = {
    "ducklake_snapshots": _snapshots,
    "ducklake_current_snapshot": _current_snapshot,
    "ducklake_table_info": _table_info,
    "ducklake_list_files": _list_files,
    "ducklake_options": _options,
}


def _columns(text: str) -> list[Column]:
    pairs = (part.split() for part in text.split(", "))
    return [Column(name, ColumnType(kind)) for name, kind in pairs]


def _micros(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86400 + since.seconds) * 10**6 + since.microseconds


def _moment(arguments: Arguments, value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise NotAllowed(
            f"call {arguments.function}", f"{value!r} is no moment", "Write it as 2026-01-31 12:00:00+00:00."
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
