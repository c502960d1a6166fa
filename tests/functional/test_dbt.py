"""dbt against a lake, as processes of their own: what only shows from outside."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.judge import Judge
from tests.places import Place
from tests.projects import Project


@pytest.fixture
def project(place: Place, tmp_path: Path) -> Project:
    return Project(tmp_path / "project", place)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_duckdb_reads_a_lake_in_a_file_while_four_threads_build_it(place: Place, project: Project) -> None:
    for number in range(16):
        project.write(
            f"models/m{number:02}.sql",
            f"{{{{ config(materialized='table') }}}} select {number} as n, id from range(500)",
        )
    project.run("run", "--select", "m00")
    building, counts = project.start("run"), []
    try:
        while building.poll() is None:
            try:
                with Judge() as judge:
                    place.attach(judge, read_only=True)
                    counts.append(judge.rows("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake'")[0][0])
                    assert judge.rows("SELECT count(*) FROM lake.main.m00") == [(500,)]
            except duckdb.IOException:
                pass  # dbt has the file for the moment of a commit
            time.sleep(0.05)
    finally:
        output, _ = building.communicate()
    assert building.returncode == 0, output
    assert "PASS=16" in output
    assert len(counts) >= 3
    assert counts == sorted(counts)


ENDLESS = {
    "models/slow.sql": "{{ config(materialized='table') }} select sum(hash(a.id * b.id)) as s "
    "from range(3000000) a, range(1000000) b",
    "models/slow.py": "def model(dbt, session):\n    import time\n    while True:\n        time.sleep(0.5)\n"
    "    return None\n",
}


@pytest.mark.parametrize("kind", ["duckdb"])
@pytest.mark.parametrize(
    ("model", "seconds"), [("models/slow.sql", 1), ("models/slow.sql", 9), ("models/slow.py", 9)]
)  # fmt: skip
def test_a_stopped_run_ends_at_once_and_leaves_nothing(
    place: Place, project: Project, model: str, seconds: float
) -> None:
    """While Spark starts, while a query runs, and within a model's own code."""
    project.write(model, ENDLESS[model])
    running = project.start("run")
    assert running.stdout is not None
    while " START " not in running.stdout.readline():
        assert running.poll() is None
    time.sleep(seconds)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=15)
    assert running.returncode != 0
    assert not project.files(place)
    with place.connect() as lake:
        assert lake.snapshot().tables("main") == ()


@pytest.mark.parametrize("kind", ["duckdb"])
def test_an_error_of_spark_is_one_line_with_the_models_line(place: Place, project: Project) -> None:
    project.write("models/wrong.sql", "{{ config(materialized='table') }}\n\nselect\n    id,\n    nope\nfrom range(3)")
    output = project.run("run", passes=False)
    assert "Line 5: [UNRESOLVED_COLUMN" in output
    assert "at org.apache" not in output
    project.write("models/wrong.sql", "{{ config(materialized='table') }}\nselect 1 / (id - 1) as x from range(3)")
    output = project.run("run", passes=False)
    assert "[DIVIDE_BY_ZERO]" in output
    assert "at org.apache" not in output
    assert not project.files(place)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_what_this_version_does_not_do_is_refused_by_name(place: Place, project: Project) -> None:
    project.write("models/later.sql", "{{ config(materialized='table', grants={'select': ['me']}) }} select 1 as id")
    assert "a DuckLake lake has no users" in project.run("run", passes=False)


def test_debug_says_what_is_wrong(place: Place, tmp_path: Path) -> None:
    right = Project(tmp_path / "right", place)
    assert "All checks passed!" in right.run("debug")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    wrong = Project(tmp_path / "wrong", place, data_path=f"{blocked}/data/")
    said = wrong.run("debug", passes=False)
    assert "but the lake at" in said
    assert "keeps its files in" in said


