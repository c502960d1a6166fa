"""DuckLake's procedures of maintenance by their own names and parameters, and what each of them answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from dbt.adapters.ducklake.lake import Bounds, Column, ColumnType, Lake, NotASpan, View, moment_before, plain
from dbt.adapters.ducklake.spark.add_files import Leniency, files_to_add
from dbt.adapters.ducklake.spark.errors import UnsupportedType, WriteRefused
from dbt.adapters.ducklake.statements.arguments import Arguments, Literal, moment_of
from dbt.adapters.ducklake.statements.doors import refuse_files_outside
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.maintenance.cleaning import remove_orphans, remove_scheduled, usually_before
from dbt.adapters.ducklake.statements.maintenance.compaction import (
    Asked,
    Compacted,
    flush_inlined,
    merge_adjacent,
    rewrite_data_files,
)
from dbt.adapters.ducklake.statements.maintenance.partitions import Partition
from dbt.adapters.ducklake.statements.maintenance.policy import Policy, compact
from dbt.adapters.ducklake.statements.outcome import Listing, Outcome
from dbt.adapters.ducklake.statements.reader import Name
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession
from dbt.adapters.ducklake.statements.writing import writing

Given = dict[str, Literal]
Compacts = Callable[[LakeSession, Lake, Asked], Compacted]
_DELETE_OLDER_THAN = "2 days"


def merge_adjacent_files(session: LakeSession, arguments: Arguments) -> Outcome:
    sizes = ("min_file_size", "max_file_size", "max_compacted_files", "max_bytes")
    given = arguments.taken("catalog", "table_name", "schema", *sizes, "partition", "dry_run", required=1)
    done = _each_table(session, arguments, given, merge_adjacent)
    return _compacted(done)


def rewrite_files(session: LakeSession, arguments: Arguments) -> Outcome:
    names = ("delete_threshold", "max_compacted_files", "max_bytes", "partition", "dry_run")
    given = arguments.taken("catalog", "table_name", "schema", *names, required=1)
    return _compacted(_each_table(session, arguments, given, rewrite_data_files))


def flush_inlined_data(session: LakeSession, arguments: Arguments) -> Outcome:
    given = arguments.taken("catalog", "table_name", "schema_name", "dry_run", required=1)
    given["schema"] = given.pop("schema_name", None)
    done = _each_table(session, arguments, given, flush_inlined)
    rows = [(one.schema, one.table, one.processed) for one in done if one.processed or one.created]
    return _listed([("schema_name", "varchar"), ("table_name", "varchar"), ("rows_flushed", "int64")], rows)


def add_data_files(session: LakeSession, arguments: Arguments) -> Outcome:
    """Parquet files that others wrote become a table's own: from now on the lake removes them too."""
    switches = ("hive_partitioning", "ignore_extra_columns", "allow_missing")
    given = arguments.taken("catalog", "table_name", "path", "schema", *switches, "dry_run", required=3)
    lake, paths = _lake(session, given), given["path"]
    [name] = _names(session, arguments, given)
    leniency = Leniency(**{switch: bool(given[switch]) for switch in switches if given.get(switch) is not None})
    asked = f"call {arguments.function}"
    with writing(session, lake) as work:
        table = work.transaction.table(name.schema, name.name)
        wanted = [str(path) for path in (paths if isinstance(paths, tuple) else (paths,))]
        refuse_files_outside(session, lake, wanted, arguments.place)
        files = files_to_add(session.storage(lake), table, wanted, leniency)
        # A pattern may have found more than its own text says.
        refuse_files_outside(session, lake, [file.path for file in files], arguments.place)
        known = lake.maintenance.known_files()
        if twice := [file.path for file in files if plain(file.path) in known.in_use | known.scheduled]:
            # One that was merged since waits for its removal, and its rows are in another file.
            raise NotAllowed(asked, f"{twice[0]} is the lake's already", "Its rows would be doubled.", arguments.place)
        if not given.get("dry_run"):
            work.transaction.append(table, files)
    return _paths(file.path for file in files)


