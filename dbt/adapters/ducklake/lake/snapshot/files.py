"""The files of one table at one snapshot: what to read, minus what to leave out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dbt.adapters.ducklake.lake.columns import walk
from dbt.adapters.ducklake.lake.definitions import PartitionField, Table
from dbt.adapters.ducklake.lake.errors import InvalidMetadata, UnsupportedLayout
from dbt.adapters.ducklake.lake.metadata import MetadataSession, places
from dbt.adapters.ducklake.lake.names import ColumnId, FileId, SnapshotId, TableId
from dbt.adapters.ducklake.lake.paths import stored_path
from dbt.adapters.ducklake.lake.snapshot.inlined import InlinedRow, inlined_rows_at, values_under
from dbt.adapters.ducklake.lake.snapshot.load import VISIBLE
from dbt.adapters.ducklake.lake.snapshot.pruning import FileFacts, FileStatistics, Predicate, may_match
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.inlined import deletes_table_of


class DeleteFile(NamedTuple):
    """Positions of deleted rows of one data file.

    A file with a third column `_ducklake_internal_snapshot_id` says when each row was deleted; only those up to the
    snapshot read count. Look for the column itself: `partial_max` does not tell of every such file.
    """

    id: FileId
    path: str
    format: str
    delete_count: int
    size: int
    footer_size: int | None
    begin: SnapshotId
    partial_max: SnapshotId | None


class DataFile(NamedTuple):
    """A Parquet file of a table. Where `rows_up_to` is set, it also holds rows of later snapshots: keep those whose
    `_ducklake_internal_snapshot_id` is not above it."""

    id: FileId
    path: str
    record_count: int
    size: int
    footer_size: int | None
    row_id_start: int | None
    begin: SnapshotId
    end: SnapshotId | None
    partition_id: int | None
    mapping_id: FileId | None
    partial_max: SnapshotId | None
    rows_up_to: SnapshotId | None
    delete_file: DeleteFile | None


class MappedColumn(NamedTuple):
    """A column of a file that is found by name: the field it becomes, and what is below it."""

    name: str
    field_id: ColumnId
    children: tuple[MappedColumn, ...] = ()
    is_partition: bool = False


NameMapping = tuple[MappedColumn, ...]


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Everything that makes up the rows of a table at a snapshot.

    Deleted positions of a file are those of its delete file and those in `inlined_deletes`, both physical positions.
    `partition_values` gives (key, text) of each file under its own spec. `settled` names the columns that files older
    than a snapshot may hold in another type than the table's, or not at all though they have an initial default: only
    such a file's footer tells.
    """

    data_files: tuple[DataFile, ...]
    pruned: int = 0
    mappings: Mapping[FileId, NameMapping] = field(default_factory=dict)
    partition_values: Mapping[FileId, tuple[str | None, ...]] = field(default_factory=dict)
    partition_specs: Mapping[int, tuple[PartitionField, ...]] = field(default_factory=dict)
    inlined_deletes: Mapping[FileId, tuple[int, ...]] = field(default_factory=dict)
    inlined_rows: tuple[InlinedRow, ...] = ()
    settled: Mapping[ColumnId, SnapshotId] = field(default_factory=dict)
    # Whether a new delete file may hold positions of several snapshots, and take the old one's place for all of them.
    tells_deletes: bool = True

    def under(self, before: Table, after: Table, snapshot: SnapshotId) -> TableFiles:
        """The same files for a definition of their table that follows the one at the snapshot."""
        old, new = before.by_id(), after.by_id()
        is_later = SnapshotId(snapshot + 1)
        settled = {
            column_id: is_later
            for column_id, column in new.items()
            if (column_id in old and old[column_id].type != column.type) or column.initial_default is not None
        }
        rows = tuple(row._replace(values=values_under(before, after, row.values)) for row in self.inlined_rows)
        return replace(self, inlined_rows=rows, settled={**settled, **self.settled} if settled else self.settled)


