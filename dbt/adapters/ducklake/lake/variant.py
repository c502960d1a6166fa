"""VARIANT as Parquet has it: the bytes of its metadata, which name fields of objects, and behind them its value."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.errors import UnreadableValue

# Version 1, names in order, and none of them.
_NO_NAMES = b"\x11\x00\x00"
# Of a value's first byte the lowest two bits say what it is, and the others its length or its type.
_SHORT_TEXT, _LONGEST_SHORT = 0b01, 63
_TEXT = 16 << 2


def variant_of_text(text: str) -> bytes:
    """A VARIANT that is a text."""
    held = text.encode()
    if len(held) <= _LONGEST_SHORT:
        return _NO_NAMES + bytes([len(held) << 2 | _SHORT_TEXT]) + held
    return _NO_NAMES + bytes([_TEXT]) + len(held).to_bytes(4, "little") + held


def variant_parts(variant: bytes) -> tuple[bytes, bytes]:
    """The metadata and the value. UnreadableValue."""
    width = (variant[0] >> 6) + 1 if variant else 0

    def number(place: int) -> int:
        at = 1 + place * width
        return int.from_bytes(variant[at : at + width], "little")

    # How many names there are, where each begins and the last ends, and the names.
    names = number(0)
    end = 1 + width * (names + 2) + number(names + 1)
    if not 3 <= end < len(variant):
        raise UnreadableValue("variant", variant.hex())
    return variant[:end], variant[end:]
