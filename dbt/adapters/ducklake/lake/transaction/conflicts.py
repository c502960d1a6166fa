"""Which commits of others a transaction cannot follow. Pure: DuckLake's own matrix over what was done on both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dbt.adapters.ducklake.lake.names import FileId, SnapshotId, TableId, fold
from dbt.adapters.ducklake.lake.transaction.made import Made


@dataclass(frozen=True, slots=True)
class Intent:
    """Our side: the changes, the ids of the schemas that new names go into, the data files deletes touch, and the
    tables of which it mattered what rows they have not: beyond DuckLake's matrix, rows that came meanwhile count."""

    made: tuple[Made, ...]
    schema_ids: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    deletes_in: Mapping[TableId, frozenset[FileId]] = field(default_factory=dict)
    looked_in: frozenset[TableId] = frozenset()


@dataclass(frozen=True, slots=True)
class Committed:
    """Their side: one snapshot after ours began."""

    snapshot: SnapshotId
    author: str | None
    made: tuple[Made, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    what: str
    did: str
    snapshot: SnapshotId
    author: str | None


_INSERT_LOSES_TO = ("dropped_table", "altered_table", "deleted_from_table", "inlined_delete")
_ADDS_ROWS = ("inserted_into_table", "inlined_insert")
# All that others may have done to a table beside what its files tell.
FILES_TELL = ("inserted_into_table", "deleted_from_table")
_FLUSH = ("inline_flush", "flushed_inlined")
# What we do to a table, and what another snapshot may not have done to the same table meanwhile. For DuckLake a delete
# and a compaction of one table always conflict; the commit looks whether it is about the same files, and goes by that.
_SAME_TABLE: Mapping[str, tuple[str, ...]] = {
    "inserted_into_table": _INSERT_LOSES_TO,
    "inlined_insert": _INSERT_LOSES_TO,
    "deleted_from_table": (
        "dropped_table", "altered_table", "inserted_into_table", "inlined_insert",
    ),
    "inlined_delete": (
        "dropped_table", "altered_table", "inlined_delete", *_FLUSH, "inserted_into_table", "inlined_insert",
    ),
    "inline_flush": ("dropped_table", "inlined_delete", *_FLUSH),
    "merge_adjacent": ("dropped_table",),
    "rewrite_delete": ("dropped_table", "altered_table"),
    "altered_table": ("dropped_table", "altered_table"),
    "altered_view": ("altered_view", "dropped_view"),
    # A renamed table's columns are written again for its inlined rows, so they must be those the rename was planned on.
    "renamed_table": ("dropped_table", "altered_table"),
    "renamed_view": ("dropped_view", "altered_view"),
    "dropped_table": ("dropped_table",),
    "dropped_view": ("dropped_view",),
    "dropped_schema": ("dropped_schema",),
    "dropped_scalar_macro": ("dropped_scalar_macro",),
    "dropped_table_macro": ("dropped_table_macro",),
}  # fmt: skip
_CREATES_RELATION = ("created_table", "created_view")
_SAID = {
    "dropped_table": "dropped it",
    "dropped_view": "dropped it",
    "dropped_schema": "dropped the schema",
    "altered_table": "altered it",
    "altered_view": "altered it",
    "inserted_into_table": "inserted into it",
    "inlined_insert": "inserted into it",
    "deleted_from_table": "deleted from it",
    "inlined_delete": "deleted from it",
    "inline_flush": "flushed its inlined rows",
    "flushed_inlined": "flushed its inlined rows",
    "merge_adjacent": "merged its files",
    "rewrite_delete": "rewrote its files",
    "created_schema": "created a schema of that name",
    "created_table": "created a table of that name",
    "created_view": "created a view of that name",
}


def conflict_between(
    ours: Intent,
    theirs: Sequence[Committed],
    touched: Mapping[TableId, frozenset[FileId]],
    apart: frozenset[TableId] = frozenset(),
) -> Conflict | None:
    """The first of their changes that ours cannot follow, None if ours can be committed after all of them.

    `touched` are the data files that were deleted from or ended after we began: two deletes from one table conflict
    only there. In tables that are `apart`, they changed only rows that we did not look at.
    """
    for snapshot in theirs:
        for their in snapshot.made:
            if their.id in apart and their.word in FILES_TELL:
                continue
            for our in ours.made:
                if _conflict(our, their, ours, touched):
                    did = _SAID.get(their.word, f"did {their.text}")
                    return Conflict(_label(our), did, snapshot.snapshot, snapshot.author)
    return None


def _conflict(our: Made, their: Made, ours: Intent, touched: Mapping[TableId, frozenset[FileId]]) -> bool:
    if our.id == their.id and our.id in ours.looked_in and their.word in _ADDS_ROWS:
        return True
    if our.id is not None and our.id == their.id and our.word in _SAME_TABLE:
        if their.word in _SAME_TABLE[our.word]:
            return True
        if our.word == their.word == "deleted_from_table":
            table = TableId(our.id)
            return bool(ours.deletes_in.get(table, frozenset()) & touched.get(table, frozenset()))
    return any(rule(our, their, ours) for rule in _NAME_RULES)


def _both_create_schema(our: Made, their: Made, ours: Intent) -> bool:
    return our.word == their.word == "created_schema" and _whole(our) == _whole(their)


def _both_create_relation(our: Made, their: Made, ours: Intent) -> bool:
    """Tables and views share their names; the two kinds of macros have theirs apart."""
    if our.word in _CREATES_RELATION:
        alike = their.word in _CREATES_RELATION
    else:
        alike = our.word == their.word and our.word in ("created_scalar_macro", "created_table_macro")
    return alike and _whole(our) == _whole(their)


def _creates_in_dropped_schema(our: Made, their: Made, ours: Intent) -> bool:
    if their.word != "dropped_schema" or not our.word.startswith("created_"):
        return False
    return ours.schema_ids.get(tuple(map(fold, our.schema))) == their.id


def _drops_schema_created_in(our: Made, their: Made, ours: Intent) -> bool:
    if our.word != "dropped_schema" or not their.word.startswith("created_"):
        return False
    return _whole(our) == tuple(map(fold, their.schema))


_NAME_RULES: tuple[Callable[[Made, Made, Intent], bool], ...] = (
    _both_create_schema,
    _both_create_relation,
    _creates_in_dropped_schema,
    _drops_schema_created_in,
)


def _whole(made: Made) -> tuple[str, ...]:
    return tuple(map(fold, (*made.schema, made.name or "")))


def _label(made: Made) -> str:
    return f"{made.word}:{made.id}" if made.name is None else ".".join((*made.schema, made.name))