_FILE_COLUMNS = (
    "data_file_id, path, path_is_relative, file_format, record_count, file_size_bytes, footer_size, row_id_start, "
    "begin_snapshot, end_snapshot, partition_id, mapping_id, partial_max, encryption_key"
)


def load_files(
    session: MetadataSession, snapshot: SnapshotId, table: Table, predicates: Sequence[Predicate] = ()
) -> TableFiles:
    files = files_where(session, snapshot, table, VISIBLE, snapshot)
    specs, values = _partition_values(session, snapshot, table, files)
    kept = _pruned(session, snapshot, table, files, predicates, specs, values)
    return TableFiles(
        data_files=kept,
        pruned=len(files) - len(kept),
        mappings=load_mappings(session, table.id, kept),
        partition_values=values,
        partition_specs=specs,
        inlined_deletes=inlined_deletes_between(session, table.id, SnapshotId(0), snapshot),
        inlined_rows=inlined_rows_at(session, snapshot, table),
        settled=_settled(session, snapshot, table, kept),
        tells_deletes=session.layout.tells_deletes,
    )


def files_matching(
    session: MetadataSession,
    snapshot: SnapshotId,
    table: Table,
    predicates: Sequence[Predicate],
    condition: str,
    *values: int,
) -> tuple[DataFile, ...]:
    """The files at a snapshot that satisfy the condition, whose `values` count from $2, and may hold rows that satisfy
    the predicates."""
    files = files_where(session, snapshot, table, f"{VISIBLE} AND {condition}", snapshot, *values)
    return _pruned(session, snapshot, table, files, predicates, *_partition_values(session, snapshot, table, files))


def _settled(
    session: MetadataSession, snapshot: SnapshotId, table: Table, files: Sequence[DataFile]
) -> dict[ColumnId, SnapshotId]:
    oldest = min((file.begin for file in files), default=snapshot)
    if all(column.since <= oldest for column in walk(table.columns)):
        return {}
    columns, found = table.by_id(), dict[ColumnId, SnapshotId]()
    types: dict[ColumnId, str] = {}
    rows = session.read(
        tables.Column, "WHERE table_id = $1 AND begin_snapshot <= $2 ORDER BY begin_snapshot", table.id, snapshot
    )
    for row in rows:
        column = columns.get(ColumnId(row.column_id))
        is_first = column is not None and column.id not in types
        if column is None or (is_first and row.initial_default is None):
            pass
        elif is_first or types[column.id] != row.column_type:
            found[column.id] = SnapshotId(row.begin_snapshot)
        types[ColumnId(row.column_id)] = row.column_type
    return {column_id: since for column_id, since in found.items() if since > oldest}


def files_where(
    session: MetadataSession, snapshot: SnapshotId | None, table: Table, condition: str, *values: int
) -> tuple[DataFile, ...]:
    """Data files of a table, with the delete files they have at `snapshot`; at None, all rows of a file are meant."""
    own = f"${len(values) + 1}"
    rows = session.query(
        f"SELECT {_FILE_COLUMNS} FROM {{data_file}} WHERE {condition} AND table_id = {own} ORDER BY data_file_id",
        *values,
        table.id,
    )
    deletes = {} if snapshot is None or not rows else _live_deletes(session, snapshot, table)
    location, found = table.location, []
    for row in rows:
        id, path, is_relative, kind, count, size, footer, first, begin, end, partition, mapping, most, key = row
        if key is not None or kind not in ("parquet", None):
            raise _unreadable(table, id, kind, key)
        full = path if is_relative is not None and not is_relative else location + path
        later = snapshot if most is not None and snapshot is not None and most > snapshot else None
        delete = deletes.get(id)
        facts = (id, full, count, size, footer, first, begin, end, partition, mapping, most, later, delete)
        found.append(DataFile._make(facts))
    return tuple(found)


