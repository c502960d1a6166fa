"""The bytes of a VARIANT, against DuckDB's own."""

from __future__ import annotations

import duckdb
import pytest

from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.types import ColumnType
from dbt.adapters.ducklake.lake.values import parse_value
from dbt.adapters.ducklake.lake.variant import variant_of_text, variant_parts

HELD = "CAST(variant_to_parquet_variant(v) AS STRUCT(metadata BLOB, value BLOB))"


@pytest.mark.parametrize("text", ["", "42", "null", "é", "x" * 63, "x" * 64, "é" * 32, "it's \\x", "x" * 70_000])
def test_a_text(text: str) -> None:
    made = variant_of_text(text)
    assert parse_value(ColumnType("variant"), text) == made
    with duckdb.connect() as connection:
        sql = "SELECT v::VARCHAR, variant_typeof(v) FROM (SELECT variant_bytes_to_variant($1::BLOB) AS v)"
        assert connection.execute(sql, [made]).fetchall() == [(text, "VARCHAR")]


@pytest.mark.parametrize(
    "value",
    ["1", "NULL", "'text'", "{'a': 1, 'b': [1, 2]}", "{'" + "n" * 300 + "': {'x': 1}}", "map {'k': date '2020-01-01'}",
     "{" + ", ".join(f"'{'long' * 20}{number}': {number}" for number in range(900)) + "}"],
)  # fmt: skip
def test_its_parts(value: str) -> None:
    with duckdb.connect() as connection:
        sql = f"SELECT p.metadata, p.value FROM (SELECT {HELD} AS p FROM (SELECT ({value})::VARIANT AS v))"
        ((metadata, held),) = connection.execute(sql).fetchall()
    assert variant_parts(metadata + held) == (metadata, held)


BROKEN = [b"", b"\x01", b"\x11\x00\x00", b"\x11\x05\x00", b"\xd1\x00\x00\x00\x00", b"\x11\xff"]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_none(broken: bytes) -> None:
    with pytest.raises(UnreadableValue, match="variant"):
        variant_parts(broken)
