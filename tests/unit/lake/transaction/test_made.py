from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.errors import InvalidMetadata
from dbt.adapters.ducklake.lake.transaction.made import Made, changes_text, parse_changes


def test_changes_come_in_duckdbs_order() -> None:
    made = [
        Made("inlined_insert", 4),
        Made("inserted_into_table", 2),
        Made("created_table", schema=("s",), name='a "b", c'),
        Made("created_view", schema=("s", "t.u"), name="v"),
        Made("created_schema", schema=("s",), name="t.u"),
        Made("dropped_table", 1),
        Made("altered_table", 2),
    ]
    text = (
        'dropped_table:1,created_schema:"s"."t.u",created_table:"s"."a ""b"", c",created_view:"s"."t.u"."v",'
        "inserted_into_table:2,altered_table:2,inlined_insert:4"
    )
    assert changes_text(made) == text
    assert set(parse_changes(text)) == set(made)


def test_no_changes_are_no_text() -> None:
    assert changes_text([]) is None
    assert parse_changes(None) == ()
    assert parse_changes("") == ()


def test_a_change_is_said_once() -> None:
    assert changes_text([Made("altered_table", 2), Made("altered_table", 2, ("main",), "t")]) == "altered_table:2"


def test_words_are_read_in_any_case_and_names_as_they_are() -> None:
    assert parse_changes('Created_Schema:"A.b",COMPACTED_TABLE:3') == (
        Made("created_schema", name="A.b"),
        Made("compacted_table", 3),
    )


@pytest.mark.parametrize(
    "text",
    ["painted_table:3", "altered_table", "altered_table:x", 'created_table:"s"', 'created_schema:"s".',
     'created_schema:"s', "altered_table:1 ,dropped_table:2", "schemas_created=[main]"],
)  # fmt: skip
def test_what_duckdb_cannot_read_is_an_error(text: str) -> None:
    with pytest.raises(InvalidMetadata, match="changes_made"):
        parse_changes(text)
