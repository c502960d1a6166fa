"""Bringing metadata from an older version of DuckLake to a newer one, step by step, in one transaction.

Each step does what is not done yet, since what development builds left is anywhere between two versions. Nothing of a
step rests on what a later version says of a table, so the tables are named here as the databases know them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from dbt.adapters.ducklake.lake.backends import backend_for
from dbt.adapters.ducklake.lake.backends.base import CommitBroken, Row
from dbt.adapters.ducklake.lake.description import LakeDescription
from dbt.adapters.ducklake.lake.errors import (
    CommitContended,
    LakeNotFound,
    MigrationFailed,
    MigrationRefused,
    ReadOnlyLake,
    UnsupportedLayout,
    UnsupportedVersion,
)
from dbt.adapters.ducklake.lake.metadata import TENANTS, Metadata, MetadataSession
from dbt.adapters.ducklake.lake.names import fold, quoted
from dbt.adapters.ducklake.lake.snapshot.inlined import ColumnHistory
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.layout import NEWEST, OLDEST, Layout
from dbt.adapters.ducklake.lake.spec.tables import LOGICAL_TYPES, TABLES, RowClass
from dbt.adapters.ducklake.lake.tenants import older_layout
from dbt.adapters.ducklake.lake.transaction.commit import Patience, in_attempts
from dbt.adapters.ducklake.lake.types import keeps_bounds, type_from_text

_PARTIAL_MAX = re.compile(r"partial_max:(\d+)")


@dataclass(frozen=True, slots=True)
class Migration:
    """A step from one version to the next, and what it did or, in a dry run, would do."""

    before: str
    after: str
    did: tuple[str, ...]


def is_older(version: str, target: str) -> bool:
    """Whether metadata of one known version can be brought to another."""
    return version in KNOWN_VERSIONS and KNOWN_VERSIONS.index(version) < KNOWN_VERSIONS.index(target)


def migrate_lake(description: LakeDescription, dry_run: bool = False) -> list[Migration]:
    """Bring a lake to the version that its description wants; nothing to do where it has that, or a newer one."""
    if description.read_only or description.is_time_travel:
        raise ReadOnlyLake(description.kind, "it is opened for reading")
    backend = backend_for(description)
    try:
        metadata = Metadata(backend, OLDEST)
        if not backend.exists():
            raise LakeNotFound(backend.name, "only one that is there can be migrated")
        with metadata.reading() as session:
            if not session.has_table("ducklake_metadata"):
                raise LakeNotFound(backend.name, "only one that is there can be migrated")
            if session.has_table(TENANTS) or older_layout(session) is not None:
                found = "they are shared between tenants, which is a layout of its own"
                raise UnsupportedLayout(backend.name, found, "It is not migrated.")
            version = version_of(session)
        if version not in KNOWN_VERSIONS:
            raise UnsupportedVersion(backend.name, version, ", ".join(KNOWN_VERSIONS), "It cannot be migrated.")
        return migrate(metadata, description.wanted_version, description.patience, dry_run)
    finally:
        backend.close()


def migrate(metadata: Metadata, target: str, patience: Patience, dry_run: bool = False) -> list[Migration]:
    """Bring the metadata to a version, all steps or none. A dry run does the same and takes it back."""

    def work(session: MetadataSession) -> list[Migration]:
        # Whoever was faster has done some of it, or all.
        session.wait_little()
        version = version_of(session)
        done = list(_migrated(session, metadata.backend.name, version, target))
        if dry_run:
            raise _TakenBack(done)
        return done

    try:
        return in_attempts(metadata, patience, work)
    except _TakenBack as dry:
        return dry.done
    except CommitBroken as error:
        raise MigrationFailed(metadata.backend.name, target, "the connection broke while it was committed") from error
    except CommitContended as error:
        raise MigrationFailed(metadata.backend.name, target, str(error)) from error


def version_of(session: MetadataSession) -> str:
    # Before 0.2 the table has no scopes.
    rows = session.run_on("ducklake_metadata", "SELECT value FROM {table} WHERE key = 'version'")
    return str(rows[0][0]) if rows else OLDEST.version


class _TakenBack(Exception):
    def __init__(self, done: list[Migration]) -> None:
        self.done = done


def _migrated(session: MetadataSession, where: str, version: str, target: str) -> Iterator[Migration]:
    before = version
    # What a development build began is gone through again.
    left = [(after, step) for after, step in _STEPS.items() if is_older(before, after) and not is_older(target, after)]
    later: list[Callable[[], object]] = []
    for after, step in left:
        did = tuple(step(_Tables(session, where, before, after, later)))
        session.run_on("ducklake_metadata", "UPDATE {table} SET value = $1 WHERE key = 'version'", after)
        yield Migration(before, after, did)
        before = after
    for work in later:
        work()


class _Tables:
    """The metadata tables, as a step finds and alters them."""

    def __init__(
        self, session: MetadataSession, where: str, before: str, after: str, later: list[Callable[[], object]]
    ) -> None:
        self.session, self._where, self._before, self._after, self._later = session, where, before, after, later

    def add_columns(self, row_class: RowClass, *names: str, value: str | None = None) -> Iterator[str]:
        """Add columns of the newest layout to a table, last, where they are not there, with this value in all rows."""
        table = f"ducklake_{TABLES[row_class]}"
        there = self.session.columns_of(table)
        added = [name for name in names if name not in there]
        for name in added:
            kind = self.session.storage.physical_types[LOGICAL_TYPES[row_class][name]]
            self.run(row_class, f"ALTER TABLE {{table}} ADD COLUMN {quoted(name)} {kind}")
            if value is not None:
                self.run_later(row_class, f"UPDATE {{table}} SET {quoted(name)} = {value}")
        if added:
            yield f"adds {', '.join(added)} to {table}"

    def create(self, layout: Layout, *row_classes: RowClass) -> Iterator[str]:
        """Make tables as a layout has them, where they are not there."""
        through = self.session.through(layout)
        for row_class in row_classes:
            if not self.session.has_table(f"ducklake_{TABLES[row_class]}"):
                through.create(row_class)
                yield f"makes ducklake_{TABLES[row_class]}"

    def run(self, row_class: RowClass, sql: str, *values: object) -> list[Row]:
        return self.session.run_on(f"ducklake_{TABLES[row_class]}", sql, *values)

    def run_later(self, row_class: RowClass, sql: str, *values: object) -> None:
        """Change rows behind all steps: DuckDB 1.5 does not commit if columns are added to a table after that."""
        self._later.append(partial(self.run, row_class, sql, *values))

    def refused(self, found: str, remedy: str) -> MigrationRefused:
        return MigrationRefused(self._where, self._before, self._after, found, remedy)


_Step = Callable[[_Tables], Iterator[str]]


def _to_0_2(metadata: _Tables) -> Iterator[str]:
    # Paths were made of names: below the data path lay all files.
    for row_class in (tables.Schema, tables.Table):
        yield from metadata.add_columns(row_class, "path", value="''")
        yield from metadata.add_columns(row_class, "path_is_relative", value="TRUE")
    yield from metadata.add_columns(tables.Metadata, "scope", "scope_id")
    yield from metadata.add_columns(tables.DataFile, "mapping_id")
    yield from metadata.create(OLDEST, tables.ColumnMapping, tables.NameMapping)
    # A key was the place of a column, and is its id.
    for table_id, places in _places_of_keys(metadata).items():
        columns = metadata.run(
            tables.Column,
            "SELECT column_id FROM {table} WHERE table_id = $1 AND parent_column IS NULL AND end_snapshot IS NULL "
            "ORDER BY column_order",
            table_id,
        )
        # In one statement: an id may be another key's place.
        cases = " ".join(f"WHEN {place} THEN {columns[place][0]}" for place in places if place < len(columns))
        if cases:
            sql = f"UPDATE {{table}} SET column_id = CASE column_id {cases} END WHERE table_id = $1"
            metadata.run(tables.PartitionColumn, sql, table_id)
            yield f"names the partition keys of table {table_id} by the ids of their columns"


def _places_of_keys(metadata: _Tables) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for table_id, place in metadata.run(tables.PartitionColumn, "SELECT DISTINCT table_id, column_id FROM {table}"):
        found[table_id].append(place)
    return found


def _to_0_3(metadata: _Tables) -> Iterator[str]:
    yield from metadata.add_columns(tables.NameMapping, "is_partition", value="FALSE")
    yield from metadata.add_columns(tables.SnapshotChanges, "author", "commit_message", "commit_extra_info")
    session = metadata.session
    if not session.has_table("ducklake_schema_versions"):
        types = session.storage.physical_types
        columns = f"begin_snapshot {types['BIGINT']}, schema_version {types['BIGINT']}"
        metadata.run(tables.SchemaVersions, f"CREATE TABLE {{table}} ({columns})")
        yield "makes ducklake_schema_versions"
    if not metadata.run(tables.SchemaVersions, "SELECT 1 FROM {table} LIMIT 1"):
        by_version = "SELECT min(snapshot_id), schema_version FROM {table} GROUP BY schema_version ORDER BY 2"
        rows = metadata.run(tables.Snapshot, by_version)
        session.insert_into("ducklake_schema_versions", {"begin_snapshot": "BIGINT", "schema_version": "BIGINT"}, rows)
    older = "ducklake_file_column_statistics"
    if session.has_table(older):
        session.run_on(older, "ALTER TABLE {table} RENAME TO ducklake_file_column_stats")
        yield f"renames {older}"
    yield from metadata.add_columns(tables.FileColumnStats, "extra_stats")
    yield from metadata.add_columns(tables.TableColumnStats, "extra_stats")


def _to_0_4(metadata: _Tables) -> Iterator[str]:
    yield from metadata.create(OLDEST, tables.Macro, tables.MacroImpl, tables.MacroParameters)
    yield from metadata.add_columns(tables.Column, "default_value_type", "default_value_dialect")
    metadata.run(tables.Column, "UPDATE {table} SET default_value_type = 'literal' WHERE default_value_type IS NULL")
    yield from metadata.create(OLDEST, tables.SortInfo, tables.SortExpression, tables.FileVariantStats)
    yield from metadata.add_columns(tables.SchemaVersions, "table_id")
    yield from metadata.add_columns(tables.DataFile, "partial_max")
    yield from metadata.add_columns(tables.DeleteFile, "partial_max")
    yield from _last_snapshots_of_files(metadata)
    yield from _versions_of_tables(metadata)
    yield from _retype_inlined(metadata)


def _last_snapshots_of_files(metadata: _Tables) -> Iterator[str]:
    """The last snapshot of a file with rows of several becomes a number."""
    if "partial_file_info" not in metadata.session.columns_of("ducklake_data_file"):
        return
    rows = metadata.run(
        tables.DataFile, "SELECT data_file_id, partial_file_info FROM {table} WHERE partial_file_info IS NOT NULL"
    )
    metadata.run(tables.DataFile, "ALTER TABLE {table} DROP COLUMN partial_file_info")
    for file_id, text in rows:
        if (match := _PARTIAL_MAX.search(str(text))) is not None:
            last = int(match[1])
            told = "UPDATE {table} SET partial_max = $1 WHERE data_file_id = $2"
            metadata.run_later(tables.DataFile, told, last, file_id)
        else:
            yield (
                f"forgets, as DuckDB does, which rows of data file {file_id} came with which snapshot ({text}): "
                "those before its last show all of them"
            )
    if rows:
        yield "notes the last snapshots of merged files"


def _versions_of_tables(metadata: _Tables) -> Iterator[str]:
    """Schema versions are of tables, and were of snapshots."""
    versions = metadata.run(
        tables.SchemaVersions, "SELECT begin_snapshot, schema_version FROM {table} WHERE table_id IS NULL"
    )
    if not versions:
        return
    there = metadata.run(tables.Table, "SELECT table_id, begin_snapshot, end_snapshot FROM {table}")
    rows = [
        (begin, version, table_id)
        for begin, version in versions
        for table_id, first, end in there
        if first <= begin and (end is None or begin <= end)
    ]
    names = dict.fromkeys(("begin_snapshot", "schema_version", "table_id"), "BIGINT")
    metadata.session.insert_into("ducklake_schema_versions", names, rows)
    metadata.run(tables.SchemaVersions, "DELETE FROM {table} WHERE table_id IS NULL")
    yield "tells schema versions of each table"


def _retype_inlined(metadata: _Tables) -> Iterator[str]:
    """PostgreSQL's own types, in which 0.3 kept inlined rows, hold less than DuckDB's."""
    session = metadata.session
    for inlined in _inlined_tables(metadata):
        columns = ColumnHistory(session, inlined.table_id, f"table {inlined.table_id}").find_columns_of(inlined)
        if changed := session.retype(inlined.table_name, columns):
            yield f"keeps {', '.join(changed)} of {inlined.table_name} as DuckDB's text"


def _to_1_0(metadata: _Tables) -> Iterator[str]:
    yield from ()


def _to_1_1(metadata: _Tables) -> Iterator[str]:
    yield from _rename_leading_columns(metadata)
    yield from metadata.add_columns(tables.DataFile, "row_group_count")
    yield from metadata.add_columns(tables.DeleteFile, "row_group_count")
    yield from metadata.add_columns(tables.FileColumnStats, "min_is_exact", "max_is_exact")
    yield from metadata.add_columns(tables.TableColumnStats, "min_is_exact", "max_is_exact")
    yield from metadata.add_columns(tables.Schema, "parent_schema_id")
    yield from metadata.create(NEWEST, tables.ViewColumnTag)
    yield from _add_lacking_versions(metadata)
    # What 1.5 brought to 1.0 has them still.
    yield from _retype_inlined(metadata)
    yield from _restore_defaults_of_fields(metadata)
    yield from _forget_bounds_of_other_types(metadata)


def _inlined_tables(metadata: _Tables) -> list[tables.InlinedDataTables]:
    if not metadata.session.has_table("ducklake_inlined_data_tables"):
        return []
    return metadata.session.read(tables.InlinedDataTables, "ORDER BY table_id, schema_version")


def _rename_leading_columns(metadata: _Tables) -> Iterator[str]:
    """First of all, so that a column of the user's with such a name stops it while nothing is done."""
    session, renamed = metadata.session, 0
    before, after = OLDEST.inlined, NEWEST.inlined
    for inlined in _inlined_tables(metadata):
        name, there = inlined.table_name, [fold(column) for column in session.columns_of(inlined.table_name)]
        if tuple(there[:3]) == after:
            continue
        if tuple(there[:3]) != before:
            found = (
                f"{name} of table {inlined.table_id} begins with the columns {', '.join(there[:3]) or 'of no table'}"
            )
            raise metadata.refused(found, "Flush the inlined rows with the client that wrote them.")
        if taken := [column for column in there[3:] if column in after]:
            remedy = "Rename the column and call ducklake_flush_inlined_data, then migrate."
            raise metadata.refused(f"table {inlined.table_id} has a column {taken[0]}, and {name} needs that", remedy)
        for old, new in zip(before, after, strict=True):
            session.run_on(name, f"ALTER TABLE {{table}} RENAME COLUMN {quoted(old)} TO {quoted(new)}")
        renamed += 1
    if renamed:
        yield f"renames the leading columns of {renamed} tables of inlined rows"