def _live_deletes(session: MetadataSession, snapshot: SnapshotId, table: Table) -> dict[FileId, DeleteFile]:
    found: dict[FileId, DeleteFile] = {}
    for row in session.read(tables.DeleteFile, f"WHERE {VISIBLE} AND table_id = $2", snapshot, table.id):
        data_file = FileId(row.data_file_id)
        if data_file in found:
            raise InvalidMetadata(
                f"data file {data_file} of {table} has two delete files at once", "End all but the newest of them."
            )
        found[data_file] = delete_file_of(row, table)
    return found


def delete_file_of(row: tables.DeleteFile, table: Table) -> DeleteFile:
    if row.encryption_key is not None:
        raise _unreadable(table, row.delete_file_id, row.format, row.encryption_key)
    if row.format not in ("parquet", "puffin"):
        raise InvalidMetadata(
            f"delete file {row.delete_file_id} has format {row.format!r}", "Only parquet and puffin are known."
        )
    return DeleteFile(
        id=FileId(row.delete_file_id),
        path=stored_path(row.path, row.path_is_relative).under(table.location),
        format=row.format,
        delete_count=row.delete_count,
        size=row.file_size_bytes,
        footer_size=row.footer_size,
        begin=SnapshotId(row.begin_snapshot),
        partial_max=None if row.partial_max is None else SnapshotId(row.partial_max),
    )


def _unreadable(table: Table, file_id: int, kind: str, key: str | None) -> UnsupportedLayout:
    if key is not None:
        return UnsupportedLayout(str(table), f"file {file_id} is encrypted", "Write it anew without encryption.")
    return UnsupportedLayout(str(table), f"file {file_id} has format {kind}", "Only Parquet can be read.")


def _partition_values(
    session: MetadataSession, snapshot: SnapshotId, table: Table, files: Sequence[DataFile]
) -> tuple[dict[int, tuple[PartitionField, ...]], dict[FileId, tuple[str | None, ...]]]:
    if all(file.partition_id is None for file in files):
        return {}, {}
    specs: dict[int, tuple[PartitionField, ...]] = {}
    every = "WHERE table_id = $1 ORDER BY partition_id, partition_key_index"
    for row in session.read(tables.PartitionColumn, every, table.id):
        field_ = PartitionField(ColumnId(row.column_id), row.transform)
        specs[row.partition_id] = (*specs.get(row.partition_id, ()), field_)
    rows = session.query(
        "SELECT v.data_file_id, v.partition_value FROM {file_partition_value} AS v "
        "JOIN {data_file} AS f ON f.data_file_id = v.data_file_id "
        "WHERE v.table_id = $2 AND f.table_id = $2 AND f.begin_snapshot <= $1 "
        "AND (f.end_snapshot IS NULL OR f.end_snapshot > $1) ORDER BY v.data_file_id, v.partition_key_index",
        snapshot,
        table.id,
    )
    values: dict[FileId, tuple[str | None, ...]] = {}
    for file_id, value in rows:
        values[file_id] = (*values.get(file_id, ()), value)
    return specs, values


def _pruned(
    session: MetadataSession,
    snapshot: SnapshotId,
    table: Table,
    files: tuple[DataFile, ...],
    predicates: Sequence[Predicate],
    specs: Mapping[int, tuple[PartitionField, ...]],
    values: Mapping[FileId, tuple[str | None, ...]],
) -> tuple[DataFile, ...]:
    if not predicates or not files:
        return files
    columns = table.by_id()
    asked = sorted({predicate.column_id for predicate in predicates})
    statistics = _statistics(session, snapshot, table.id, asked)

    def facts(file: DataFile) -> FileFacts:
        spec = specs.get(file.partition_id, ()) if file.partition_id is not None else ()
        keys = [
            (key.column_id, key.transform, value) for key, value in zip(spec, values.get(file.id, ()), strict=False)
        ]
        return FileFacts(file.begin, statistics.get(file.id, {}), keys)

    return tuple(file for file in files if may_match(predicates, columns, facts(file)))


