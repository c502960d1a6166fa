"""Casts: from one of Spark's types to another, by what DuckDB has to give the same value, or the same error."""

from __future__ import annotations

import re

from sqlglot import exp

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.statements.translation.typed import Typed, Untranslatable, error
from dbt.adapters.ducklake.statements.translation.types import (
    FLOATS,
    decimal_of,
    duckdb_type,
    is_decimal,
    is_exact,
    is_number,
    is_whole,
    same,
)

# What Spark takes off both ends of a text before it reads a value in it.
_SPACE = r"[\x01-\x20\x7f]*"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)"
_FORMS = {
    "whole": rf"{_SPACE}[+-]?\d+{_SPACE}",
    "float": rf"{_SPACE}{_NUMBER}([eE][+-]?\d+)?{_SPACE}",
    "decimal": rf"{_SPACE}{_NUMBER}{_SPACE}",
    "date": rf"{_SPACE}\d{{4}}-\d\d-\d\d{_SPACE}",
    "timestamp": rf"{_SPACE}\d{{4}}-\d\d-\d\d([ T]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{{1,6}})?)?{_SPACE}",
}
_DIGITS_OF_DOUBLE = 15
_TRUE, _FALSE = "'t', 'true', 'y', 'yes', '1'", "'f', 'false', 'n', 'no', '0'"
_FIXED_ZONES = frozenset({"utc", "etc/utc", "gmt", "z", "+00:00"})
# Zones of which Java and DuckDB have different rules: those that have no place, and one in another time zone database.
_PLACE = re.compile(r"[A-Za-z]+(/[A-Za-z_]+)+")
_UNLIKE = frozenset({"america/tijuana", "america/ensenada", "america/santa_isabel", "mexico/bajanorte"})


class Zone:
    """The time zone of the session that makes a view. DuckDB's reader may have another: a view does not go by it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def clock_of(self, zoned: str) -> str:
        """The timestamp without a zone that the clock shows at a moment."""
        return f"timezone('{self._safe}', {zoned})"

    def moment_of(self, naive: str, node: exp.Expr | None) -> str:
        """The moment at which the clock shows that."""
        if self.name.lower() not in _FIXED_ZONES:
            raise Untranslatable(node, f"the session's time zone {self.name} has hours that come twice or never")
        return f"timezone('{self._safe}', {naive})"

    @property
    def _safe(self) -> str:
        if self.name.lower() in _FIXED_ZONES:
            return "UTC"
        if not _PLACE.fullmatch(self.name) or self.name.lower() in _UNLIKE:
            raise Untranslatable(None, f"the session's time zone {self.name} is another one for DuckDB")
        return self.name


def to_double(value: Typed) -> str:
    if value.kind == "float64":
        return value.sql
    if is_decimal(value.type):
        # By its digits: DuckDB divides the unscaled number, and may be off by the last bit.
        return f"CAST(CAST({value.sql} AS VARCHAR) AS DOUBLE)"
    return f"CAST({value.sql} AS DOUBLE)"


def widened(value: Typed, wanted: Column, zone: Zone, node: exp.Expr | None) -> Typed:
    """The value as one of a type that has all values of its own."""
    if same(value.type, wanted):
        return value
    if value.kind == "unknown":
        return Typed(f"CAST(NULL AS {duckdb_type(wanted)})", wanted)
    if wanted.type.name == "float64" and is_number(value.type):
        return Typed(to_double(value), wanted)
    if is_number(value.type) and is_number(wanted):
        return Typed(f"CAST({value.sql} AS {duckdb_type(wanted)})", wanted)
    return cast(value, wanted, zone, node)


def cast(value: Typed, wanted: Column, zone: Zone, node: exp.Expr | None, is_try: bool = False) -> Typed:
    """Spark's CAST in ANSI mode, or TRY_CAST."""
    if same(value.type, wanted):
        return value
    if value.kind == "unknown":
        return Typed(f"CAST(NULL AS {duckdb_type(wanted)})", wanted)
    sql = _cast(value, wanted, zone, node, is_try)
    if sql is None:
        raise Untranslatable(node, f"DuckDB casts {value.type.type} to {wanted.type} in another way")
    return Typed(sql, wanted)


def _cast(value: Typed, wanted: Column, zone: Zone, node: exp.Expr | None, is_try: bool) -> str | None:
    name, kind = wanted.type.name, duckdb_type(wanted)
    function = "TRY_CAST" if is_try else "CAST"
    if name == "varchar":
        return _to_text(value, zone)
    if value.kind == "varchar":
        return _from_text(value, wanted, zone, node, is_try)
    if is_number(value.type) and is_number(wanted):
        return _between_numbers(value, wanted, function)
    if value.kind == "boolean" and is_number(wanted):
        # Without a digit before the point there is no place for 1.
        has_place = not is_decimal(wanted) or wanted.type.precision > wanted.type.scale
        return f"CAST({value.sql} AS {kind})" if has_place else None
    if is_number(value.type) and name == "boolean":
        return f"({value.sql} <> 0)"
    return _between_moments(value, name, zone, node)


