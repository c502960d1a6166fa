from __future__ import annotations

import json
import zlib

import pytest
from pyroaring import BitMap64

from dbt.adapters.ducklake.spark.errors import UnreadableFile
from dbt.adapters.ducklake.spark.puffin import positions_in

FAR = 2**33 + 5


def vector(*positions: int) -> bytes:
    body = b"\xd1\xd3\x39\x64" + BitMap64(positions).serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def file(*blobs: tuple[str | None, bytes], kind: str = "deletion-vector-v1", flags: bytes = bytes(4)) -> bytes:
    content, described = b"PFA1", []
    for snapshot, blob in blobs:
        properties = {} if snapshot is None else {"ducklake-snapshot-id": snapshot}
        described.append({"type": kind, "offset": len(content), "length": len(blob), "properties": properties})
        content += blob
    payload = json.dumps({"blobs": described}).encode()
    return content + b"PFA1" + payload + len(payload).to_bytes(4, "little") + flags + b"PFA1"


def test_a_bare_vector_says_no_snapshots() -> None:
    assert positions_in("x", vector(3, 1, FAR)) == [(1, None), (3, None), (FAR, None)]
    assert positions_in("x", vector()) == []


def test_a_position_is_of_the_first_snapshot_that_has_it() -> None:
    # In any order, and by number, not by text.
    content = file(("10", vector(1, 2, 3, FAR)), ("9", vector(1, 3)))
    assert positions_in("x", content) == [(1, 9), (2, 10), (3, 9), (FAR, 10)]


def test_vectors_without_snapshots_are_one() -> None:
    assert positions_in("x", file((None, vector(1)), (None, vector(2)))) == [(1, None), (2, None)]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PFA1",
        vector(1, 2)[:-1],
        vector(1, 2)[:-4] + bytes(4),
        file(("1", vector(1)))[:-1],
        file(("1", vector(1)), flags=b"\x01\0\0\0"),
        file(("1", vector(1)), (None, vector(2))),
        file(("1", vector(1)), kind="apache-datasketches-theta-v1"),
        file(("1", vector(1)[:-2])),
        file(),
        file(("1", vector(1))).replace(b'"blobs"', b'"blobs:'),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableFile):
        positions_in("x", content)
