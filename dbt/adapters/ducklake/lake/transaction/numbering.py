"""The ids that one commit attempt gives to what a transaction makes, from the counters of the snapshot it follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt.adapters.ducklake.lake.metadata import Head
from dbt.adapters.ducklake.lake.names import FileId, SnapshotId, TableId
from dbt.adapters.ducklake.lake.snapshot.files import NameMapping
from dbt.adapters.ducklake.lake.transaction.changes import Compaction, FlushInlined, MergeFiles, RewriteFiles
from dbt.adapters.ducklake.lake.transaction.effects import Effects, TableEffect


@dataclass(frozen=True, slots=True)
class KnownOfTable:
    """What the metadata says of a table at the moment of the commit, as far as numbering needs it."""

    mappings: Mapping[NameMapping, FileId] = field(default_factory=dict)
    # Whether inlined rows need a table that is not there yet.
    lacks_inlined_table: bool = False


@dataclass
class Numbering:
    snapshot: SnapshotId
    schema_version: int
    next_catalog_id: int
    next_file_id: int
    objects: dict[int, int] = field(default_factory=dict)
    partitions: dict[TableId, int] = field(default_factory=dict)
    sorts: dict[TableId, int] = field(default_factory=dict)
    new_mappings: dict[TableId, dict[NameMapping, FileId]] = field(default_factory=dict)
    files: dict[TableId, list[int]] = field(default_factory=dict)
    deletes: dict[TableId, list[int]] = field(default_factory=dict)
    compacted: dict[TableId, list[int]] = field(default_factory=dict)

    def of(self, id: int) -> int:
        """The id of a schema, table or view: its own, or the one this commit gives it."""
        return self.objects.get(id, id)

    def _next_object(self) -> int:
        self.next_catalog_id += 1
        return self.next_catalog_id - 1

    def _next_file(self) -> int:
        self.next_file_id += 1
        return self.next_file_id - 1

    def _number_table(self, effect: TableEffect, keeps_sort: bool) -> None:
        if effect.created:
            self.objects[effect.id] = self._next_object()
        if effect.partitioning_changed or (effect.created and effect.after and effect.after.partitioning):
            self.partitions[effect.id] = self._next_object()
        if keeps_sort and effect.after and effect.after.sort and (effect.created or effect.sort_changed):
            self.sorts[effect.id] = self._next_object()

    def _number_files(self, effect: TableEffect, known: KnownOfTable) -> None:
        new: dict[NameMapping, FileId] = {}
        for file in effect.files:
            if file.mapping is not None and file.mapping not in known.mappings and file.mapping not in new:
                new[file.mapping] = FileId(self._next_file())
        self.new_mappings[effect.id] = new
        self.files[effect.id] = [self._next_file() for _ in effect.files]
        self.deletes[effect.id] = [self._next_file() for _ in effect.deletes]
        self.compacted[effect.id] = [self._next_file() for _ in range(sum(map(files_in, effect.compactions)))]
        if effect.inserted and not effect.files:
            # DuckDB caches statistics by next_file_id: rows inlined without using one up would leave stale counts.
            self._next_file()


def files_in(change: Compaction) -> int:
    """How many data and delete files a compaction brings."""
    match change:
        case MergeFiles(_, _, files) | RewriteFiles(_, _, files):
            return len(files)
        case FlushInlined(_, _, versions, deletes):
            return len(versions) + sum(file.deletes is not None for file in versions) + len(deletes)


def number(effects: Effects, head: Head, known: Mapping[TableId, KnownOfTable], keeps_sort: bool = True) -> Numbering:
    """`keeps_sort` where the metadata have a place for sort keys; else they are for this transaction alone."""
    lacking = any(found.lacks_inlined_table for found in known.values())
    numbering = Numbering(
        snapshot=SnapshotId(head.next_snapshot),
        schema_version=head.schema_version + (effects.changes_schema or lacking),
        next_catalog_id=head.next_catalog_id,
        next_file_id=head.next_file_id,
    )
    for schema in effects.created_schemas:
        numbering.objects[schema.id] = numbering._next_object()
    for effect in effects.tables.values():
        numbering._number_table(effect, keeps_sort)
    for view_id, view in effects.views.items():
        if view.before is None:
            numbering.objects[view_id] = numbering._next_object()
    for effect in effects.tables.values():
        numbering._number_files(effect, known.get(effect.id, KnownOfTable()))
    return numbering
