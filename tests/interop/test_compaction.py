"""Compaction leaves every snapshot as it was, and the metadata as the extension's own procedures leave them."""

from __future__ import annotations

import duckdb
import pytest

from dbt.adapters.ducklake.lake.names import quoted
from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import PlaceOf, spark_settings
from tests.interop.compared import RELATIONS, comparable, differences
from tests.interop.generated import NOT_WRITTEN
from tests.interop.twins import Twins, read_at, twins
from tests.places import Place, Rows
from tests.seeds import by_turns

STEPS = 24
STATS = "ducklake_table_column_stats"
LEFT_OUT = ("_expire", "_view", "_maintain")
# Files with deleted rows are not merged, so these lakes have fewer.
LEFT_OUT_OF = {
    "merge": (*LEFT_OUT, "_delete", "_update", "_merge", "_truncate"),
    "rewrite": LEFT_OUT,
    "flush": LEFT_OUT,
}
CALLS = {
    "merge": "CALL ducklake_merge_adjacent_files('lake')",
    "rewrite": "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.2)",
    "flush": "CALL ducklake_flush_inlined_data('lake')",
}


@pytest.fixture
def spark_handle(tmp_path_factory: pytest.TempPathFactory) -> SparkHandle:
    return SparkHandle(spark_settings(tmp_path_factory))


def feed_of(place: Place, last: int) -> dict[str, object]:
    """The change feed of every table as the extension tells it."""
    found: dict[str, object] = {}
    with place.attached() as judge:
        for schema, name in judge.rows(RELATIONS):
            rows = judge.rows(
                f"SELECT snapshot_id, rowid, change_type, CAST(COLUMNS(* EXCLUDE (snapshot_id, rowid, change_type)) "
                f"AS VARCHAR) FROM ducklake_table_changes('lake', '{schema}', '{name}', 0, {last})"
            )
            found[f"{quoted(schema)}.{quoted(name)}"] = sorted(map(repr, rows))
    return found


@pytest.mark.parametrize("procedure", CALLS)
@pytest.mark.parametrize(("kind", "seed"), by_turns(1, 5, 40))
def test_nothing_that_was_to_be_read_changes(
    procedure: str, kind: str, seed: int, place_of: PlaceOf, spark_handle: SparkHandle
) -> None:
    # The types that Spark does not write are in one lake of four.
    without = LEFT_OUT_OF[procedure] + (() if seed % 4 == 3 else NOT_WRITTEN)
    # In one lake of two the extension has compacted before us.
    without = tuple(name for name in without if name != "_maintain" or seed % 2 == 0)
    both = twins(seed, kind, STEPS, place_of, without)
    # The extension writes the delete files of one statement in an order of chance.
    were_alike, warned = not differences(_without(both.ours.tables()), _without(both.theirs.tables())), list[str]()
    ids = [row[0] for row in both.ours.asked("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")]
    try:
        before, feed = read_at(both.ours, ids), feed_of(both.ours, ids[-1])
    except duckdb.InvalidInputException as error:
        # A default of another type than its column has, of which its maker's own change feed makes an error.
        pytest.skip(f"the extension does not read what it wrote: {error}")
    told = comparable({STATS: both.ours.tables()[STATS]})
    with both.ours.connect() as lake:
        session = LakeSession({"lake": lake}, "lake", "main", spark_handle, warn=warned.append)
        outcome = run(session, CALLS[procedure])
    both.theirs.judged(CALLS[procedure])
    assert outcome.listing is not None
    print(f"{procedure} {seed}: {outcome.listing.rows}, alike: {were_alike}, warned: {warned}")
    assert read_at(both.ours, ids) == before
    assert comparable({STATS: both.ours.tables()[STATS]}) == told
    newest = max(row[0] for row in both.ours.asked("SELECT snapshot_id FROM lake.snapshots()"))
    if procedure != "rewrite":
        assert feed_of(both.ours, newest) == feed
    # For several tables the extension makes one snapshot, and we one for each: a writer waits for none of the others.
    if were_alike and not warned and len(outcome.listing.rows) <= 1:
        assert not unexplained(procedure, both)
    both.theirs.judged(*EVERYTHING)
    both.ours.judged(*EVERYTHING)
    assert rows_now(both.ours) == rows_now(both.theirs)


# The extension's own procedures, after ours.
EVERYTHING = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
)
# Other writers compress otherwise, and say where they come from.
_SIZES = {"file_size_bytes", "footer_size", "column_size_bytes", "commit_extra_info"}
# Our files always hold the row ids, so that their rows need no order; the extension's only where these have gaps.
_NOT_COMPARED = {*_SIZES, "row_id_start"}


