from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.snapshot.load import aliases_from_text, aliases_text


@pytest.mark.parametrize(
    "aliases", [(), ("a",), ("a", "b c"), ('"a',), ('a"', '"'), ('a","b', 'c""d'), (",", '",'), ("", "b")]
)
def test_names_of_a_views_columns_are_read_as_they_were_written(aliases: tuple[str, ...]) -> None:
    assert aliases_from_text(aliases_text(aliases)) == aliases
