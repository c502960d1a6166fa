"""Files that others wrote become a table's: as the extension reads them, and as it would have added them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake.spark.errors import FileNotAdded
from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import PlaceOf, spark_settings
from tests.functional.test_maintenance import Lake
from tests.interop.twins import Twins
from tests.places import Place

DECLARED = (
    "CREATE TABLE t (id BIGINT, s VARCHAR, d DECIMAL(9, 2), f DOUBLE, l INTEGER[], p STRUCT(a INTEGER, b VARCHAR), "
    "m MAP(VARCHAR, INTEGER), moment TIMESTAMPTZ, day DATE)"
)
ROWS = (
    "SELECT i::BIGINT AS id, 's' || i AS s, (i / 4)::DECIMAL(9, 2) AS d, "
    "CASE WHEN i = 3 THEN 'nan' ELSE i / 8 END::DOUBLE AS f, [i, NULL]::INTEGER[] AS l, "
    "{'a': i::INTEGER, 'b': 'b' || i} AS p, MAP {'k': i::INTEGER} AS m, "
    "TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (i) HOUR AS moment, DATE '2026-01-01' + i::INTEGER AS day "
    "FROM range(20) r(i)"
)


@pytest.fixture
def lake(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    place.options = {"data_inlining_row_limit": 0}
    with place.connect() as opened:
        yield Lake(place, LakeSession({"lake": opened}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory))))


def test_the_metadata_are_those_that_the_extension_would_write(
    place_of: PlaceOf, kind: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    places = place_of(kind), place_of(kind)
    given = tmp_path / "given"
    given.mkdir()
    for place in places:
        place.options = {"data_inlining_row_limit": 0}
        place.judged(DECLARED, f"COPY ({ROWS}) TO '{given}/a.parquet'", f"COPY ({ROWS}) TO '{given}/b.parquet'")
    both = Twins(*places)
    call = f"CALL ducklake_add_data_files('lake', 't', '{given}/a.parquet')"
    both.theirs.judged(call)
    with both.ours.connect() as opened:
        handle = SparkHandle(spark_settings(tmp_path_factory))
        lake = Lake(both.ours, LakeSession({"lake": opened}, "lake", "main", handle))
        assert lake.call(call) == [(f"{given}/a.parquet",)]
        with pytest.raises(NotAllowed, match="is the lake's already"):
            lake.call(f"CALL ducklake_add_data_files('lake', 't', '{given}/*.parquet')")
    # Of floats we claim nothing, as the file may hold NaN beyond its bounds.
    said = [line for line in both.differences() if "column_id=4" not in line and "snapshot_changes" not in line]
    assert not said
    rows = "SELECT * REPLACE (CAST(m AS VARCHAR) AS m, CAST(moment AS VARCHAR) AS moment) FROM t ORDER BY id"
    assert repr(both.ours.asked(rows)) == repr(both.theirs.asked(rows))
    assert both.ours.asked("SELECT count(*), min(id), max(s) FROM t WHERE f > 2 OR isnan(f)") == both.theirs.asked(
        "SELECT count(*), min(id), max(s) FROM t WHERE f > 2 OR isnan(f)"
    )


def test_spark_reads_added_files_and_changes_their_rows(lake: Lake, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    lake.place.judged(DECLARED, f"COPY ({ROWS}) TO '{given}/a.parquet'", f"COPY ({ROWS}) TO '{given}/b.parquet'")
    lake.call(f"CALL ducklake_add_data_files('lake', 't', ['{given}/a.parquet', '{given}/b.parquet'])")
    run(lake.session, "DELETE FROM t WHERE id = 3")
    run(lake.session, "UPDATE t SET s = 'new' WHERE id = 4")
    assert lake.place.asked("SELECT count(*), count(*) FILTER (s = 'new'), sum(p.a), sum(l[1]) FROM t") == [
        (38, 2, 374, 374)
    ]
    # Those that the UPDATE wrote; the others have deleted rows.
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't')") == [("main", "t", 2, 1)]
    done = lake.call("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.05)")
    assert done[0][2] == 2
    assert lake.place.asked("SELECT count(*), sum(p.a), sum(l[1]), count(DISTINCT rowid) FROM t") == [
        (38, 374, 374, 38)
    ]


def test_bounds_are_those_of_the_column_or_none(lake: Lake, tmp_path: Path) -> None:
    """A footer's bounds are values of the file's type, which need not be the column's."""
    lake.place.judged(
        "CREATE TABLE t (a TIMESTAMP, u UBIGINT, n BIGINT, d TIMESTAMP)",
        "COPY (SELECT TIMESTAMP '2024-06-01'::TIMESTAMP_MS AS a, 18446744073709551615::UBIGINT AS u, "
        f"4000000000::UINTEGER AS n, DATE '2024-06-01' AS d) TO '{tmp_path}/given.parquet'",
        "INSERT INTO t SELECT '2020-01-01', 1, 1, '2020-01-01' FROM range(20)",
    )
    lake.call(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/given.parquet')")
    for condition in ("a = '2024-06-01'", "u > 5", "n = 4000000000", "d = '2024-06-01'", "n > 5 AND u > 5"):
        assert lake.place.asked(f"SELECT count(*) FROM t WHERE {condition}") == [(1,)], condition
    assert lake.place.asked("SELECT max(u), max(n), CAST(max(a) AS VARCHAR) FROM t") == [
        (18446744073709551615, 4000000000, "2024-06-01 00:00:00")
    ]


def test_lists_of_every_kind_and_what_lies_behind_them(lake: Lake, tmp_path: Path) -> None:
    lake.place.judged("CREATE TABLE t (l INTEGER[], id BIGINT)")
    lists = pa.array([[1, 2], None, [3]], pa.large_list(pa.int32()))
    others = pa.array([[{"a": 1000, "b": 2000}]] * 3, pa.large_list(pa.struct([("a", pa.int64()), ("b", pa.int64())])))
    ids = pa.array([5, 6, 7], pa.int64())
    pq.write_table(pa.table({"x": others, "l": lists, "id": ids}), tmp_path / "given.parquet")
    lake.call(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/given.parquet', ignore_extra_columns => true)")
    assert lake.place.asked("SELECT l FROM t WHERE id = 7") == [([3],)]
    assert lake.place.asked("SELECT min(id), max(id), sum(l[1]) FROM t") == [(5, 7, 4)]
    rows = run(lake.session, "SELECT id, l FROM t ORDER BY id").rows
    assert rows is not None
    assert [tuple(row) for row in rows.collect()] == [(5, [1, 2]), (6, None), (7, [3])]


def test_a_file_that_was_merged_is_not_taken_again(lake: Lake, tmp_path: Path) -> None:
    lake.place.judged(
        "CREATE TABLE t (id BIGINT)",
        *(f"COPY (SELECT {n}::BIGINT AS id) TO '{tmp_path}/f{n}.parquet'" for n in range(2)),
    )
    lake.call(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/*.parquet')")
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't')") == [("main", "t", 2, 1)]
    with pytest.raises(NotAllowed, match="is the lake's already"):
        lake.call(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/*.parquet')")
    assert lake.place.asked("SELECT id FROM t ORDER BY id") == [(0,), (1,)]


def test_values_may_stand_in_the_path(lake: Lake, tmp_path: Path) -> None:
    lake.place.judged(
        "CREATE TABLE t (id BIGINT, region VARCHAR)", "ALTER TABLE t SET PARTITIONED BY (region)",
        "COPY (SELECT i AS id, ['EU', 'a b', NULL][i % 3 + 1] AS region FROM range(9) r(i)) "
        f"TO '{tmp_path}/hive' (FORMAT parquet, PARTITION_BY region)",
    )  # fmt: skip
    assert len(lake.call(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/hive/**/*.parquet')")) == 3
    expected = [("EU", 3), ("a b", 3), (None, 3)]
    assert lake.place.asked("SELECT region, count(*) FROM t GROUP BY 1 ORDER BY 1") == expected
    assert lake.place.asked("SELECT count(*) FROM t WHERE region = 'a b'") == [(3,)]
    texts = sorted(str(row["partition_value"]) for row in lake.place.tables()["ducklake_file_partition_value"])
    assert texts == ["EU", "None", "a b"]
    rows = run(lake.session, "SELECT region, count(*) FROM t GROUP BY 1 ORDER BY 1 NULLS LAST").rows
    assert rows is not None
    assert [tuple(row) for row in rows.collect()] == expected


def test_what_a_file_lacks_or_has_too_much(lake: Lake, tmp_path: Path) -> None:
    lake.place.judged(
        "CREATE TABLE t (id BIGINT NOT NULL, n INTEGER)",
        f"COPY (SELECT i AS id FROM range(3) r(i)) TO '{tmp_path}/less.parquet'",
        f"COPY (SELECT i AS id, 1::INTEGER AS n, 'x' AS x FROM range(3) r(i)) TO '{tmp_path}/more.parquet'",
        f"COPY (SELECT 'a' AS id, 1::INTEGER AS n) TO '{tmp_path}/other.parquet'",
        f"COPY (SELECT NULL::BIGINT AS id, 1::INTEGER AS n) TO '{tmp_path}/nulls.parquet'",
    )
    columns = {"id": pa.array([1]), "ID": pa.array([2]), "n": pa.array([3], pa.int32())}
    pq.write_table(pa.table(columns), tmp_path / "twice.parquet")
    before = lake.snapshots()
    for name, said in (
        ("less", "it has no column n. With allow_missing"),
        ("more", "it has a column x. The table has id, n. With ignore_extra_columns"),
        ("other", "its column id is varchar. The table's is int64"),
        ("none", "there is no such file"),
        ("twice", "two of its columns are"),
        ("nulls", "its column id has NULLs, and the table's is NOT NULL"),
    ):
        with pytest.raises(FileNotAdded, match=said):
            lake.call(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/{name}.parquet', allow_missing => false)")
        assert lake.snapshots() == before
    call = "CALL ducklake_add_data_files('lake', 't', '{}/{}.parquet', {} => true)"
    assert len(lake.call(call.format(tmp_path, "less", "allow_missing"))) == 1
    assert len(lake.call(call.format(tmp_path, "more", "ignore_extra_columns"))) == 1
    # The extension forgets of the first that it has NULLs, and then finds none.
    assert lake.place.asked("SELECT count(*), count(n) FROM t") == [(6, 3)]
    assert lake.place.asked("SELECT count(*) FROM t WHERE n IS NULL") == [(3,)]
    assert all((tmp_path / f"{name}.parquet").exists() for name in ("less", "more", "other"))
