"""DuckDB's deletion vectors: the positions in a `.puffin` file.

With one set of positions the file is a bare deletion-vector-v1 blob. With several it is a Puffin file with a footer: a
blob for each snapshot that deleted rows, which holds all that were deleted until then.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

from pyroaring import BitMap64

from dbt.adapters.ducklake.spark.errors import UnreadableFile

_MAGIC = b"\xd1\xd3\x39\x64"
_FILE_MAGIC = b"PFA1"
_TYPE, _SNAPSHOT = "deletion-vector-v1", "ducklake-snapshot-id"
# Behind the footer's JSON: its length, flags and the magic again.
_TAIL = 12


def positions_in(path: str, content: bytes) -> list[tuple[int, int | None]]:
    """The deleted positions, each with the snapshot that deleted it, where the file says it. UnreadableFile where it is
    not whole."""
    if not content.startswith(_FILE_MAGIC):
        return [(position, None) for position in _positions(path, content)]
    found: dict[int, int | None] = {}
    for snapshot, blob in sorted(_blobs(path, content), key=lambda blob: blob[0] or 0):
        for position in _positions(path, blob):
            found.setdefault(position, snapshot)
    return sorted(found.items())


def _positions(path: str, blob: bytes) -> BitMap64:
    length, body, checksum = int.from_bytes(blob[:4], "big"), blob[4:-4], int.from_bytes(blob[-4:], "big")
    if len(body) != length or body[:4] != _MAGIC or zlib.crc32(body) != checksum:
        raise UnreadableFile(path, "it is not a whole deletion vector")
    return BitMap64.deserialize(body[4:])


def _blobs(path: str, content: bytes) -> Iterator[tuple[int | None, bytes]]:
    """The deletion vectors of a Puffin file with their snapshots: all have one, or none has."""
    described = [one for one in _footer(path, content)["blobs"] if one["type"] == _TYPE]
    snapshots = [one.get("properties", {}).get(_SNAPSHOT) for one in described]
    if not described or (None in snapshots and any(snapshots)):
        raise UnreadableFile(path, "it has no deletion vectors, or not all say their snapshot")
    for one, snapshot in zip(described, snapshots, strict=True):
        start, length = int(one["offset"]), int(one["length"])
        yield None if snapshot is None else int(snapshot), content[start : start + length]


def _footer(path: str, content: bytes) -> Any:
    length, flags = int.from_bytes(content[-_TAIL:-8], "little"), content[-8:-4]
    payload = content[-_TAIL - length : -_TAIL]
    is_whole = content[-4:] == _FILE_MAGIC and content[-_TAIL - length - 4 : -_TAIL - length] == _FILE_MAGIC
    if not is_whole or any(flags):
        raise UnreadableFile(path, "its footer is not whole, or compressed")
    try:
        return json.loads(payload)
    except ValueError as error:
        raise UnreadableFile(path, "its footer is not JSON") from error
