"""Columns that change between runs: with the rows that bring them, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.places import Place
from tests.projects import Project


@pytest.fixture
def project(place: Place, tmp_path: Path) -> Project:
    made = Project(tmp_path / "project", place, threads=1)
    (made.folder / "snapshots").mkdir()
    return made


def model(first: str, then: str, **config: Any) -> str:
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items())
    head = f"{{{{ config(materialized='incremental', {settings}) }}}}"
    return f"{head} {{% if is_incremental() %}}{then}{{% else %}}{first}{{% endif %}}"


STRATEGIES: list[dict[str, Any]] = [
    {"incremental_strategy": "append"},
    {"incremental_strategy": "merge", "unique_key": "id"},
    {"incremental_strategy": "delete+insert", "unique_key": "id"},
    {"incremental_strategy": "insert_overwrite"},
]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_batch_that_fails_leaves_the_columns_as_they_were(place: Place, project: Project) -> None:
    first = "select id, 'x' as dropped, cast(1 as int) as n from range(3)"
    then = "select id, 'y' as added, 5000000000 as n from range(2, 5, 1, 1) where 1 / (id - 4) is not null"
    for at, strategy in enumerate(STRATEGIES):
        config = {**strategy, "on_schema_change": "sync_all_columns"}
        project.write(f"models/m{at}.sql", model(first, then, **config))
    project.run("run")
    before = place.asked("SELECT max(snapshot_id) FROM lake.snapshots()")
    files = project.files(place)
    assert "ERROR=4" in project.run("run", passes=False)
    assert place.asked("SELECT max(snapshot_id) FROM lake.snapshots()") == before
    assert project.files(place) == files
    for at, strategy in enumerate(STRATEGIES):
        assert place.asked(f"SELECT * FROM m{at} ORDER BY id") == [(id_, "x", 1) for id_ in range(3)]
        config = {**strategy, "on_schema_change": "sync_all_columns"}
        project.write(f"models/m{at}.sql", model(first, then.replace("1 / (id - 4)", "1"), **config))
    project.run("run")
    changed = [(2, 5000000000, "y"), (3, 5000000000, "y"), (4, 5000000000, "y")]
    old = [(0, 1, None), (1, 1, None)]
    assert place.asked("SELECT id, n, added FROM m0 ORDER BY id, n") == [*old, (2, 1, None), *changed]
    assert place.asked("SELECT id, n, added FROM m1 ORDER BY id") == [*old, *changed]
    assert place.asked("SELECT id, n, added FROM m2 ORDER BY id") == [*old, *changed]
    assert place.asked("SELECT id, n, added FROM m3 ORDER BY id") == changed
    # One snapshot for each model, with the columns in it.
    assert place.asked("SELECT max(snapshot_id) FROM lake.snapshots()") == [(before[0][0] + 4,)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_inlined_rows_and_deleted_ones_take_new_columns(place: Place, project: Project) -> None:
    first = "select id, cast(1 as int) as n, named_struct('a', 1) as s from range(4)"
    then = "select id, 5000000000 as n, named_struct('a', 2, 'b', 'new') as s, 'more' as m from range(3, 12, 4, 1)"
    project.write("models/m.sql", model(first, then, unique_key="id", on_schema_change="append_new_columns"))
    project.run("run")
    with place.attached(data_inlining_row_limit=10) as judge:
        judge.run("INSERT INTO m VALUES (7, 70, {'a': 7}), (8, 80, {'a': 8})", "DELETE FROM m WHERE id = 0")
    project.run("run")
    assert place.asked("SELECT * FROM m ORDER BY id") == [
        (1, 1, {"a": 1, "b": None}, None),
        (2, 1, {"a": 1, "b": None}, None),
        (3, 5000000000, {"a": 2, "b": "new"}, "more"),
        (7, 5000000000, {"a": 2, "b": "new"}, "more"),
        (8, 80, {"a": 8, "b": None}, None),
        (11, 5000000000, {"a": 2, "b": "new"}, "more"),
    ]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_an_empty_batch_brings_its_columns(place: Place, project: Project) -> None:
    then = "select 1 as id, 'x' as more where false"
    project.write("models/m.sql", model("select 1 as id", then, unique_key="id", on_schema_change="append_new_columns"))
    project.run("run")
    project.run("run")
    assert place.asked("SELECT * FROM m") == [(1, None)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_column_without_a_type_is_named(place: Place, project: Project) -> None:
    config = {"unique_key": "id", "on_schema_change": "append_new_columns"}
    project.write("models/m.sql", model("select 1 as id", "select 1 as id, null as remark", **config))
    project.run("run")
    said = "Column remark has type void: it is NULL in every row. Cast it in the model: cast(null as string)."
    assert said in " ".join(project.run("run", passes=False).split())


def snapshot(name: str, source: str, **config: Any) -> str:
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return f"{{% snapshot {name} %}}{{{{ config(unique_key='id', {settings}) }}}} {source} {{% endsnapshot %}}"


CHECKS = {"strategy": "check", "check_cols": "all"}


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_snapshot_takes_the_types_of_its_source(place: Place, project: Project) -> None:
    first = (
        "select 1 as id, cast(1.2 as decimal(4,1)) as d, date'2026-01-01' as t, 7 as n, named_struct('a', 1) as s, "
        "array(1) as l, cast(null as string) as v"
    )
    then = (
        "select 1 as id, cast(1.26 as decimal(8,2)) as d, timestamp'2026-01-01 10:00:00' as t, 5000000000 as n, "
        "named_struct('a', 1, 'b', 'x') as s, array(1, 2) as l, 'w' as v, true as added"
    )
    for text in (first, then, then):
        project.write("snapshots/s.sql", snapshot("s", text, **CHECKS))
        project.run("snapshot")
    assert place.asked("SELECT d::VARCHAR, t::VARCHAR, n, s, l, v, added FROM s ORDER BY dbt_valid_from") == [
        ("1.20", "2026-01-01 00:00:00+00", 7, {"a": 1, "b": None}, [1], None, None),
        ("1.26", "2026-01-01 10:00:00+00", 5000000000, {"a": 1, "b": "x"}, [1, 2], "w", True),
    ]
    assert place.asked("SELECT count(*) FROM s WHERE dbt_valid_to IS NULL") == [(1,)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_snapshot_says_which_column_it_cannot_take(place: Place, project: Project) -> None:
    for text, passes in (("select 1 as id, 7 as c", True), ("select 1 as id, date'2026-01-01' as c", False)):
        project.write("snapshots/s.sql", snapshot("s", text, **CHECKS))
        output = project.run("snapshot", passes=passes)
    assert "Column c of main.s is int and the snapshot's query gives date, which DuckLake cannot widen it to" in output
    assert place.asked("SELECT c FROM s") == [(7,)]
