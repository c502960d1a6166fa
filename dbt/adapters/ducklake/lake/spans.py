"""Spans of time as options and statements give them, such as `2 days`, `1 month 12 hours` or `36:00:00`."""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timedelta

_PART = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\s*(?P<hours>\d+):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}(?:\.\d+)?))?")
_SECONDS: dict[str, float] = {"second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "hour": 3600, "h": 3600}
_SECONDS |= {"day": 86400, "d": 86400, "week": 604800, "w": 604800}
_SECONDS |= {"millisecond": 1e-3, "ms": 1e-3, "microsecond": 1e-6, "us": 1e-6}
_MONTHS = {"month": 1, "mon": 1, "quarter": 3, "year": 12, "y": 12, "decade": 120}


class NotASpan(ValueError):
    pass


def moment_before(span: str, moment: datetime) -> datetime:
    """The moment a span earlier; months go by the calendar. NotASpan."""
    months, seconds = _parts(span)
    earlier = _months_before(moment, months)
    try:
        return earlier - timedelta(seconds=seconds)
    except OverflowError as error:
        raise NotASpan(span) from error


def check_span(span: str) -> None:
    """NotASpan where it is none."""
    _parts(span)


def _parts(span: str) -> tuple[int, float]:
    months, seconds, place = 0, 0.0, 0
    while span[place:].strip():
        if match := _CLOCK.match(span, place):
            clock = match.groupdict(default="0")
            seconds += int(clock["hours"]) * 3600 + int(clock["minutes"]) * 60 + float(clock["seconds"])
        elif match := _PART.match(span, place):
            unit, number = match["unit"].lower(), float(match["number"])
            unit = unit if unit in _SECONDS or unit in _MONTHS else unit.removesuffix("s")
            if unit in _MONTHS and number == int(number):
                months += int(number) * _MONTHS[unit]
            elif unit in _SECONDS:
                seconds += number * _SECONDS[unit]
            else:
                raise NotASpan(span)
        else:
            raise NotASpan(span)
        place = match.end()
    if not span.strip():
        raise NotASpan(span)
    return months, seconds


def _months_before(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.year * 12 + moment.month - 1 - months, 12)
    if years < 1:
        raise NotASpan(f"{months} months")
    return moment.replace(
        year=years, month=month + 1, day=min(moment.day, calendar.monthrange(years, month + 1)[1])
    )  # fmt: skip
