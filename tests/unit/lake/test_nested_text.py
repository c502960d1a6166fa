from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

from dbt.adapters.ducklake.lake import Column, ColumnType
from dbt.adapters.ducklake.lake.backends.duckdb_values import DuckDbStorage, duckdb_type
from dbt.adapters.ducklake.lake.columns import scalar
from dbt.adapters.ducklake.lake.errors import UnreadableValue
from dbt.adapters.ducklake.lake.nested_text import NotAsText, nested_text, parse_nested


def struct(name: str, *fields: Column) -> Column:
    return Column(name, ColumnType("struct"), fields)


def list_of(element: Column) -> Column:
    return Column("l", ColumnType("list"), (element,))


def map_of(key: Column, value: Column) -> Column:
    return Column("m", ColumnType("map"), (key, value))


TEXTS = list_of(scalar("element", "varchar"))
NUMBERS = map_of(scalar("key", "varchar"), scalar("value", "int32"))
PERSON = struct("s", scalar("a", "int32"), scalar("b c", "varchar"), scalar("q'x", "date"))


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        (TEXTS, "[]", []),
        (TEXTS, "[NULL]", [None]),
        (
            TEXTS,
            "[a, NULL, '', 'NULL', 'null', 'a,b', 'it\\'s', 'a\"b', x\\y, ' lead', '[z]', tab\tx, ünï]",
            ["a", None, "", "NULL", "null", "a,b", "it's", 'a"b', "x\\y", " lead", "[z]", "tab\tx", "ünï"],
        ),
        (NUMBERS, "{}", []),
        (NUMBERS, "{k=1, 'a=b'=NULL, ''=3, 'q\\'r'=4}", [("k", 1), ("a=b", None), ("", 3), ("q'r", 4)]),
        (
            PERSON,
            "{'a': 1, 'b c': 'it''s \"q\" , } { [ ] \\ x', 'q''x': CAST('2020-01-02' AS DATE)}",
            {"a": 1, "b c": 'it\'s "q" , } { [ ] \\ x', "q'x": 18263},
        ),
        (PERSON, "{'a': NULL, 'b c': NULL, 'q''x': NULL}", {"a": None, "b c": None, "q'x": None}),
        (
            list_of(struct("element", scalar("x", "float64"), scalar("y", "blob"))),
            "[{'x': nan, 'y': \\x00\\xAAab}, NULL]",
            [{"x": pytest.approx(float("nan"), nan_ok=True), "y": b"\x00\xaaab"}, None],
        ),
    ],
)
def test_what_duckdb_writes_is_read(column: Column, text: str, value: object) -> None:
    assert parse_nested(column, text) == value


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (TEXTS, ""), (TEXTS, "[a"), (TEXTS, "[a]x"), (TEXTS, "{a}"), (TEXTS, "['a"), (NUMBERS, "{k}"),
        (NUMBERS, "{k=x}"), (PERSON, "{'a': 1}"), (PERSON, "{'a': 1, 'b c': x"),
        (PERSON, "{'a': 1, 'b c': 'x', 'q''x': CAST('2020' AS DATE)}"),
        (PERSON, "{'a': 1, 'b c': 'x', 'q''x': NULL, 'more': 1}"),
    ],
)  # fmt: skip
def test_what_nobody_writes_is_refused(column: Column, text: str) -> None:
    with pytest.raises(UnreadableValue):
        parse_nested(column, text)


def test_strings_that_the_two_forms_spell_apart_are_not_written() -> None:
    for text in ("it's", "back\\slash", "nul\0", "a]", "{", 'a"b'):
        with pytest.raises(NotAsText):
            nested_text(TEXTS, [text])


def random_value(column: Column, chosen: random.Random, marks: str) -> Any:
    if chosen.random() < 0.15:
        return None
    name = column.type.name
    if name == "struct":
        return {child.name: random_value(child, chosen, marks) for child in column.children}
    if name == "list":
        return [random_value(column.children[0], chosen, marks) for _ in range(chosen.randint(0, 3))]
    if name == "map":
        keys = {"".join(chosen.choices(marks, k=3)) for _ in range(2)}
        return [(key, random_value(column.children[1], chosen, marks)) for key in sorted(keys)]
    if name == "varchar":
        return "".join(chosen.choices(marks, k=chosen.randint(0, 6)))
    if name == "blob":
        return chosen.randbytes(3)
    return chosen.randint(-9999, 9999) if name == "date" else chosen.randint(-1000, 1000) / 4


DEEP = struct(
    "s",
    scalar("n", "float64"),
    list_of(struct("element", scalar("d", "date"), scalar("t", "varchar"))),
    map_of(scalar("key", "varchar"), struct("value", scalar("v", "varchar"))),
)


@pytest.mark.parametrize("seed", range(60))
def test_what_we_write_duckdb_and_we_read_alike(seed: int) -> None:
    value = random_value(DEEP, random.Random(seed), "ab ,:=NUL\t#;é-/")
    if value is not None:
        assert parse_nested(DEEP, nested_text(DEEP, value)) == value
        cast = f"CAST($1 AS {duckdb_type(DEEP)})"
        assert as_duckdb_reads(DEEP, cast, nested_text(DEEP, value)) == value


@pytest.mark.parametrize("seed", range(60))
def test_in_a_duckdb_file_every_value_can_be_kept(seed: int) -> None:
    deep = list_of(struct("element", *DEEP.children, scalar("x", "blob")))
    value = random_value(deep, random.Random(seed), "ab ,:={}[]()\"'\\NUL\té\0")
    storage = DuckDbStorage()
    if value is not None:
        bound = storage.inlined_bound(deep, value)
        assert as_duckdb_reads(deep, storage.inlined_inserted(deep, "$1"), bound) == value


def as_duckdb_reads(column: Column, expression: str, bound: object) -> Any:
    storage = DuckDbStorage()
    with duckdb.connect() as judge:
        sql = f"SELECT {storage.inlined_selected(column, 'v')} FROM (SELECT {expression} AS v)"
        return storage.inlined_value(column, judge.execute(sql, [bound]).fetchall()[0][0])
