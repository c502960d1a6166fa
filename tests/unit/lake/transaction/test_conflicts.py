from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.names import FileId, SnapshotId, TableId
from dbt.adapters.ducklake.lake.transaction.conflicts import Committed, Intent, conflict_between
from dbt.adapters.ducklake.lake.transaction.made import Made

TABLE, OTHER, VIEW, SCHEMA = 7, 8, 9, 3
TABLE_WORDS = (
    "inserted_into_table", "inlined_insert", "deleted_from_table", "inlined_delete", "inline_flush", "merge_adjacent",
    "rewrite_delete", "altered_table", "dropped_table",
)  # fmt: skip
# The matrix of the format, row by row: what we do, and what nobody may have done to the same table meanwhile.
MATRIX = {
    "inserted_into_table": {"dropped_table", "altered_table", "deleted_from_table", "inlined_delete"},
    "inlined_insert": {"dropped_table", "altered_table", "deleted_from_table", "inlined_delete"},
    "deleted_from_table": {
        "dropped_table", "altered_table", "inserted_into_table", "inlined_insert",
    },
    "inlined_delete": {
        "dropped_table", "altered_table", "inlined_delete", "inline_flush", "inserted_into_table", "inlined_insert",
    },
    "inline_flush": {"dropped_table", "inlined_delete", "inline_flush"},
    "merge_adjacent": {"dropped_table"},
    "rewrite_delete": {"dropped_table", "altered_table"},
    "altered_table": {"dropped_table", "altered_table"},
    "dropped_table": {"dropped_table"},
}  # fmt: skip


def after(*made: Made, author: str | None = None) -> list[Committed]:
    return [Committed(SnapshotId(43), author, made)]


def conflicts(ours: Made, theirs: Made, **intent: object) -> bool:
    return conflict_between(Intent((ours,), **intent), after(theirs), {}) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize("ours", TABLE_WORDS)
@pytest.mark.parametrize("theirs", TABLE_WORDS)
def test_matrix_of_changes_to_one_table(ours: str, theirs: str) -> None:
    assert conflicts(Made(ours, TABLE), Made(theirs, TABLE)) is (theirs in MATRIX[ours])


@pytest.mark.parametrize("ours", TABLE_WORDS)
@pytest.mark.parametrize("theirs", TABLE_WORDS)
def test_changes_to_different_tables_never_conflict(ours: str, theirs: str) -> None:
    assert not conflicts(Made(ours, TABLE), Made(theirs, OTHER))


def test_deletes_conflict_in_the_same_data_file_only() -> None:
    ours = Intent((Made("deleted_from_table", TABLE),), deletes_in={TableId(TABLE): frozenset({FileId(1), FileId(2)})})
    theirs = after(Made("deleted_from_table", TABLE))
    assert conflict_between(ours, theirs, {TableId(TABLE): frozenset({FileId(3)})}) is None
    assert conflict_between(ours, theirs, {TableId(TABLE): frozenset({FileId(2), FileId(3)})}) is not None
    assert conflict_between(ours, theirs, {TableId(OTHER): frozenset({FileId(2)})}) is None


@pytest.mark.parametrize("ours", ["created_table", "created_view"])
@pytest.mark.parametrize("theirs", ["created_table", "created_view"])
def test_tables_and_views_share_their_names(ours: str, theirs: str) -> None:
    made = Made(ours, schema=("main",), name="Orders")
    assert conflicts(made, Made(theirs, schema=("MAIN",), name="orders"))
    assert not conflicts(made, Made(theirs, schema=("main",), name="order"))
    assert not conflicts(made, Made(theirs, schema=("other",), name="orders"))


def test_macros_have_their_names_apart() -> None:
    scalar, table = "created_scalar_macro", "created_table_macro"
    assert conflicts(Made(scalar, schema=("main",), name="m"), Made(scalar, schema=("main",), name="M"))
    assert not conflicts(Made(scalar, schema=("main",), name="m"), Made(table, schema=("main",), name="m"))
    assert not conflicts(Made("created_table", schema=("main",), name="m"), Made(table, schema=("main",), name="m"))


def test_creating_in_a_schema_that_was_dropped() -> None:
    made = Made("created_table", schema=("s",), name="t")
    assert conflicts(made, Made("dropped_schema", SCHEMA), schema_ids={("s",): SCHEMA})
    assert not conflicts(made, Made("dropped_schema", SCHEMA), schema_ids={("s",): SCHEMA + 1})


def test_dropping_a_schema_that_was_created_in() -> None:
    drop = Made("dropped_schema", SCHEMA, name="s")
    assert conflicts(drop, Made("created_table", schema=("S",), name="t"))
    assert conflicts(drop, Made("created_view", schema=("s",), name="t"))
    assert not conflicts(drop, Made("created_table", schema=("t",), name="t"))
    assert conflicts(drop, Made("dropped_schema", SCHEMA))


def test_schemas_of_one_name() -> None:
    assert conflicts(Made("created_schema", name="a"), Made("created_schema", name="A"))
    assert not conflicts(Made("created_schema", name="a"), Made("created_schema", name="b"))


def test_views_are_altered_and_dropped_once() -> None:
    assert conflicts(Made("altered_view", VIEW), Made("altered_view", VIEW))
    assert conflicts(Made("dropped_view", VIEW), Made("dropped_view", VIEW))
    assert not conflicts(Made("altered_view", VIEW), Made("altered_view", VIEW + 1))


def test_a_conflict_says_who_did_what() -> None:
    ours = Intent((Made("inserted_into_table", TABLE, ("main",), "orders"),))
    found = conflict_between(ours, after(Made("altered_table", TABLE), author="jobs"), {})
    assert found is not None
    assert (found.what, found.did, found.snapshot, found.author) == ("main.orders", "altered it", 43, "jobs")


def test_the_alias_of_a_flush_counts_as_one() -> None:
    assert conflicts(Made("inlined_delete", TABLE), Made("flushed_inlined", TABLE))