def _statistics(
    session: MetadataSession, snapshot: SnapshotId, table_id: TableId, columns: Sequence[ColumnId]
) -> dict[FileId, dict[ColumnId, FileStatistics]]:
    rows = session.query(
        "SELECT s.data_file_id, s.column_id, s.value_count, s.null_count, s.min_value, s.max_value, s.contains_nan "
        "FROM {file_column_stats} AS s JOIN {data_file} AS f ON f.data_file_id = s.data_file_id "
        "WHERE s.table_id = $2 AND f.table_id = $2 AND f.begin_snapshot <= $1 "
        f"AND (f.end_snapshot IS NULL OR f.end_snapshot > $1) AND s.column_id IN ({places(3, len(columns))})",
        snapshot,
        table_id,
        *columns,
    )
    found: dict[FileId, dict[ColumnId, FileStatistics]] = defaultdict(dict)
    for file_id, column_id, values, nulls, low, high, nan in rows:
        found[file_id][column_id] = FileStatistics(values, nulls, low, high, None if nan is None else bool(nan))
    return found


def load_mappings(session: MetadataSession, table_id: TableId, files: Sequence[DataFile]) -> dict[FileId, NameMapping]:
    used = {file.mapping_id for file in files if file.mapping_id is not None}
    if not used:
        return {}
    found = mappings_of(session, table_id)
    if missing := used - set(found):
        raise InvalidMetadata(
            f"name mapping {min(missing)} of table {table_id} has no rows", "The file cannot be read."
        )
    return {mapping_id: mapping for mapping_id, mapping in found.items() if mapping_id in used}


def mappings_of(session: MetadataSession, table_id: TableId) -> dict[FileId, NameMapping]:
    """All name mappings registered for a table."""
    kinds = {row.mapping_id: row.type for row in session.read(tables.ColumnMapping, "WHERE table_id = $1", table_id)}
    if other := {kind for kind in kinds.values() if kind != "map_by_name"}:
        raise InvalidMetadata(f"a name mapping has type {min(other)!r}", "DuckLake knows only map_by_name.")
    rows = session.read(
        tables.NameMapping,
        "WHERE mapping_id IN (SELECT mapping_id FROM {column_mapping} WHERE table_id = $1) "
        "ORDER BY mapping_id, column_id",
        table_id,
    )
    by_parent: dict[tuple[int, int | None], list[tables.NameMapping]] = defaultdict(list)
    for row in rows:
        by_parent[row.mapping_id, row.parent_column].append(row)

    def below(mapping_id: int, parent: int | None) -> NameMapping:
        return tuple(
            MappedColumn(
                name=row.source_name,
                field_id=ColumnId(row.target_field_id),
                children=below(mapping_id, row.column_id),
                is_partition=bool(row.is_partition),
            )
            for row in by_parent[mapping_id, parent]
        )

    return {FileId(mapping_id): below(mapping_id, None) for mapping_id in kinds}


def inlined_deletes_between(
    session: MetadataSession, table_id: TableId, first: SnapshotId, last: SnapshotId
) -> dict[FileId, tuple[int, ...]]:
    rows = _inlined_deletes(session, table_id, first, last)
    return {file_id: tuple(position for position, _ in found) for file_id, found in rows.items()}


def inlined_deletes_of(
    session: MetadataSession, table_id: TableId, last: SnapshotId
) -> dict[FileId, list[tuple[int, SnapshotId]]]:
    """Positions with the snapshots that deleted them."""
    return _inlined_deletes(session, table_id, SnapshotId(0), last)


def _inlined_deletes(
    session: MetadataSession, table_id: TableId, first: SnapshotId, last: SnapshotId
) -> dict[FileId, list[tuple[int, SnapshotId]]]:
    name = deletes_table_of(table_id)
    if session.layout.is_shared or not session.has_table(name):
        return {}
    sql = (
        "SELECT file_id, row_id, begin_snapshot FROM {table} WHERE begin_snapshot BETWEEN $1 AND $2 "
        "ORDER BY file_id, row_id"
    )
    found: dict[FileId, list[tuple[int, SnapshotId]]] = defaultdict(list)
    for file_id, position, snapshot in session.run_on(name, sql, first, last):
        found[file_id].append((position, snapshot))
    return dict(found)