@pytest.mark.parametrize("kind", ["duckdb"])
def test_an_incremental_model_appends(place: Place, project: Project) -> None:
    more = "{% if is_incremental() %} where id >= (select count(*) from {{ this }}) {% endif %}"
    project.write(
        "models/log.sql", "{{ config(materialized='incremental') }} select id from range({{ var('n') }}) " + more
    )
    for count in (3, 5, 5):
        assert "PASS=1" in project.run("run", "--vars", f"{{n: {count}}}")
    with Judge() as judge:
        place.attach(judge)
        assert judge.rows("SELECT id FROM lake.main.log ORDER BY id") == [(id_,) for id_ in range(5)]
        # The last run had no rows, and is no snapshot.
        assert judge.rows("SELECT max(snapshot_id) FROM lake.snapshots()") == [(2,)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_query_in_a_hook_is_run(place: Place, project: Project) -> None:
    project.write(
        "models/m.sql",
        "{{ config(materialized='table', pre_hook=\"select raise_error('not today')\") }} select 1 as id",
    )
    assert "not today" in project.run("run", passes=False)
    assert not project.files(place)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_sources_may_be_files(place: Place, project: Project) -> None:
    (project.folder / "landing").mkdir()
    project.write("landing/orders.csv", "id;note;at\n1;it's;2026-01-01 00:00:00\n2;b;2026-01-02 00:00:00\n")
    project.write("landing/events.json", '{"id": 7, "tags": ["a"]}\n')
    options = {"header": True, "sep": ";", "inferSchema": True}
    csv = {"format": "csv", "location": "landing/{name}.csv", "options": options}
    typed = {**csv, "location": "landing/orders.csv", "options": {**options, "schema": "id string, note string"}}
    tables = [
        {
            "name": "orders",
            "config": {"meta": csv},
            "loaded_at_field": "at",
            "freshness": {"warn_after": {"count": 1, "period": "day"}},
            "columns": [{"name": "id", "data_tests": ["unique"]}],
        },
        {"name": "events", "config": {"meta": {"format": "json", "location": "landing/{identifier}.json"}}},
        {"name": "typed", "config": {"meta": typed}},
    ]
    project.write("models/sources.yml", json.dumps({"sources": [{"name": "landing", "tables": tables}]}))
    for name in ("orders", "events", "typed"):
        sql = f"select o.* from {{{{ source('landing', '{name}') }}}} o"
        project.write(f"models/{name}_loaded.sql", f"{{{{ config(materialized='table') }}}} {sql}")
    project.write("models/seen.sql", "select note from {{ source('landing', 'orders') }} where id = 1")
    columns = "adapter.get_columns_in_relation(source('landing', 'orders'))"
    project.write("models/named.sql", f"select '{{{{ {columns} | map(attribute='name') | join(',') }}}}' as n")
    output = project.run("build")
    assert "View lake.main.seen is for Spark only" in output
    project.run("docs", "generate")
    assert "WARN freshness of landing.orders" in project.run("source", "freshness")
    with Judge() as judge:
        judge.attach(place.metadata, data_path=place.data_path)
        judge.run("USE lake.main")
        assert judge.rows("SELECT id, note FROM orders_loaded ORDER BY id") == [(1, "it's"), (2, "b")]
        assert judge.rows("SELECT * FROM events_loaded") == [(7, ["a"])]
        assert judge.rows("SELECT typeof(id), count(*) FROM typed_loaded GROUP BY 1") == [("VARCHAR", 2)]
    shown = project.run("show", "--inline", "select * from {{ ref('seen') }} cross join {{ ref('named') }}")
    assert "it's" in shown
    assert "id,note,at" in shown


def incremental(first: str, then: str, **config: Any) -> str:
    """A model with one query for its first run and another for the later ones."""
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items())
    head = f"{{{{ config(materialized='incremental', {settings}) }}}}"
    return f"{head} {{% if is_incremental() %}}{then}{{% else %}}{first}{{% endif %}}"


