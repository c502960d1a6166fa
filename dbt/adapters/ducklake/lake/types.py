"""DuckLake's column types, and which of them may widen into which."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbt.adapters.ducklake.lake.errors import InvalidMetadata

SIGNED = ("int8", "int16", "int32", "int64", "int128")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64", "uint128")
INTEGERS = frozenset(SIGNED + UNSIGNED)
FLOATS = frozenset({"float32", "float64"})
TIMESTAMPS = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"})
CONTAINERS = frozenset({"struct", "list", "map"})
_OTHERS = frozenset(
    {"boolean", "decimal", "time", "time_ns", "timetz", "date", "timestamptz", "interval", "varchar", "blob", "uuid"}
    | {"json", "timestamptz_ns", "variant", "geometry", "null", "unknown"}
)
_KNOWN = INTEGERS | FLOATS | TIMESTAMPS | CONTAINERS | _OTHERS
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type as `column_type` names it. What a container holds is in the column's children."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def text(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name

    @property
    def is_container(self) -> bool:
        return self.name in CONTAINERS

    def __str__(self) -> str:
        return self.text


def decimal(precision: int, scale: int) -> ColumnType:
    return ColumnType("decimal", precision, scale)


def type_from_text(text: str) -> ColumnType:
    """Read a `column_type`; a name that DuckLake does not have is an error, as in DuckDB."""
    folded = text.lower()
    if match := _DECIMAL.fullmatch(folded):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return decimal(precision, scale)
    elif folded == "timestamp_us":
        return ColumnType("timestamp")
    elif folded in _KNOWN and folded != "decimal":
        return ColumnType(folded)
    raise InvalidMetadata(
        f"{text!r} is not a column type of DuckLake",
        "Types are those of DuckLake, such as int32, varchar, decimal(18,3).",
    )


# Digits that an integer type may need before the decimal point; the widest ones go only to decimals of 38 digits.
_INTEGER_DIGITS = {"int8": 3, "int16": 5, "int32": 10, "int64": 19, "uint8": 3, "uint16": 5, "uint32": 10, "uint64": 20}
_INTEGER_DIGITS |= {"int128": 28, "uint128": 28}
_BITS = {name: 8 << index for index, name in enumerate(SIGNED)} | {
    name: 8 << index for index, name in enumerate(UNSIGNED)
}

_WIDER = {
    "boolean": INTEGERS,
    "float32": frozenset({"float64"}),
    "date": TIMESTAMPS | {"timestamptz"},
    "timestamp_s": frozenset({"timestamp", "timestamp_ms", "timestamp_ns"}),
    "timestamp_ms": frozenset({"timestamp", "timestamp_ns"}),
    "timestamp": frozenset({"timestamp_ns", "timestamptz"}),
}


def can_widen(old: ColumnType, new: ColumnType) -> bool:
    """Whether ALTER may change a column from `old` to `new` without a look at its values."""
    if old.is_container or new.is_container:
        return False
    if new.name == "json":
        return old.name != "json"
    if old.name in INTEGERS:
        return _integer_can_widen(old, new)
    if old.name == "decimal":
        if new.name == "decimal":
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale and new != old
        return new.name in FLOATS
    return new.name in _WIDER.get(old.name, frozenset())


def keeps_bounds(old: ColumnType, new: ColumnType) -> bool:
    """Whether the text of a value is that of the same value in the other type: 0.1 as a float32 is no 0.1 as a float64,
    and a timestamp without a zone is in each session's own."""
    both = {old.name, new.name}
    return old == new or both <= INTEGERS or both == {"decimal"}


def _integer_can_widen(old: ColumnType, new: ColumnType) -> bool:
    if new.name in FLOATS:
        return True
    if new.name == "decimal":
        return new.precision - new.scale >= _INTEGER_DIGITS[old.name]
    if new.name not in INTEGERS or _BITS[new.name] <= _BITS[old.name]:
        return False
    return new.name in SIGNED or old.name in UNSIGNED
