"""Lakes that the extension makes are read by Spark through us as the extension reads them, at every snapshot."""

from __future__ import annotations

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import Column, Lake, Snapshot, SnapshotId, Table
from dbt.adapters.ducklake.lake.backends.duckdb_values import duckdb_type
from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.spark.feed import Feed
from dbt.adapters.ducklake.spark.scan import scan
from dbt.adapters.ducklake.spark.schema import quoted as quoted_for_spark
from dbt.adapters.ducklake.spark.storage import Storage
from tests.conftest import PlaceOf
from tests.interop.generated import Generator
from tests.interop.reader import deletions, insertions
from tests.interop.test_reading import STEPS, Ours, Theirs, _differing
from tests.judge import Judge
from tests.seeds import on_each_kind


@pytest.mark.parametrize(("kind", "seed"), on_each_kind(1, 5, 70))
def test_every_snapshot_reads_as_the_extension_reads_it(
    kind: str, seed: int, place_of: PlaceOf, spark: SparkSession
) -> None:
    place = place_of(kind)
    place.options = {"data_inlining_row_limit": (0, 3, 10, 100)[seed % 4]}
    with place.attached() as judge:
        generator = Generator(seed, judge, kind)
        try:
            generator.run(STEPS)
        except duckdb.FatalException:
            Judge.forget()
            raise
    theirs = Theirs(place)
    with place.connect() as lake:
        ours = Ours(place, lake)
        seen: set[str] = set()
        found = [line for version in theirs.versions for line in _compared(spark, lake, ours, theirs, version, seen)]
        found += _compared_feed(spark, lake, ours, theirs.versions[0], theirs.versions[-1])
    assert not found, f"seed {seed} on {kind}:\n" + "\n".join(found) + "\nafter:\n" + ";\n".join(generator.ran)


def _compared(spark: SparkSession, lake: Lake, ours: Ours, theirs: Theirs, version: int, seen: set[str]) -> list[str]:
    found = []
    for name, (snapshot, table) in ours.tables(version).items():
        # Nothing new to read where neither the table nor its files changed since another snapshot.
        reading = f"{name} {table.columns} {snapshot.files(table)}"
        if theirs.tables[version][name] is None or reading in seen:
            continue
        seen.add(reading)
        rows, expected = texts(ours.judge, table, read(spark, lake, snapshot, table)), theirs.tables[version][name][2]
        if rows != expected:
            found.append(f"snapshot {version}: {name}: {_differing(rows, expected)}")
    return found


def _compared_feed(spark: SparkSession, lake: Lake, ours: Ours, first: int, last: int) -> list[str]:
    """The feed that Spark reads is the lake client's, which the reading tests compare with time travel."""
    found = []
    for name, (snapshot, table) in ours.tables(last).items():
        changes = snapshot.changes(table, SnapshotId(first))
        feed = Feed(spark, Storage(lake.data_path, {}), table, changes)
        for rows, expected in (
            (feed.insertions(), insertions(ours.judge, table, changes)),
            (feed.deletions(), deletions(ours.judge, table, changes)),
        ):
            read_rows = texts(ours.judge, table, rows, "snapshot_id, rowid, ")
            if read_rows != expected:
                found.append(f"feed of {name}: {_differing(read_rows, expected)}")
    return found


def read(spark: SparkSession, lake: Lake, snapshot: Snapshot, table: Table) -> DataFrame:
    return scan(spark, Storage(lake.data_path, {}), table, snapshot.files(table), snapshot.id)


def _of_arrow(column: Column) -> str:
    name = quoted(column.name)
    if column.type.name == "variant":
        return f"variant_bytes_to_variant({name}.metadata || {name}.value)"
    return f"CAST({name} AS {duckdb_type(column)})"


def texts(judge: Judge, table: Table, rows: DataFrame, lead: str = "") -> list[tuple[object, ...]]:
    """The rows as DuckDB's text of the values of its types."""
    shown = (f"CAST({_of_arrow(column)} AS VARCHAR)" for column in table.columns)
    # Arrow's tables take no NULL for a VARIANT of Spark's; to DuckDB one of null is the same.
    given = {
        column.name: F.coalesce(F.col(quoted_for_spark(column.name)), F.parse_json(F.lit("null")))
        for column in table.columns
        if column.type.name == "variant"
    }
    with judge.registered("spark_rows", rows.withColumns(given).toArrow()):
        return sorted(judge.rows(f"SELECT {lead}{', '.join(shown)} FROM spark_rows"), key=repr)
