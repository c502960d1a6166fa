"""DuckDB's deletion vectors: the positions in a `.puffin` file, which is a bare deletion-vector-v1 blob."""

from __future__ import annotations

import zlib

from pyroaring import BitMap64

from dbt.adapters.ducklake.spark.errors import UnreadableFile

_MAGIC = b"\xd1\xd3\x39\x64"


def positions_in(path: str, content: bytes) -> list[int]:
    """The deleted positions, ascending. UnreadableFile where the blob is not whole."""
    length, body, checksum = int.from_bytes(content[:4], "big"), content[4:-4], int.from_bytes(content[-4:], "big")
    if len(body) != length or body[:4] != _MAGIC or zlib.crc32(body) != checksum:
        raise UnreadableFile(path, "it is not a whole deletion vector")
    return list(BitMap64.deserialize(body[4:]))
