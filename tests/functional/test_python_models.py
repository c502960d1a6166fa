"""Python models as their authors write them: pandas with missing values, temporary views, settings, exits."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.places import Place
from tests.projects import Project

HEAD = "import datetime, decimal\nimport numpy as np\nimport pandas as pd\n\n\ndef model(dbt, session):\n"
MODELS = {
    "missing": """
    dbt.config(materialized="table")
    return pd.DataFrame({
        "a": [1.5, None], "b": pd.array([9007199254740993, None], dtype="Int64"),
        "c": np.array([2**63, 1], dtype="uint64"), "d": [decimal.Decimal("1.10"), None], "e": ["x", None],
        "f": pd.Categorical(["k", None]), "g": [datetime.time(1, 2, 3, 4), None], "h": [None, None],
    })
""",
    "empty": """
    dbt.config(materialized="table")
    frame = pd.DataFrame({"id": [1, 2], "note": ["a", "b"], "x": [0.5, None]})
    return frame[frame.id > 5]
""",
    "quiet": """
    dbt.config(materialized="incremental", unique_key="id")
    frame = pd.DataFrame({"id": [1, 2], "note": ["a", "b"]})
    return frame[frame.id > 5] if dbt.is_incremental else frame
""",
    "viewed": """
    dbt.config(materialized="table")
    frame = dbt.ref("days").toDF("id", "at", "name")
    frame.createOrReplaceTempView("mine")
    frame.createOrReplaceTempView("days")
    return session.sql("select m.id, d.name from mine m join days d on m.id = d.id").union(
        session.table("mine").select("id", "name"))
""",
    "zoned": """
    dbt.config(materialized="table")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    return session.sql("select current_timezone() as zone, timestamp'2026-01-01 09:00:00' as moment")
""",
    "packaged": """
    dbt.config(materialized="table", packages=["nosuchpkg", "pandas"])
    return dbt.ref("days").limit(0)
""",
}
WRONG = {
    "exits": "    import sys\n    sys.exit('that is all')\n    return None\n",
    "mixed": "    return pd.DataFrame({'ok': [1, 2], 'bad': [1, 'a']})\n",
    "nothing": "    return pd.DataFrame()\n",
    "late": "    from pyspark.sql.functions import udf\n"
    "    return dbt.ref('days').select(udf(lambda x: 1 / 0, 'int')('id').alias('x'))\n",
    "lost": "    dbt.ref('days').createOrReplaceTempView('other')\n    return session.sql('select * from mine')\n",
}  # fmt: skip


@pytest.fixture
def project(place: Place, tmp_path: Path) -> Project:
    made = Project(tmp_path / "project", place, threads=1)
    start = datetime.now(UTC).date() - timedelta(days=2)
    rows = " union all ".join(
        f"select {day * 10 + n} as id, timestamp'{start + timedelta(days=day)} 0{n}:00:00+00:00' as at, 'n{n}' as name"
        for day in range(3)
        for n in range(2)
    )
    made.write("models/days.sql", f"{{{{ config(materialized='table', event_time='at') }}}} {rows}")
    return made


@pytest.mark.parametrize("kind", ["duckdb"])
def test_what_a_model_returns_is_what_is_stored(place: Place, project: Project) -> None:
    for name, body in MODELS.items():
        project.write(f"models/{name}.py", f"{HEAD}{body}")
    output = project.run("run")
    assert "`packaged` asks for the packages nosuchpkg, pandas. Nothing installs them" in output
    project.run("run", "--select", "quiet viewed")
    with place.attached() as judge:
        assert judge.rows("SELECT * FROM missing") == [
            (1.5, 9007199254740993, Decimal(2**63), Decimal("1.10"), "x", "k", "01:02:03.000004", None),
            (None, None, Decimal(1), None, None, None, None, None),
        ]
        assert judge.rows("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'empty'") == [
            ("id", "BIGINT"), ("note", "VARCHAR"), ("x", "DOUBLE"),
        ]  # fmt: skip
        assert judge.rows("SELECT (SELECT count(*) FROM empty), (SELECT count(*) FROM quiet)") == [(0, 2)]
        assert judge.rows("SELECT count(*) FROM viewed") == [(12,)]
        assert judge.rows("SELECT zone, epoch(moment) FROM zoned") == [("Asia/Tokyo", 1767225600.0)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_what_a_model_does_wrong_is_said_with_its_line(place: Place, project: Project) -> None:
    for name, body in WRONG.items():
        project.write(f"models/{name}.py", f"{HEAD}    dbt.config(materialized='table')\n{body}")
    project.write("models/after.sql", "{{ config(materialized='table') }} select 1 as id")
    output = project.run("run", passes=False)
    assert "PASS=2 WARN=0 ERROR=5" in output
    for said in (
        "Line 9 of the Python model `lake`.`main`.`exits`: SystemExit: that is all",
        "The table that the model returned cannot be taken: its column bad cannot be taken for one type",
        "The table that the model returned cannot be taken: it has no columns",
        "A Python function failed: ZeroDivisionError: division by zero",
        "Table main.mine is not in snapshot",
    ):
        assert said in output
    assert place.asked("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake'") == [(2,)]


@pytest.mark.parametrize("kind", ["duckdb"])
def test_a_microbatch_has_the_rows_of_its_time_once(place: Place, project: Project) -> None:
    begin = (datetime.now(UTC).date() - timedelta(days=2)).isoformat()
    settings = {"materialized": "incremental", "incremental_strategy": "microbatch", "event_time": "at",
                "batch_size": "day", "begin": begin}  # fmt: skip
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    project.write("models/batches.py", f"{HEAD}    dbt.config({given})\n    return dbt.ref('days')\n")
    moved = "select id, name, at + interval 1 day as at from {{ ref('days') }}"
    project.write("models/moved.sql", f"{{{{ config({given}) }}}} {moved}")
    for _ in range(2):
        output = project.run("run", "--select", "days batches moved", passes=False)
        assert "PASS=2 WARN=0 ERROR=1" in output, output
    assert "rows with another at, or without one. They would be there twice" in output
    assert place.asked("SELECT count(*), count(DISTINCT id) FROM batches") == [(6, 6)]
    assert json.loads((project.folder / "target" / "run_results.json").read_text())["results"]
