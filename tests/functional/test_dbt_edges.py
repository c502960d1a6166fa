"""What a hostile reading of the dbt side tried: contracts, keys, views, seeds, unit tests, freshness and messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.java import QUICK
from tests.places import Place
from tests.projects import Project


@pytest.fixture
def project(place: Place, tmp_path: Path) -> Project:
    made = Project(tmp_path / "project", place, threads=2)
    (made.folder / "seeds").mkdir()
    return made


def model(sql: str, **config: Any) -> str:
    shown = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return f"{{{{ config({shown}) }}}} {sql}"


def contract(name: str, columns: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "config": {"contract": {"enforced": True}},
        "columns": [{"name": column, "data_type": kind} for column, kind in columns.items()],
        **more,
    }


@pytest.mark.parametrize("kind", ["duckdb"])
def test_contracts(place: Place, project: Project) -> None:
    """Types have the words of others, names any case, and what nobody enforces is warned of."""
    words = {"ID": "int", "d": "double precision", "b": "bool", "f": "float8", "z": "timestamp with time zone",
             "n": "timestamp without time zone", "j": "json", "u": "uuid", "i": "int8", "t": "datetime"}  # fmt: skip
    given = (
        "select 1 as id, cast(1.5 as double) as D, true as b, cast(2 as double) as f, "
        "timestamp'2026-01-01 00:00:00+00:00' as z, timestamp_ntz'2026-01-01 00:00:00' as n, '{}' as j, "
        "'6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b' as u, 5000000000 as i, timestamp_ntz'2026-01-01 00:00:00' as t"
    )
    project.write("models/words.sql", model(given, materialized="table"))
    project.write("models/lengths.sql", model("select 'abcdef' as v", materialized="table"))
    project.write("models/keys.sql", model("select cast(null as int) as v, 1 as w", materialized="table"))
    not_null = [{"type": "not_null", "columns": ["V"]}]
    schema = [
        contract("words", words),
        contract("lengths", {"v": "varchar(2)"}),
        contract("keys", {"v": "int", "w": "int"}, constraints=not_null),
    ]
    project.write("models/schema.yml", json.dumps({"models": schema}))
    output = project.run("run", passes=False)
    assert "PASS=2 WARN=0 ERROR=1" in output
    assert "v is NULL in 1" in output
    assert "length varchar(2) of column v" in output
    found = place.asked("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'words'")
    assert found == [
        ("ID", "INTEGER"), ("d", "DOUBLE"), ("b", "BOOLEAN"), ("f", "DOUBLE"), ("z", "TIMESTAMP WITH TIME ZONE"),
        ("n", "TIMESTAMP"), ("j", "JSON"), ("u", "UUID"), ("i", "BIGINT"), ("t", "TIMESTAMP"),
    ]  # fmt: skip
    project.write("models/words.sql", model(given.replace("1 as id", "'x' as id"), materialized="table"))
    assert "data type mismatch" in project.run("run", "--select", "words", passes=False)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_keys_that_are_no_plain_columns(place: Place, project: Project) -> None:
    first = "select id % 2 as a, cast(id as string) as b, 'old' as v, date'2026-01-01' as `Order Day` from range(4)"
    then = "select 1 as a, '1' as b, 'new' as v, date'2026-01-01' as `Order Day` union all select 7, null, 'n', null"
    sql = f"{{% if is_incremental() %}}{then}{{% else %}}{first}{{% endif %}}"
    configs: dict[str, dict[str, Any]] = {
        "by_expression": {"incremental_strategy": "delete+insert", "unique_key": "concat(a, '-', b)"},
        "by_two": {"incremental_strategy": "delete+insert", "unique_key": "a, b"},
        "merged_by_two": {"unique_key": '"a", b'},
        "by_partition": {"incremental_strategy": "insert_overwrite", "partition_by": ["`Order Day`"]},
    }
    for name, config in configs.items():
        project.write(f"models/{name}.sql", model(sql, materialized="incremental", **config))
    for _ in range(2):
        project.run("run")
    left = [(0, "0", "old"), (0, "2", "old"), (1, "1", "new"), (1, "3", "old"), (7, None, "n")]
    for name in ("by_expression", "by_two", "merged_by_two"):
        assert place.asked(f"SELECT a, b, v FROM {name} ORDER BY a, b") == left
    assert place.asked("SELECT a, b, v FROM by_partition ORDER BY a") == [left[2], left[4]]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_messages_name_the_place_and_the_remedy(place: Place, project: Project) -> None:
    for name, sql in {
        "viewed": "{{ config(materialized='view') }}\n\nselect\n    1 as id,\n    nope\nfrom range(3)",
        "tabled": "{{ config(materialized='table') }}\n\nselect\n    1 as id,\n    nope\nfrom range(3)",
        "open": "{{ config(materialized='table') }}\nselect\n  'it's' as x",
        "twice": model("select 1 as a, 2 as A", materialized="view"),
        "spaced": model("select 1 as `My Key`", materialized="table", partition_by=["My Key"]),
        "late": model("select 1 as id", materialized="incremental", unique_key="lower(id)"),
        "fine": model("select 1 as id", materialized="view"),
    }.items():
        project.write(f"models/{name}.sql", sql)
    project.write("models/coded.py", "def model(dbt, session):\n    return session.range(1)\n")
    project.write("seeds/nested.csv", "id,c\n1,x\n")
    project.write("seeds/dated.csv", "id,c\n1,2026-01-01 10:00:00\n")
    sources = [{"name": "s", "schema": "main", "freshness": {"warn_after": {"count": 1, "period": "day"}},
                "tables": [{"name": "fine"}]}]  # fmt: skip
    seeds = [
        {"name": "nested", "config": {"column_types": {"c": "struct<a:int>"}}},
        {"name": "dated", "config": {"column_types": {"c": "datetime"}}},
    ]
    project.write("models/schema.yml", json.dumps({"sources": sources, "seeds": seeds}))
    output = " ".join(project.run("build", passes=False).split())
    assert output.count("Line 5: [UNRESOLVED_COLUMN") == 2
    for said in (
        "Line 3, column 8: The text in quotes that begins here is not closed.",
        "Cannot create view lake.main.twice: column a is there twice",
        "A name with spaces or other signs is written in backticks, such as `My ...`",
        "has the `unique_key` lower(id), and a merge goes by columns",
        "a CSV file holds no nested values. Make it a string",
    ):
        assert said in output, said
    assert place.asked("SELECT typeof(c) FROM dated") == [("TIMESTAMP",)]
    said = " ".join(project.run("source", "freshness", passes=False).split())
    assert "it is a view, of which the metadata say nothing. Give the source a `loaded_at_field`" in said
    assert "A Python model cannot be shown" in project.run("show", "--select", "coded", passes=False)
    shown = project.run("show", "--inline", "select parse_json('{\"a\":1}') as v, map('k', 1) as m, X'7A' as b, "
                        "interval '1-2' year to month as i")  # fmt: skip
    for text in ('{"a":1}', '{"k":1}', "7A", "INTERVAL '1-2' YE"):
        assert text in shown


@pytest.mark.parametrize("kind", ["duckdb"])
def test_nested_values_in_unit_tests(place: Place, project: Project) -> None:
    given = "select named_struct('a', 1, 'b', 'x') as s, array('x') as l, map('k', 1) as m"
    project.write("models/given.sql", model(given, materialized="table"))
    project.write("models/taken.sql", model("select s, l, m from {{ ref('given') }}", materialized="table"))
    rows: list[dict[str, Any]] = [
        {"s": "named_struct('a', 1, 'b', 'it\\'s')", "l": "array('x', \"y\")", "m": "map('k', 1)"},
        {"s": {"a": 1, "b": "it's"}, "l": ["x", "y"], "m": {"k": 1}},
        {"s": {"B": None}, "l": [], "m": None},
    ]
    tests = [{"name": "nested", "model": "taken", "given": [{"input": "ref('given')", "rows": rows}],
              "expect": {"rows": rows}}]  # fmt: skip
    project.write("models/schema.yml", json.dumps({"unit_tests": tests}))
    assert "PASS=3" in project.run("build")


@pytest.mark.parametrize("kind", ["duckdb"])
def test_moments_of_a_seed_are_of_the_session(place: Place, tmp_path: Path) -> None:
    zoned = {"master": "local[2]", "config": {**QUICK, "spark.sql.session.timeZone": "Europe/Stockholm"}}
    project = Project(tmp_path / "project", place, spark=zoned)
    (project.folder / "seeds").mkdir()
    moments = ("2026-07-01 12:00:00", "2026-01-01 12:00:00", "")
    lines = (f"{id_},{moment},{moment}\n" for id_, moment in enumerate(moments))
    project.write("seeds/s.csv", "id,moment,typed\n" + "".join(lines))
    project.write("seeds/s.yml", "seeds: [{name: s, config: {column_types: {typed: timestamp}}}]")
    project.run("seed")
    noon = [datetime(2026, 7, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 11, tzinfo=UTC), None]
    assert place.asked("SELECT moment, typed FROM s ORDER BY id") == [(moment, moment) for moment in noon]
