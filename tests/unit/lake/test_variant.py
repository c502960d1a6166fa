"""The bytes of a VARIANT, against DuckDB's own."""

from __future__ import annotations

import duckdb
import pytest

from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.types import ColumnType, type_from_text
from dbt.adapters.ducklake.lake.values import parse_value
from dbt.adapters.ducklake.lake.variant import OF_NO_TYPE, _held, _names, variant_of, variant_of_text, variant_parts

HELD = "CAST(variant_to_parquet_variant(v) AS STRUCT(metadata BLOB, value BLOB))"


@pytest.mark.parametrize("text", ["", "42", "null", "é", "x" * 63, "x" * 64, "é" * 32, "it's \\x", "x" * 70_000])
def test_a_text(text: str) -> None:
    made = variant_of_text(text)
    assert parse_value(ColumnType("variant"), text) == made
    with duckdb.connect() as connection:
        sql = "SELECT v::VARCHAR, variant_typeof(v) FROM (SELECT variant_bytes_to_variant($1::BLOB) AS v)"
        assert connection.execute(sql, [made]).fetchall() == [(text, "VARCHAR")]


FALLING = ", ".join(f"'k{number:03}': {{'b': [{number}, NULL], 'a': 'x'}}" for number in range(299, -1, -1))


@pytest.mark.parametrize(
    "value",
    ["1", "NULL", "'text'", "{'a': 1, 'b': [1, 2]}", "{'" + "n" * 300 + "': {'x': 1}}", "map {'k': date '2020-01-01'}",
     "{" + ", ".join(f"'{'long' * 20}{number}': {number}" for number in range(900)) + "}", f"{{{FALLING}}}",
     f"[{{{FALLING}}}, {{'b': 2, 'a': {{{FALLING}}}}}]", "{'b': '', 'a': repeat('x', 70000)}", "range(300)::INT[]",
     "[]::INT[]", "repeat('x', 64)", "{'b': [repeat('x', 64), ''], 'a': repeat('y', 64)}"],
)  # fmt: skip
def test_its_parts(value: str) -> None:
    with duckdb.connect() as connection:
        both = f"SELECT {HELD} AS p, v FROM (SELECT ({value})::VARIANT AS v)"
        sql = f"SELECT p.metadata || p.value, v::VARCHAR FROM ({both})"
        ((whole, text),) = connection.execute(sql).fetchall()
        metadata, held = variant_parts(whole)
        read = connection.execute("SELECT variant_bytes_to_variant($1::BLOB)::VARCHAR", [metadata + held]).fetchall()
    # Some versions write fields in the order of the bytes, and all read them so.
    assert sorted(str(read[0][0])) == sorted(str(text))
    assert variant_parts(metadata + held) == (metadata, held)


def test_fields_are_in_the_order_of_their_names() -> None:
    with duckdb.connect() as connection:
        sql = f"SELECT p.metadata || p.value FROM (SELECT {HELD} AS p FROM (SELECT ({{{FALLING}}})::VARIANT AS v))"
        ((whole,),) = connection.execute(sql).fetchall()
        metadata, held = variant_parts(whole)
        names, _ = _names(metadata + held)
        of = [names[field] for field in _held(held).fields]
        assert of == sorted(of)
        assert len(of) == 300


BROKEN = [b"", b"\x01", b"\x11\x00\x00", b"\x11\x05\x00", b"\xd1\x00\x00\x00\x00", b"\x11\xff"]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_none(broken: bytes) -> None:
    with pytest.raises(UnreadableValue, match="variant"):
        variant_parts(broken)


@pytest.mark.parametrize(
    ("kind", "text", "of"),
    [("boolean", "true", "BOOLEAN"), ("int8", "-128", "TINYINT"), ("int32", "-129", "INTEGER"),
     ("uint32", "4294967295", "UINTEGER"),
     ("int64", "-9223372036854775808", "BIGINT"), ("uint64", "9223372036854775807", "UBIGINT"),
     ("float32", "0.1", "FLOAT"), ("float64", "0.1", "DOUBLE"), ("float64", "nan", "DOUBLE"),
     ("date", "1200-01-01", "DATE"),
     ("timestamp", "1969-12-31 23:59:59.999999", "TIMESTAMP"), ("timestamptz", "2020-01-01 10:00:00+00", "TIMESTAMPTZ"),
     ("blob", "\\x00\\xABz", "BLOB"), ("varchar", "it's", "VARCHAR"), ("decimal(4,2)", "-1.50", "DECIMAL(4,2)"),
     ("decimal(38,10)", "-1234567890123456789012345678.0123456789", "DECIMAL(38,10)")],
)  # fmt: skip
def test_values_of_plain_types(kind: str, text: str, of: str) -> None:
    column_type = type_from_text(kind)
    made = variant_of(column_type, parse_value(column_type, text))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        theirs_is = f"CAST($2 AS {of})::VARIANT::VARCHAR"
        sql = f"SELECT v::VARCHAR, {theirs_is} FROM (SELECT variant_bytes_to_variant($1::BLOB) AS v)"
        ((ours, theirs),) = connection.execute(sql, [made, text]).fetchall()
    assert ours == theirs


NOT_HELD = [("uuid", "12345678-1111-1111-1111-111111111111"), ("time", "10:00:00"), ("int128", "9" * 30)]


@pytest.mark.parametrize(("kind", "text"), NOT_HELD)
def test_values_that_it_does_not_have(kind: str, text: str) -> None:
    assert variant_of(ColumnType(kind), parse_value(ColumnType(kind), text)) == OF_NO_TYPE
