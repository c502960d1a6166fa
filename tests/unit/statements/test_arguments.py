"""What stands in the parentheses of a CALL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dbt.adapters.ducklake.statements.arguments import moment_of, read_arguments
from dbt.adapters.ducklake.statements.errors import NotAllowed, NotUnderstood


def test_values_and_names() -> None:
    found = read_arguments("f", "'lake', t => 'a\\'b', n := -3, x => 0.5, y => TRUE, z => NULL", None)
    assert found.positional == ("lake",)
    assert found.named == {"t": "a'b", "n": -3, "x": 0.5, "y": True, "z": None}


@pytest.mark.parametrize("text", ["[1, 2, 3]", "array(1, 2, 3)", "[1,2,3]"])
def test_lists(text: str) -> None:
    assert read_arguments("f", f"'lake', versions => {text}, dry_run => true", None).named["versions"] == (1, 2, 3)
    assert read_arguments("f", "versions => []", None).named["versions"] == ()


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("now()", timedelta()),
        ("now() - interval '7 days'", timedelta(days=7)),
        ("current_timestamp - interval 7 days", timedelta(days=7)),
        ("CURRENT_TIMESTAMP() - INTERVAL '1' WEEK", timedelta(days=7)),
    ],
)
def test_moments_from_now(text: str, ago: timedelta) -> None:
    found = read_arguments("f", f"older_than => {text}, dry_run => true", None).named["older_than"]
    assert isinstance(found, datetime)
    assert abs(datetime.now(UTC) - ago - found) < timedelta(minutes=1)


def test_moments_as_texts() -> None:
    expected = datetime(2026, 1, 31, 12, tzinfo=UTC)
    for text in ("2026-01-31 12:00:00", "2026-01-31T13:00:00+01:00"):
        assert moment_of(text) == expected
        assert read_arguments("f", f"TIMESTAMPTZ '{text}'", None).positional == (expected,)
    assert abs(moment_of("2 days") - (datetime.now(UTC) - timedelta(days=2))) < timedelta(minutes=1)
    with pytest.raises(NotUnderstood, match="Give a moment"):
        moment_of("soon")


def test_what_is_not_known_or_twice() -> None:
    given = read_arguments("f", "'lake', catalog => 'other'", None)
    with pytest.raises(NotAllowed, match="an argument catalog"):
        given.taken("catalog", "table_name", required=1)
    with pytest.raises(NotAllowed, match="no table_name"):
        read_arguments("f", "'lake'", None).taken("catalog", "table_name", required=2)
