"""Spans of time, and the moment that one ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dbt.adapters.ducklake.lake.errors import InvalidOption
from dbt.adapters.ducklake.lake.options import stored_value
from dbt.adapters.ducklake.lake.spans import NotASpan, moment_before

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "earlier"),
    [
        ("2 days", NOW - timedelta(days=2)),
        ("1 day", NOW - timedelta(days=1)),
        ("36:00:00", NOW - timedelta(hours=36)),
        ("1 week 3 hours", NOW - timedelta(days=7, hours=3)),
        ("1.5 hours", NOW - timedelta(minutes=90)),
        ("90 MINUTES", NOW - timedelta(minutes=90)),
        ("0 seconds", NOW),
        ("1 month", datetime(2026, 2, 28, 12, tzinfo=UTC)),
        ("1 year 1 day", datetime(2025, 3, 30, 12, tzinfo=UTC)),
        ("250ms", NOW - timedelta(milliseconds=250)),
    ],
)
def test_a_moment_before(span: str, earlier: datetime) -> None:
    assert moment_before(span, NOW) == earlier


@pytest.mark.parametrize(
    "span", ["", "yesterday", "2", "days 2", "2 fortnights", "1.5 months", "-1 day", "9999999 years"]
)
def test_what_is_no_span(span: str) -> None:
    with pytest.raises(NotASpan):
        moment_before(span, NOW)


def test_an_option_takes_a_span_only() -> None:
    assert stored_value("expire_older_than", "7 days") == "7 days"
    assert stored_value("expire_older_than", "") == ""
    with pytest.raises(InvalidOption, match="It takes a span of time, such as 2 days"):
        stored_value("delete_older_than", "soon")
