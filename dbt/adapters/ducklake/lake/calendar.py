"""Dates and times as DuckDB counts and spells them, far beyond the years of Python's own.

Days and ticks since 1970 in the proleptic Gregorian calendar; infinities are the counts that DuckDB and its Parquet
files use, so counts compare as their values do.
"""

from __future__ import annotations

import re
from typing import NamedTuple

INFINITE_DAYS = 2**31 - 1
INFINITE_TICKS = 2**63 - 1
TICKS_PER_SECOND = {
    "timestamp_s": 1,
    "timestamp_ms": 10**3,
    "timestamp": 10**6,
    "timestamptz": 10**6,
    "timestamp_ns": 10**9,
}
TIME_TICKS_PER_SECOND = {"time": 10**6, "timetz": 10**6, "time_ns": 10**9}

_DATE = r"(?P<year>-?\d+)-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?P<bc> \(BC\))?"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
_OFFSET = r"(?P<offset>Z|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)?"
_DATE_ONLY = re.compile(_DATE)
_DATE_AND_CLOCK = re.compile(rf"{_DATE}(?:[ T]{_CLOCK} ?{_OFFSET})?")
_CLOCK_ONLY = re.compile(_CLOCK + _OFFSET)
_INTERVAL_PART = re.compile(r"([+-]?\d+) (year|month|mon|day|microsecond)s?")
_INTERVAL_CLOCK = re.compile(
    r"(?P<sign>[+-])?(?P<hour>\d+):(?P<minute>\d{2}):(?P<second>\d{2})(?:\.(?P<fraction>\d{1,6}))?"
)


class TimeWithOffset(NamedTuple):
    """A timetz: microseconds of the local day, and seconds that its zone is ahead of UTC."""

    micros: int
    offset: int


class Interval(NamedTuple):
    months: int
    days: int
    micros: int


def days_from_date(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date of the proleptic Gregorian calendar, year 0 being 1 BC."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def date_from_days(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def parse_date(text: str) -> int:
    """Days of a date's text. ValueError if it is none, here and below."""
    if (endless := _endless(text, INFINITE_DAYS)) is not None:
        return endless
    return _days(_matched(_DATE_ONLY, text))


def date_text(days: int) -> str:
    if abs(days) == INFINITE_DAYS:
        return "infinity" if days > 0 else "-infinity"
    date, era = _date_parts(days)
    return date + era


def parse_timestamp(text: str, type_name: str) -> int:
    """Ticks of a timestamp's text; a time zone in it is taken into account, none means UTC."""
    if (endless := _endless(text, INFINITE_TICKS)) is not None:
        return endless
    match = _matched(_DATE_AND_CLOCK, text)
    per_second = TICKS_PER_SECOND[type_name]
    clock = _clock_ticks(match, per_second) if match["hour"] else 0
    return _days(match) * 86400 * per_second + clock - _offset_seconds(match["offset"]) * per_second


def timestamp_text(ticks: int, type_name: str) -> str:
    if abs(ticks) == INFINITE_TICKS:
        return "infinity" if ticks > 0 else "-infinity"
    per_second = TICKS_PER_SECOND[type_name]
    days, clock = divmod(ticks, 86400 * per_second)
    date, era = _date_parts(days)
    return f"{date}{era} {_clock_text(clock, per_second)}" + ("+00" if type_name == "timestamptz" else "")


def parse_time(text: str, type_name: str) -> int:
    match = _matched(_CLOCK_ONLY, text)
    if match["offset"]:
        raise ValueError(text)
    return _clock_ticks(match, TIME_TICKS_PER_SECOND[type_name])


def time_text(ticks: int, type_name: str) -> str:
    return _clock_text(ticks, TIME_TICKS_PER_SECOND[type_name])


def parse_timetz(text: str) -> TimeWithOffset:
    match = _matched(_CLOCK_ONLY, text)
    return TimeWithOffset(_clock_ticks(match, 10**6), _offset_seconds(match["offset"]))


def timetz_text(value: TimeWithOffset) -> str:
    hours, rest = divmod(abs(value.offset), 3600)
    minutes, seconds = divmod(rest, 60)
    offset = f"{'-' if value.offset < 0 else '+'}{hours:02}"
    if minutes or seconds:
        offset += f":{minutes:02}" + (f":{seconds:02}" if seconds else "")
    return _clock_text(value.micros, 10**6) + offset


def parse_interval(text: str) -> Interval:
    """An interval as DuckDB or PostgreSQL's `postgres` style spells it: `1 year 2 months 3 days 04:05:06.7`."""
    found = dict.fromkeys(("year", "month", "mon", "day", "microsecond"), 0)
    micros, position = 0, 0
    while position < len(text):
        if part := _INTERVAL_PART.match(text, position):
            found[part[2]] += int(part[1])
        elif part := _INTERVAL_CLOCK.match(text, position):
            clock = _clock_ticks(part, 10**6, hours_of_a_day=False)
            micros += -clock if part["sign"] == "-" else clock
        else:
            raise ValueError(text)
        position = part.end() + 1
        if part.end() < len(text) and text[part.end()] != " ":
            raise ValueError(text)
    if not text:
        raise ValueError(text)
    return Interval(found["year"] * 12 + found["month"] + found["mon"], found["day"], micros + found["microsecond"])


def interval_text(value: Interval) -> str:
    """In parts that lose nothing: DuckDB casts this text back to the same three numbers."""
    return f"{value.months} months {value.days} days {value.micros} microseconds"


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return match


def _endless(text: str, most: int) -> int | None:
    return {"infinity": most, "-infinity": -most}.get(text.lower())


def _days(match: re.Match[str]) -> int:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    year = 1 - year if match["bc"] else year
    days = days_from_date(year, month, day)
    if not 1 <= month <= 12 or date_from_days(days) != (year, month, day):
        raise ValueError(match[0])
    return days


def _date_parts(days: int) -> tuple[str, str]:
    year, month, day = date_from_days(days)
    return f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}", "" if year > 0 else " (BC)"


def _clock_ticks(match: re.Match[str], per_second: int, hours_of_a_day: bool = True) -> int:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if minute > 59 or second > 59 or (hours_of_a_day and (hour > 24 or (hour == 24 and minute + second))):
        raise ValueError(match[0])
    ticks, below = divmod(int((match["fraction"] or "0").ljust(9, "0")), 10**9 // per_second)
    if below:
        raise ValueError(match[0])
    return (hour * 3600 + minute * 60 + second) * per_second + ticks


def _clock_text(ticks: int, per_second: int) -> str:
    seconds, fraction = divmod(ticks, per_second)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    digits = f"{fraction * (10**9 // per_second):09}".rstrip("0")
    return f"{hour:02}:{minute:02}:{second:02}" + (f".{digits}" if digits else "")


def _offset_seconds(text: str | None) -> int:
    if not text or text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    digits = digits.rjust(len(digits) + len(digits) % 2, "0").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:])
    return -seconds if text[0] == "-" else seconds