def _between_moments(value: Typed, name: str, zone: Zone, node: exp.Expr | None) -> str | None:
    match value.kind, name:
        case "date", "timestamp":
            return f"CAST({value.sql} AS TIMESTAMP)"
        case "date", "timestamptz":
            return zone.moment_of(f"CAST({value.sql} AS TIMESTAMP)", node)
        case "timestamp", "date":
            return f"CAST({value.sql} AS DATE)"
        case "timestamp", "timestamptz":
            return zone.moment_of(value.sql, node)
        case "timestamptz", "date":
            return f"CAST({zone.clock_of(value.sql)} AS DATE)"
        case "timestamptz", "timestamp":
            return zone.clock_of(value.sql)
    return None


def _between_numbers(value: Typed, wanted: Column, function: str) -> str | None:
    kind = duckdb_type(wanted)
    if wanted.type.name == "float64":
        return to_double(value)
    if wanted.type.name == "float32":
        return f"CAST({value.sql} AS FLOAT)" if is_whole(value.type) or value.kind in FLOATS else None
    if is_whole(wanted):
        # What is past the greatest number is rounded to it, and a decimal goes through a double.
        if value.kind in FLOATS and function == "TRY_CAST":
            return None
        if is_decimal(value.type) and value.type.type.precision > _DIGITS_OF_DOUBLE and wanted.type.name != "int64":
            return None
        # Spark cuts a fraction off, DuckDB rounds.
        return f"{function}({value.sql if is_whole(value.type) else f'trunc({value.sql})'} AS {kind})"
    if is_exact(value.type):
        return f"{function}({value.sql} AS {kind})"
    if value.kind != "float64":
        return None
    # Spark takes the digits of a double's text. DuckDB rounds one with an exponent up.
    text = f"CAST({value.sql} AS VARCHAR)"
    refused = error("This number is too small or too large to be the same decimal in DuckDB and in Spark.")
    return f"CASE WHEN contains({text}, 'e') THEN {refused} ELSE {function}({text} AS {kind}) END"


def _to_text(value: Typed, zone: Zone) -> str | None:
    if is_decimal(value.type) and value.type.type.precision == value.type.type.scale:
        # DuckDB writes such a number without the zero before its point.
        wider = decimal_of(value.type.type.precision + 1, value.type.type.scale)
        return None if wider is None else f"CAST(CAST({value.sql} AS {duckdb_type(wider)}) AS VARCHAR)"
    if is_exact(value.type) or value.kind == "boolean":
        return f"CAST({value.sql} AS VARCHAR)"
    if value.kind in ("date", "timestamp"):
        return _text_of_years(value.sql)
    if value.kind == "timestamptz":
        return _text_of_years(zone.clock_of(value.sql))
    return None


def _text_of_years(value: str) -> str:
    """The text of a date or a timestamp, of which both engines have the same form in years of four digits only."""
    refused = error("This date is before year 1 or beyond year 9999, for which DuckDB and Spark have different texts.")
    return (
        f"CASE WHEN {value} < '0001-01-01' OR {value} >= '10000-01-01' THEN {refused} ELSE CAST({value} AS VARCHAR) END"
    )


def _from_text(value: Typed, wanted: Column, zone: Zone, node: exp.Expr | None, is_try: bool) -> str | None:
    """A text that both engines read alike is read; another one is an error, or with TRY_CAST refused altogether, as
    Spark may have a value where DuckDB has none."""
    name, kind = wanted.type.name, duckdb_type(wanted)
    trimmed = f"trim({value.sql}, {_SPACES})"
    if name == "boolean":
        lowered = f"lower({trimmed})"
        otherwise = "NULL" if is_try else _wrong("BOOLEAN")
        return (
            f"CASE WHEN {lowered} IN ({_TRUE}) THEN TRUE WHEN {lowered} IN ({_FALSE}) THEN FALSE "
            f"WHEN {value.sql} IS NOT NULL THEN {otherwise} END"
        )
    if is_whole(wanted):
        form, read = _FORMS["whole"], f"{'TRY_CAST' if is_try else 'CAST'}({trimmed} AS {kind})"
    elif is_decimal(wanted) and not is_try:
        form, read = _FORMS["decimal"], f"CAST({trimmed} AS {kind})"
    elif name == "float64" and not is_try:
        form, read = _FORMS["float"], f"CAST({trimmed} AS DOUBLE)"
    elif name == "date" and not is_try:
        form, read = _FORMS["date"], f"CAST({trimmed} AS DATE)"
    elif name in ("timestamp", "timestamptz") and not is_try:
        naive = f"CAST({trimmed} AS TIMESTAMP)"
        form, read = _FORMS["timestamp"], naive if name == "timestamp" else zone.moment_of(naive, node)
    else:
        return None
    otherwise = "NULL" if is_try else _wrong(kind)
    return (
        f"CASE WHEN regexp_full_match({value.sql}, '{form}') THEN {read} "
        f"WHEN {value.sql} IS NOT NULL THEN {otherwise} END"
    )


_SPACES = " || ".join(["' '", *(f"chr({code})" for code in (*range(1, 32), 127))])


def _wrong(kind: str) -> str:
    return error(f"This text is no {kind}, or one that DuckDB and Spark read differently.")