def compact_table(session: LakeSession, arguments: Arguments) -> Outcome:
    """Not DuckLake's own: what a table needs by a policy."""
    counts = ("small_files", "small_file_size", "inlined_rows", "max_compacted_files", "max_bytes")
    given = arguments.taken("catalog", "table_name", "schema", *counts, "deleted_share", "dry_run", required=2)
    chosen: dict[str, Any] = {name: _count(arguments, given, name) for name in counts}
    chosen["deleted_share"] = _share(arguments, given, "deleted_share")
    policy = Policy(**{name: value for name, value in chosen.items() if value is not None})
    parts = (str(given["catalog"]), str(given.get("schema") or session.schema), str(given["table_name"]))
    name = session.whole(Name(parts, arguments.place))
    done = compact(session, _lake(session, given), name, policy, bool(given.get("dry_run")))
    columns = [("schema_name", "varchar"), ("table_name", "varchar"), ("done", "varchar")]
    columns += [("processed", "int64"), ("files_created", "int64")]
    return _listed(columns, [(one.schema, one.table, what, one.processed, one.created) for what, one in done])


def expire_snapshots(session: LakeSession, arguments: Arguments) -> Outcome:
    given = arguments.taken("catalog", "versions", "older_than", "dry_run", required=1)
    lake = _lake(session, given)
    versions, older_than = given.get("versions"), given.get("older_than")
    if versions is not None and older_than is not None:
        found = "it was given both versions and older_than"
        raise NotAllowed(f"call {arguments.function}", found, "Give one of them.", arguments.place)
    infos = lake.snapshots()
    if versions is not None:
        wanted = {_whole(one, arguments) for one in (versions if isinstance(versions, tuple) else (versions,))}
        chosen = [info for info in infos if info.id in wanted]
        if newest := [info.id for info in chosen if info.id == infos[-1].id]:
            found = f"{newest[0]} is the newest snapshot, of which the lake lives"
            raise NotAllowed(f"call {arguments.function}", found, "Leave it out.", arguments.place)
    else:
        limit = _limit(lake, older_than, "expire_older_than", None, arguments)
        chosen = [info for info in infos[:-1] if limit is not None and info.time < limit]
    if chosen and not given.get("dry_run"):
        lake.maintenance.expire([info.id for info in chosen])
    columns = [("snapshot_id", "int64"), ("snapshot_time", "timestamptz"), ("schema_version", "int64")]
    columns += [(name, "varchar") for name in ("changes", "author", "commit_message", "commit_extra_info")]
    rows = [(i.id, i.time, i.schema_version, i.changes, i.author, i.message, i.extra_info) for i in chosen]
    return _listed(columns, rows)


def cleanup_old_files(session: LakeSession, arguments: Arguments) -> Outcome:
    lake, limit, dry_run = _cleaning(session, arguments)
    return _paths(remove_scheduled(session, lake, limit, dry_run))


def delete_orphaned_files(session: LakeSession, arguments: Arguments) -> Outcome:
    lake, limit, dry_run = _cleaning(session, arguments)
    if limit is not None and "older_than" not in arguments.named:
        # The option is about files that the lake knows: of the others, running writers have some.
        limit = min(limit, usually_before())
    return _paths(remove_orphans(session, lake, limit, dry_run))


def _cleaning(session: LakeSession, arguments: Arguments) -> tuple[Lake, datetime | None, bool]:
    """The lake, up to when files are meant (None: all), and whether they are only to be named."""
    given = arguments.taken("catalog", "older_than", "cleanup_all", "dry_run", required=1)
    lake, older_than = _lake(session, given), given.get("older_than")
    if given.get("cleanup_all") and older_than is not None:
        found = "it was given both cleanup_all and older_than"
        raise NotAllowed(f"call {arguments.function}", found, "Give one of them.", arguments.place)
    limit = None
    if not given.get("cleanup_all"):
        limit = _limit(lake, older_than, "delete_older_than", _DELETE_OLDER_THAN, arguments)
    return lake, limit, bool(given.get("dry_run"))