@pytest.mark.parametrize("kind", ["duckdb"])
def test_what_each_strategy_leaves_after_a_second_run(place: Place, project: Project) -> None:
    day = "date_add(date'2026-01-01', cast(id * 10 as int)) as day"
    models = {
        "by_month": incremental(
            f"select id, 'old' as v, {day} from range(12)", f"select id, 'new' as v, {day} from range(2)",
            incremental_strategy="insert_overwrite", partitioned_by="month(day)",
        ),
        "whole": incremental(
            "select id from range(5)", "select id from range(2)", incremental_strategy="insert_overwrite"
        ),
        "null_keys": incremental(
            "select * from values (1, null, 'old'), (2, 'x', 'same'), (200, 'z', 'z') as t(a, `b c`, v)",
            "select * from values (1, null, 'new'), (2, 'x', 'same'), (5, 'z', 'z') as t(a, `b c`, v)",
            unique_key=["a", "b c"], null_safe_keys=True, not_matched_by_source_action="delete",
            not_matched_by_source_condition="DBT_INTERNAL_DEST.a > 100",
        ),
        "replaced": incremental(
            "select id, 0 as v from range(5)", "select id, 1 as v from range(4)", unique_key="id",
            incremental_strategy="delete+insert", incremental_predicates=["DBT_INTERNAL_DEST.id < 3"],
        ),
        "my-model": incremental("select 1 as id, 'x' as v", "select 1 as id, 'y' as v", unique_key="id"),
        "hooked": "{{ config(materialized='table', post_hook=['delete from {{ this }} where id > 1', "
        "\"update {{ this }} set v = 'hooked' where id = 1\"]) }} select id, 'a' as v from range(9)",
    }  # fmt: skip
    for name, sql in models.items():
        project.write(f"models/{name}.sql", sql)
    project.run("run")
    project.run("run")
    with Judge() as judge:
        judge.attach(place.metadata, data_path=place.data_path)
        judge.run("USE lake.main")
        # January, which has new rows, is replaced; the other months stay.
        found = judge.rows("SELECT id, v FROM by_month ORDER BY id")
        assert found == [(0, "new"), (1, "new"), *((id, "old") for id in range(4, 12))]
        assert judge.rows("SELECT id FROM whole ORDER BY id") == [(0,), (1,)]
        assert judge.rows("SELECT * FROM null_keys ORDER BY a") == [(1, None, "new"), (2, "x", "same"), (5, "z", "z")]
        replaced = [(0, 1), (1, 1), (2, 1), (3, 0), (3, 1), (4, 0)]
        assert judge.rows("SELECT * FROM replaced ORDER BY ALL") == replaced
        assert judge.rows('SELECT * FROM "my-model"') == [(1, "y")]
        assert judge.rows("SELECT * FROM hooked ORDER BY id") == [(0, "a"), (1, "hooked")]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_models_of_other_times(place: Place, project: Project) -> None:
    project.write("models/log.sql", incremental("select 1 as id", "select max(id) + 1 as id from {{ this }}"))
    then = "select (select count(*) from {{ ducklake_at(ref('log'), version=1) }} as l) as first, "
    now = "(select count(*) from {{ ducklake_changes(ref('log'), 2) }}) as came, {{ ducklake_snapshot_id() }} as at"
    project.write("models/seen.sql", "{{ config(materialized='table') }} " + then + now)
    project.run("run", "--select", "log")
    project.run("run")
    rolling = "{relation: main.log, version: 1}"
    assert "REPLACE WHERE TRUE" in project.run("run-operation", "ducklake_rollback", "--args", rolling)
    with place.attached() as judge:
        assert judge.rows("SELECT * FROM seen") == [(1, 1, 2)]
        assert judge.rows("SELECT id FROM log") == [(1,)]
        assert judge.rows("SELECT count(*) FROM log AT (VERSION => 3)") == [(2,)]
    project.write(
        "models/back.sql",
        "{{ config(materialized='table', post_hook='{{ ducklake_rollback(ref(\"log\"), version=2) }}') }} select 1 x",
    )
    project.run("run", "--select", "back")
    assert place.asked("SELECT id FROM log ORDER BY id") == [(1,), (2,)]
    assert "takes either" in project.run("show", "--inline", "from {{ ducklake_at(ref('log')) }}", passes=False)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_batch_with_other_columns_types_and_fields(place: Place, project: Project) -> None:
    first = "select 1 as id, cast(1 as int) as n, named_struct('a', 1) as s, 'x' as gone"
    then = "select cast(2 as smallint) as ID, 5000000000 as n, named_struct('b', 'y', 'a', 2) as s, true as more"
    for mode in ("ignore", "append_new_columns", "sync_all_columns", "fail"):
        project.write(f"models/{mode}.sql", incremental(first, then, on_schema_change=mode, unique_key="id"))
    project.write("models/whole.sql", incremental(first, f"{then}, 'z' as gone", unique_key="id"))
    project.run("run")
    output = project.run("run", passes=False)
    assert "PASS=2 " in output
    assert "out of sync" in output
    assert "has the column gone, which the model does not give any more" in output
    # A struct with a field that the table has no place for.
    assert "column s is struct<a:int>" in output
    with place.attached() as judge:
        synced = [(1, 1, {"a": 1, "b": None}, None), (2, 5_000_000_000, {"a": 2, "b": "y"}, True)]
        assert judge.rows("SELECT id, n, s, more FROM sync_all_columns ORDER BY id") == synced
        kinds = "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'sync_all_columns'"
        assert dict(judge.rows(kinds)) == {
            "id": "INTEGER", "n": "BIGINT", "s": "STRUCT(a INTEGER, b VARCHAR)", "more": "BOOLEAN",
        }  # fmt: skip
        appended = [(1, 1, {"a": 1, "b": None}, "x", None), (2, 5_000_000_000, {"a": 2, "b": "y"}, None, True)]
        assert judge.rows("SELECT id, n, s, gone, more FROM append_new_columns ORDER BY id") == appended


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_view_that_becomes_an_incremental_model_keeps_its_batches(place: Place, project: Project) -> None:
    project.write("models/days.yml", json.dumps({"models": [{"name": "days", "config": {"event_time": "at"}}]}))
    rows = "select id, date_add(date'2026-01-01', cast(id as int)) as at from range(5)"
    project.write("models/days.sql", f"{{{{ config(materialized='table') }}}} {rows}")
    project.write("models/m.sql", "{{ config(materialized='view') }} select id, at from {{ ref('days') }}")
    project.run("run")
    batches = "materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day'"
    model = f"{{{{ config({batches}, begin='2026-01-01') }}}} select id, at from {{{{ ref('days') }}}}"
    project.write("models/m.sql", model)
    between = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-06")
    project.run("run", *between)
    assert place.asked("SELECT count(*) FROM m") == [(5,)]
    # All batches again, at once: each replaces days of its own, so none waits for another or runs twice.
    project.write("models/m.sql", model.replace("select id", "select id + 100 as id"))
    assert "runs again" not in project.run("run", "--select", "m", *between)
    assert place.asked("SELECT id FROM m ORDER BY id") == [(id_,) for id_ in range(100, 105)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_descriptions_and_names_follow_the_model(place: Place, project: Project) -> None:
    def describe(text: str) -> None:
        model = {"name": "m", "description": text, "columns": [{"name": "ID", "description": f"{text} id"}]}
        snapshot = {"name": "s", "relation": "ref('src')", "description": text}
        history = {"strategy": "check", "check_cols": ["V"], "unique_key": "id", "persist_docs": {"relation": True}}
        docs = {"models": [model], "snapshots": [{**snapshot, "config": history}]}
        project.write("models/docs.yml", json.dumps(docs))

    settings = "persist_docs={'relation': true, 'columns': true}, unique_key='id'"
    project.write("models/m.sql", f"{{{{ config(materialized='incremental', {settings}) }}}} select 1 as id, 1 as v")
    project.write("models/src.sql", "select 1 as id, {{ var('v', 1) }} as v")
    (project.folder / "snapshots").mkdir()
    describe("first")
    project.run("build")
    describe("then")
    project.run("build")
    project.write("models/src.sql", "select 1 as id, 1 as V")
    project.run("build")
    with place.attached() as judge:
        comments = "SELECT comment FROM duckdb_tables() WHERE table_name IN ('m', 's') ORDER BY table_name"
        assert judge.rows(comments) == [("then",), ("then",)]
        of_column = "SELECT comment FROM duckdb_columns() WHERE table_name = 'm' AND column_name = 'id'"
        assert judge.rows(of_column) == [("then id",)]
        # Neither another description nor another spelling is another version of a row.
        assert judge.rows("SELECT count(*) FROM s") == [(1,)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_python_model_reads_its_own_table_and_says_where_it_failed(place: Place, project: Project) -> None:
    project.write(
        "models/py.py",
        """
def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    if dbt.is_incremental:
        return session.sql(f"select max(id) + 1 as id from {dbt.this}")
    return session.createDataFrame([(1,)], "id int")
""",
    )
    project.run("run")
    project.run("run")
    assert place.asked("SELECT id FROM py ORDER BY id") == [(1,), (2,)]
    project.write("models/py.py", "def model(dbt, session):\n    x = {}\n    return x['nope']\n")
    assert "Line 3 of the Python model `lake`.`main`.`py`: KeyError: 'nope'" in project.run("run", passes=False)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_whole_project_is_compacted_and_kept_healthy(place: Place, project: Project) -> None:
    hooks = {"+post-hook": "{{ ducklake_compact(this) }}", "+compaction": {"small_files": 2}}
    kept = "{{ ducklake_maintain(older_than='0 seconds', orphans=true) }}"
    described = {"name": "p", "version": "1.0.0", "profile": "p", "models": {"p": hooks}, "on-run-end": kept}
    project.write("dbt_project.yml", json.dumps(described))
    select = "select id, {{ var('n') }} as n from range(3)"
    project.write("models/log.sql", "{{ config(materialized='incremental') }} " + select)
    project.write("models/kept.sql", "{{ config(materialized='incremental', compaction=false) }} " + select)
    project.write("models/seen.sql", "{{ config(materialized='view') }} select * from {{ ref('log') }}")
    for number in range(4):
        assert "expire snapshots" in project.run("run", "--vars", f"{{n: {number}}}")
    files = "SELECT count(*) FROM ducklake_list_files('lake', '{}')"
    assert place.asked(files.format("log"))[0][0] == 1
    assert place.asked(files.format("kept"))[0][0] >= 4
    assert place.asked("SELECT count(*), count(DISTINCT n) FROM log") == [(12, 4)]
    assert place.asked("SELECT count(*) FROM lake.snapshots()") == [(1,)]
    assert "main.log" in project.run("run-operation", "ducklake_doctor")