def unexplained(procedure: str, both: Twins) -> list[str]:
    """Where our metadata are other than the extension's for no good reason."""
    ours, theirs = (_without(place.tables()) for place in (both.ours, both.theirs))
    for row in ours["ducklake_snapshot_changes"]:
        # Ours says of a merge and a rewrite that it flushed as well, or DuckDB would commit small deletes beside it.
        made = str(row["changes_made"])
        if "merge_adjacent" in made or "rewrite_delete" in made:
            row["changes_made"] = ",".join(part for part in made.split(",") if not part.startswith("inline_flush"))
    if procedure == "flush":
        # Empty inlined tables of earlier layouts stay until snapshots expire. Two versions of a row go to files of
        # their own: of both in one file the extension's change feed tells what never happened.
        # It also tightens the table's statistics, by which its readers of older snapshots then go wrong.
        for tables in (ours, theirs):
            tables.pop("ducklake_inlined_data_tables")
            tables.pop("ducklake_table_column_stats")
            _new_as_one(tables)
            for name in [
                name for name, rows in tables.items() if name.startswith("ducklake_inlined_data_") and not rows
            ]:
                tables.pop(name)
    if procedure == "merge":
        # It numbers the groups of files by chance.
        known = {row["data_file_id"] for row in both.ours.tables()["ducklake_files_scheduled_for_deletion"]}
        for tables in (ours, theirs):
            for row in (row for rows in tables.values() for row in rows if "data_file_id" in row):
                is_new = int(row["data_file_id"]) > max(map(int, known), default=1 << 62)
                row["data_file_id"] = "new" if is_new else row["data_file_id"]
    if procedure == "rewrite":
        # It writes a file for each source that ends up in a file of its own size; and tightens the table's statistics,
        # by which its readers of older snapshots then go wrong.
        for tables in (ours, theirs):
            for name in ("ducklake_table_stats", "ducklake_table_column_stats", "ducklake_snapshot"):
                tables.pop(name)
            tables["ducklake_data_file"] = _in_one(
                tables["ducklake_data_file"], tables["ducklake_file_partition_value"]
            )
            tables.pop("ducklake_file_partition_value")
            tables.pop("ducklake_file_column_stats")
    stats = "ducklake_file_column_stats"
    nested = {(str(r["table_id"]), str(r["column_id"])) for r in ours["ducklake_column"] if r["parent_column"]}
    for row in (row for tables in (ours, theirs) for row in tables.get(stats, [])):
        # The extension counts every value of a struct's field as NULL, and beside NaN gives bounds of the rest.
        if (str(row["table_id"]), str(row["column_id"])) in nested:
            row["value_count"] = row["null_count"] = None
        if str(row["contains_nan"]).lower() in ("true", "1"):
            row["min_value"] = row["max_value"] = None
    # Of some types Spark's footers say too little for bounds, and then we say nothing.
    said, told = (set(comparable({stats: tables.pop(stats, [])})[stats]) for tables in (ours, theirs))
    return [*differences(ours, theirs), *sorted(said - told)]


def _without(tables: dict[str, Rows]) -> dict[str, Rows]:
    return {
        name: [{key: value for key, value in row.items() if key not in _NOT_COMPARED} for row in rows]
        for name, rows in tables.items()
    }


def _new_as_one(tables: dict[str, Rows]) -> None:
    """What the last snapshot brought of data and delete files as one of each for a table, by their counts."""
    snapshots = sorted(tables["ducklake_snapshot"], key=lambda row: int(row["snapshot_id"]))
    if len(snapshots) < 2:
        return
    first = int(snapshots[-2]["next_file_id"])
    snapshots[-1]["next_file_id"] = "new"
    for name, id, count in (
        ("ducklake_data_file", "data_file_id", "record_count"),
        ("ducklake_delete_file", "delete_file_id", "delete_count"),
    ):
        counts: dict[str, int] = {}
        for row in tables[name]:
            if int(row[id]) >= first:
                counts[str(row["table_id"])] = counts.get(str(row["table_id"]), 0) + int(row[count])
        kept = [row for row in tables[name] if int(row[id]) < first]
        tables[name] = [*kept, *({"table_id": table, count: found} for table, found in counts.items())]
    for name in ("ducklake_file_column_stats", "ducklake_file_partition_value"):
        tables[name] = [row for row in tables.get(name, []) if int(row["data_file_id"]) < first]


def _in_one(files: Rows, values: Rows) -> Rows:
    """The new files of each table as one, by their rows."""
    last = max(int(row["begin_snapshot"]) for row in files) if files else 0
    new = [row for row in files if int(row["begin_snapshot"]) == last]
    counts: dict[str, int] = {}
    for row in new:
        counts[str(row["table_id"])] = counts.get(str(row["table_id"]), 0) + int(row["record_count"])
    kept = [row for row in files if row not in new]
    return [*kept, *({"table_id": table, "record_count": count} for table, count in counts.items())]


def rows_now(place: Place) -> dict[str, object]:
    newest = max(row[0] for row in place.asked("SELECT snapshot_id FROM lake.snapshots()"))
    return {name: read for (_, name), read in read_at(place, [newest]).items()}