def _limit(lake: Lake, older_than: Literal, option: str, default: str | None, arguments: Arguments) -> datetime | None:
    if older_than is not None:
        return moment_of(older_than, arguments.place)
    stored = lake.options().value(option) or default
    if not stored:
        return None
    try:
        return moment_before(stored, datetime.now(UTC))
    except NotASpan:
        found = f"the lake's option {option} is {stored!r}, which is no span of time"
        raise NotAllowed(
            f"call {arguments.function}", found, "Set it to one, such as 7 days.", arguments.place
        ) from None


def _each_table(session: LakeSession, arguments: Arguments, given: Given, compact: Compacts) -> list[Compacted]:
    lake = _lake(session, given)
    options = lake.options()
    asked = _asked(arguments, given)
    done = []
    for name in _names(session, arguments, given):
        table = lake.snapshot().table(name.schema, name.name)
        if options.value("auto_compact", table.schema.id, table.id) == "false":
            continue
        try:
            done.append(compact(session, lake, asked(name)))
        except (WriteRefused, UnsupportedType) as error:
            if given.get("table_name") is not None:
                raise
            # Of a whole lake the others are still to be done.
            session.warn(f"{name} is left as it is. {error}")
    return done


def _asked(arguments: Arguments, given: Given) -> Callable[[LakeName], Asked]:
    bounds = Bounds(
        min_file_size=_count(arguments, given, "min_file_size", 0) or 0,
        max_file_size=_count(arguments, given, "max_file_size"),
        max_compacted_files=_count(arguments, given, "max_compacted_files"),
        max_bytes=_count(arguments, given, "max_bytes"),
    )
    if bounds.max_file_size is not None and bounds.min_file_size >= bounds.max_file_size:
        found = "min_file_size is not below max_file_size"
        raise NotAllowed(f"call {arguments.function}", found, "No file is between them.", arguments.place)
    threshold, partition = _share(arguments, given, "delete_threshold"), given.get("partition")
    return lambda name: Asked(
        name, bounds, Partition.of(str(partition)) if partition is not None else None,
        threshold, bool(given.get("dry_run")),
    )  # fmt: skip


def _share(arguments: Arguments, given: Given, name: str) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        found = f"{name} is {value!r}"
        raise NotAllowed(f"call {arguments.function}", found, "It takes a share between 0 and 1.", arguments.place)
    return float(value)


def _count(arguments: Arguments, given: Given, name: str, least: int = 1) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise NotAllowed(
            f"call {arguments.function}", f"{name} is {value!r}", f"It takes a whole number from {least} on.",
            arguments.place,
        )  # fmt: skip
    return value


def _names(session: LakeSession, arguments: Arguments, given: Given) -> list[LakeName]:
    """The table that was named, or all tables of the schema, or of the lake."""
    catalog, table, schema = str(given["catalog"]), given.get("table_name"), given.get("schema")
    snapshot = session.lake(catalog).snapshot()
    if table is not None:
        parts = (catalog, str(schema or session.schema), str(table))
        if isinstance(snapshot.find(*parts[1:]), View):
            raise NotAllowed(f"call {arguments.function}", f"{table} is a view", "Name a table.", arguments.place)
        return [session.whole(Name(parts, arguments.place))]
    schemas = [snapshot.schema(str(schema))] if schema is not None else snapshot.schemas()
    return [LakeName(catalog, one.name, name.name) for one in schemas for name in snapshot.tables(one.name)]


def _whole(value: Literal, arguments: Arguments) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        found = f"versions has {value!r}"
        raise NotAllowed(f"call {arguments.function}", found, "It takes numbers of snapshots.", arguments.place)
    return value


def _lake(session: LakeSession, given: Given) -> Lake:
    return session.lake(str(given["catalog"]))


def _compacted(done: Iterable[Compacted]) -> Outcome:
    columns = [("schema_name", "varchar"), ("table_name", "varchar")]
    columns += [("files_processed", "int64"), ("files_created", "int64")]
    rows = [(one.schema, one.table, one.processed, one.created) for one in done if one.processed]
    return _listed(columns, rows)


def _paths(paths: Iterable[str]) -> Outcome:
    return _listed([("path", "varchar")], [(path,) for path in paths])


def _listed(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> Outcome:
    named = tuple(Column(name, ColumnType(kind)) for name, kind in columns)
    return Outcome("CALL", listing=Listing(named, tuple(rows)))
