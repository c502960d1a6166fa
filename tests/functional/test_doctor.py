"""What `ducklake_doctor` finds in rows that were spoiled, and that its repairs repair."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.places import Place
from tests.projects import Project

MODELS = {
    "models/kept.sql": "{{ config(materialized='incremental', unique_key='id') }} select id, 'x' as v from range(3)",
    "models/parts.sql": "{{ config(materialized='table', partitioned_by=['p', 'months(at)']) }} select id, "
    "id % 2 as p, timestamp'2026-01-31 23:30:00' + make_dt_interval(id) as at from range(4)",
    "models/texts.sql": "{{ config(materialized='table') }} select id, 'plain' as t, "
    "array('deep') as l from range(0, 2, 1, 1)",
    "models/plain.sql": "select 1 as a",
    "snapshots/seen.sql": "{% snapshot seen %}{{ config(unique_key='id', strategy='check', check_cols='all') }} "
    "select id, '{{ var(\"n\", 0) }}' as v from range(3){% endsnapshot %}",
}


def doctor(project: Project) -> list[dict[str, str]]:
    output = project.run("--quiet", "run-operation", "ducklake_doctor", "--args", "{rows: true, json: true}")
    rows: list[dict[str, str]] = json.loads(output.splitlines()[-1])["rows"]
    return rows


def with_raw_bytes(place: Place, metadata: duckdb.DuckDBPyConnection) -> None:
    """Put bytes that are no UTF-8 into the file of `texts`, as Spark once wrote them."""
    [path] = [path for path in Path(place.data_path).rglob("*.parquet") if "texts" in path.parts]
    table = pq.read_table(path)
    raw = pa.array([b"\xff\xfe", b"fine"]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(table.set_column(1, table.schema.field(1), text), path)
    written = path.read_bytes()
    sizes = [len(written), int.from_bytes(written[-8:-4], "little"), f"%{path.name}"]
    metadata.execute("UPDATE ducklake_data_file SET file_size_bytes = ?, footer_size = ? WHERE path LIKE ?", sizes)


@pytest.mark.parametrize("kind", ["duckdb"])
def test_faults_of_rows_are_found_and_repaired(place: Place, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", place)
    (project.folder / "snapshots").mkdir()
    for name, text in MODELS.items():
        project.write(name, text)
    project.run("build")
    project.run("snapshot", "--vars", "{n: 1}")
    assert doctor(project) == []
    assert "no faults in rows" in project.run("run-operation", "ducklake_doctor", "--args", "{rows: true}")

    with place.attached() as judge:
        judge.run(
            "INSERT INTO lake.main.kept VALUES (1, 'y'), (NULL, 'z'), (NULL, 'z')",
            "UPDATE lake.main.seen SET dbt_valid_from = dbt_valid_from + INTERVAL 3 SECONDS "
            "WHERE id = 1 AND dbt_valid_to IS NULL",
        )
    with duckdb.connect(place.metadata.removeprefix("duckdb:")) as metadata:
        metadata.execute(
            "UPDATE ducklake_file_partition_value SET partition_value = '7' WHERE partition_key_index = 1 "
            "AND data_file_id = (SELECT min(data_file_id) FROM ducklake_file_partition_value)"
        )
        with_raw_bytes(place, metadata)

    found = {one["table"]: one for one in doctor(project)}
    assert sorted(found) == ["main.kept", "main.parts", "main.seen", "main.texts"]
    assert found["main.kept"]["found"] == "1 keys (`id`) stand there more than once"
    assert "--full-refresh --select kept" in found["main.kept"]["repair"]
    assert found["main.parts"]["found"].startswith("1 of its files have rows of another partition, such as ")
    assert found["main.seen"]["found"].startswith("1 versions begin some seconds after")
    assert found["main.texts"]["found"] == "1 rows have text in t that DuckDB does not read"

    repair = found["main.parts"]["repair"].split(" writes them anew")[0]
    texts = "UPDATE lake.main.texts SET t = make_valid_utf8(t) WHERE NOT is_valid_utf8(t)"
    rewrite = re.search(r"CALL .*\)", found["main.texts"]["repair"])[0]  # type: ignore[index]
    ends = (
        "MERGE INTO lake.main.seen AS v USING (SELECT id, dbt_valid_from AS next FROM lake.main.seen "
        "WHERE dbt_valid_to IS NULL) AS n ON v.id = n.id AND v.dbt_valid_to IS NOT NULL "
        "WHEN MATCHED THEN UPDATE SET dbt_valid_to = n.next"
    )
    statements = "".join("{% do run_query(" + json.dumps(one) + ") %}" for one in (repair, texts, rewrite, ends))
    (project.folder / "macros").mkdir()
    project.write("macros/repair.sql", "{% macro repair() %}" + statements + "{% endmacro %}")
    project.run("run-operation", "repair")
    project.run("run", "--full-refresh", "--select", "kept")
    assert doctor(project) == []
    with place.attached() as judge:
        assert judge.rows("SELECT count(*), count(DISTINCT id) FROM lake.main.parts WHERE p = 0") == [(2, 2)]
        assert judge.rows("SELECT t FROM lake.main.texts ORDER BY id") == [("\ufffd\ufffd",), ("fine",)]