def _add_lacking_versions(metadata: _Tables) -> Iterator[str]:
    """Every table of inlined rows says a schema version: what columns its rows have is found by it."""
    known = {(row.table_id, row.schema_version) for row in metadata.session.read(tables.SchemaVersions)}
    for inlined in _inlined_tables(metadata):
        if (inlined.table_id, inlined.schema_version) in known:
            continue
        history = ColumnHistory(metadata.session, inlined.table_id, f"table {inlined.table_id}")
        # Where nothing tells, it is left alone: a guess would be another table's columns.
        if (begin := history.begin_of(inlined)) >= 0:
            row = tables.SchemaVersions(begin, inlined.schema_version, inlined.table_id)
            metadata.session.insert([row])
            yield f"adds schema version {inlined.schema_version} of table {inlined.table_id}"


def _restore_defaults_of_fields(metadata: _Tables) -> Iterator[str]:
    """What rows from before a field hold is the same for ever, and older clients forgot it when they renamed one."""
    fields = metadata.session.read(tables.Column, "WHERE parent_column IS NOT NULL ORDER BY begin_snapshot")
    first: dict[tuple[int, int], str] = {}
    for row in fields:
        key = row.table_id, row.column_id
        if row.initial_default is not None:
            first.setdefault(key, row.initial_default)
        elif key in first:
            of_row = {"table_id": row.table_id, "column_id": row.column_id, "begin_snapshot": row.begin_snapshot}
            metadata.session.update(tables.Column, {"initial_default": first[key]}, of_row)
            yield f"restores the default of field {row.column_name} of table {row.table_id}"


def _forget_bounds_of_other_types(metadata: _Tables) -> Iterator[str]:
    """Where a column's type was changed, bounds from before may be other values of it, or none. Without its row a
    column has no bounds."""
    session = metadata.session
    types: dict[tuple[int, int], list[str]] = defaultdict(list)
    for column in session.read(tables.Column, "ORDER BY begin_snapshot"):
        types[column.table_id, column.column_id].append(column.column_type)
    for row in session.read(tables.TableColumnStats):
        kinds = [type_from_text(text) for text in types.get((row.table_id, row.column_id), [])]
        if not all(keeps_bounds(before, after) for before, after in pairwise(kinds)):
            session.delete(tables.TableColumnStats, {"table_id": row.table_id, "column_id": row.column_id})
            yield f"forgets the bounds of column {row.column_id} of table {row.table_id}, which was {kinds[0]}"


KNOWN_VERSIONS = ("0.1", "0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4", "1.0", "1.1-dev1", "1.1")
_STEPS: dict[str, _Step] = {"0.2": _to_0_2, "0.3": _to_0_3, "0.4": _to_0_4, "1.0": _to_1_0, "1.1": _to_1_1}
