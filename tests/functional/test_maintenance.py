"""Maintenance: what each procedure does and answers, what it leaves alone, and what it costs where nothing is to do."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.lake import CommitConflict, Transaction
from dbt.adapters.ducklake.lake.errors import ReadOnlyLake, TableNotFound
from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.spark.scan import ROW_ID, ROW_SNAPSHOT, scan_versions
from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.statements.errors import NotAllowed, NotUnderstood
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.conftest import PlaceOf, spark_settings
from tests.judge import Judge
from tests.places import Place
from tests.written import plain, write_file

DAY = 86_400


class Lake:
    def __init__(self, place: Place, session: LakeSession) -> None:
        self.place, self.session = place, session
        self.warned: list[str] = []
        session.warn = self.warned.append

    def call(self, sql: str) -> list[tuple[Any, ...]]:
        found = run(self.session, sql).listing
        return [tuple(row) for row in found.rows] if found else []

    def files(self, table: str = "t") -> int:
        return int(self.place.asked(f"SELECT count(*) FROM ducklake_list_files('lake', '{table}')")[0][0])

    def snapshots(self) -> list[int]:
        return [row[0] for row in self.place.asked("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")]

    def lying(self) -> set[Path]:
        return set(Path(self.place.data_path).rglob("*.parquet"))


@pytest.fixture
def lake(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    place.options = {"data_inlining_row_limit": 0}
    with place.connect() as opened:
        handle = SparkHandle(spark_settings(tmp_path_factory))
        yield Lake(place, LakeSession({"lake": opened}, "lake", "main", handle))


def no_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(self: SparkHandle) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(SparkHandle, "session", started)


def small_files(lake: Lake, count: int, rows: int = 20) -> None:
    lake.place.judged(
        "CREATE TABLE t (id BIGINT, k BIGINT)",
        *(f"INSERT INTO t SELECT {n * rows} + i, i % 2 FROM range({rows}) r(i)" for n in range(count)),
    )


def test_small_files_become_one_and_every_snapshot_stays(lake: Lake) -> None:
    small_files(lake, 6)
    before = {v: lake.place.asked(f"SELECT * FROM t AT (VERSION => {v}) ORDER BY id") for v in lake.snapshots()[2:]}
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't')") == [("main", "t", 6, 1)]
    assert lake.files() == 1
    for version, rows in before.items():
        assert lake.place.asked(f"SELECT * FROM t AT (VERSION => {version}) ORDER BY id") == rows
    assert lake.place.asked("SELECT rowid, id FROM t WHERE rowid <> id") == []
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't')") == []


def test_a_merge_keeps_to_a_partition_and_to_bounds(lake: Lake) -> None:
    lake.place.judged(
        "CREATE TABLE t (id BIGINT, k VARCHAR)", "ALTER TABLE t SET PARTITIONED BY (k)",
        *(f"INSERT INTO t SELECT {n}, x FROM (VALUES ('a'), ('b'), (NULL)) v(x)" for n in range(4)),
    )  # fmt: skip
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't', partition => 'k=a')") == [("main", "t", 4, 1)]
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't', partition => 'k=null')") == [("main", "t", 4, 1)]
    assert lake.files() == 6
    with pytest.raises(NotAllowed, match="there is no key region"):
        lake.call("CALL ducklake_merge_adjacent_files('lake', 't', partition => 'region=a')")
    lake.place.judged(*(f"INSERT INTO t SELECT {n}, x FROM (VALUES ('a'), ('c')) v(x)" for n in range(4)))
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't', max_compacted_files => 1)")[0][3] == 1
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't', max_bytes => 1)")[0][3] == 1
    assert lake.place.asked("SELECT k, count(*) FROM t GROUP BY k ORDER BY k") == [
        ("a", 8), ("b", 4), ("c", 4), (None, 4),
    ]  # fmt: skip
    folders = {path.parent.name for path in lake.lying()}
    assert folders == {"k=a", "k=b", "k=c", "k=__HIVE_DEFAULT_PARTITION__"}


def test_a_dry_run_says_what_would_be_and_starts_no_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    small_files(lake, 3)
    lake.place.judged("DELETE FROM t WHERE id < 15")
    before = lake.snapshots()
    no_spark(lake, monkeypatch)
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', dry_run => true)") == [("main", "t", 2, 1)]
    rewritten = lake.call("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.5, dry_run => true)")
    assert rewritten == [("main", "t", 1, 1)]
    expired = lake.call(
        "CALL ducklake_expire_snapshots('lake', older_than => now() - interval '0 days', dry_run => true)"
    )
    assert [row[0] for row in expired] == before[:-1]
    assert lake.snapshots() == before


def test_deleted_rows_are_left_out(lake: Lake) -> None:
    small_files(lake, 2)
    lake.place.judged("DELETE FROM t WHERE id < 15")
    assert lake.call("CALL ducklake_rewrite_data_files('lake', 't')") == []
    assert lake.call("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.7)") == [("main", "t", 1, 1)]
    tables = lake.place.tables()
    live = [row for row in tables["ducklake_data_file"] if row["end_snapshot"] is None]
    assert sorted(int(row["record_count"]) for row in live) == [5, 20]
    assert all(row["end_snapshot"] is not None for row in tables["ducklake_delete_file"])
    assert lake.place.asked("SELECT min(id), count(*), count(DISTINCT rowid) FROM t WHERE rowid = id") == [(15, 25, 25)]
    lake.place.judged("DELETE FROM t WHERE id = 16", "UPDATE t SET k = 9 WHERE id = 17")
    assert lake.place.asked("SELECT count(*), sum(k) FILTER (k = 9) FROM t") == [(24, 9)]


def test_compact_does_what_is_due(lake: Lake) -> None:
    small_files(lake, 12)
    lake.place.judged("DELETE FROM t WHERE id < 15")
    done = lake.call("CALL ducklake_compact('lake', 't')")
    assert [(row[2], row[3], row[4]) for row in done] == [("rewrite", 1, 1), ("merge", 12, 1)]
    assert lake.files() == 1
    assert lake.call("CALL ducklake_compact('lake', 't', small_files => 1)") == []


def test_where_nothing_is_due_one_query_is_asked_and_no_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    small_files(lake, 9)
    no_spark(lake, monkeypatch)
    asked: list[str] = []
    for name in ("query", "read"):
        works = getattr(MetadataSession, name)

        def counted(self: MetadataSession, what: Any, *values: Any, works: Any = works) -> Any:
            asked.append(str(what))
            return works(self, what, *values)

        monkeypatch.setattr(MetadataSession, name, counted)
    before = lake.snapshots()
    started = time.perf_counter()
    assert lake.call("CALL ducklake_compact('lake', 't', schema => 'main')") == []
    print(f"nothing to do took {1000 * (time.perf_counter() - started):.1f} ms on {lake.place.kind}")
    assert len(asked) == 1
    assert lake.snapshots() == before
    with pytest.raises(TableNotFound):
        lake.call("CALL ducklake_compact('lake', 'nope')")


def test_a_table_says_that_it_is_not_to_be_compacted(lake: Lake) -> None:
    small_files(lake, 12)
    lake.call("CALL ducklake_set_option('lake', 'auto_compact', 'false', table_name => 't')")
    assert lake.call("CALL ducklake_compact('lake', 't')") == []
    assert lake.call("CALL ducklake_merge_adjacent_files('lake')") == []
    assert lake.files() == 12


def test_a_writer_wins_over_a_compaction(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    small_files(lake, 12)
    commit, deletes = Transaction.commit, [1]

    def after_a_delete(self: Transaction, *arguments: Any) -> Any:
        if deletes:
            lake.place.judged(f"DELETE FROM t WHERE id = {deletes.pop()}")
        return commit(self, *arguments)

    monkeypatch.setattr(Transaction, "commit", after_a_delete)
    # The file that lost a row meanwhile is left out when it is done again.
    assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't', max_file_size => 100000)") == [
        ("main", "t", 11, 1)
    ]
    lake.place.judged(*(f"INSERT INTO t SELECT {1000 + n}, 0 FROM range(20)" for n in range(12)))
    lying = lake.lying()
    deletes.extend([1002, 1001])
    with pytest.raises(CommitConflict):
        lake.call("CALL ducklake_merge_adjacent_files('lake', 't')")
    deletes.extend([1004, 1003])
    assert lake.call("CALL ducklake_compact('lake', 't', small_files => 2, deleted_share => 1)") == []
    assert "was not compacted (merge): snapshot" in lake.warned[-1]
    assert {path for path in lake.lying() - lying if "-delete" not in path.name} == set()
    assert lake.place.asked("SELECT count(*) FROM t") == [(239 + 8 * 20,)]


def test_inlined_rows_and_deletes_go_to_files(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    place.options = {"data_inlining_row_limit": 20}
    place.judged(
        "CREATE TABLE t (id BIGINT, s VARCHAR)", "INSERT INTO t SELECT i, 'a' || i FROM range(5) r(i)",
        "UPDATE t SET s = 'b' WHERE id = 2", "DELETE FROM t WHERE id = 3",
        "INSERT INTO t SELECT 100 + i, 'f' FROM range(50) r(i)",
        "DELETE FROM t WHERE id IN (101, 102)", "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7",
        "INSERT INTO t VALUES (9, 'z', 1)",
    )  # fmt: skip
    versions = [row[0] for row in place.asked("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")][2:]
    asked = "SELECT rowid, * FROM t AT (VERSION => {}) ORDER BY id"
    before = {version: place.asked(asked.format(version)) for version in versions}
    with place.connect() as opened:
        session = LakeSession({"lake": opened}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory)))
        lake = Lake(place, session)
        assert lake.call("CALL ducklake_flush_inlined_data('lake', 't')") == [("main", "t", 7)]
        assert lake.call("CALL ducklake_flush_inlined_data('lake', 't')") == []
    for version, rows in before.items():
        assert place.asked(asked.format(version)) == rows, version
    assert [place.tables()[name] for name in inlined_tables(place)] == [[], []]
    # The table of the earlier layout goes when snapshots expire: sessions of DuckDB that know it fail without it.
    with place.connect() as opened:
        opened.maintenance.expire(versions[:1])
    assert len(inlined_tables(place)) == len(place.tables()["ducklake_inlined_data_tables"]) == 1


def inlined_tables(place: Place) -> list[str]:
    return [name for name in place.tables() if name.startswith("ducklake_inlined_data_") and name[-1].isdigit()]


def test_small_deletes_by_duckdb_do_not_get_lost_beside_a_merge(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if place.kind != "postgres":
        pytest.skip("two sessions at once")
    place.options = {"data_inlining_row_limit": 10}
    place.judged(
        "CREATE TABLE t (id BIGINT)", *(f"INSERT INTO t SELECT {50 * n} + i FROM range(50) r(i)" for n in range(3))
    )
    with place.connect() as opened, Judge() as other:
        lake = Lake(place, LakeSession({"lake": opened}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory))))
        place.attach(other)
        other.run("BEGIN", "DELETE FROM t WHERE id < 2")
        assert lake.call("CALL ducklake_merge_adjacent_files('lake', 't')") == [("main", "t", 3, 1)]
        with pytest.raises(duckdb.TransactionException, match="flushed"):
            other.run("COMMIT")
        other.run("DELETE FROM t WHERE id < 2")
    assert place.asked("SELECT count(*) FROM t") == [(148,)]


def test_a_row_that_was_deleted_twice_is_deleted_once(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    place.options = {"data_inlining_row_limit": 10}
    place.judged("CREATE TABLE t (id BIGINT)", "INSERT INTO t SELECT i FROM range(100) r(i)")
    place.judged("DELETE FROM t WHERE id < 40")
    # As DuckDB leaves it where a delete to a file and a small one of the same rows both commit.
    (table,) = {row["table_id"] for row in place.tables()["ducklake_data_file"]}
    (file,) = {row["data_file_id"] for row in place.tables()["ducklake_data_file"]}
    place.judged("DELETE FROM t WHERE id = 70")
    (newest,) = place.asked("SELECT max(snapshot_id) FROM lake.snapshots()")[0]
    place.execute(f"INSERT INTO ducklake_inlined_delete_{table} VALUES ({file}, 5, {newest})")
    with place.connect() as opened:
        lake = Lake(place, LakeSession({"lake": opened}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory))))
        lake.call("CALL ducklake_flush_inlined_data('lake', 't')")
        assert place.asked("SELECT count(*), count(DISTINCT id) FROM t") == [(59, 59)]
        assert place.asked(f"SELECT count(*) FROM t AT (VERSION => {newest - 1})") == [(60,)]
        lake.call("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.1)")
    assert place.asked("SELECT count(*), count(DISTINCT id) FROM t") == [(59, 59)]


def test_nothing_is_removed_from_a_lake_that_is_read_only(lake: Lake) -> None:
    small_files(lake, 3)
    lake.call("CALL ducklake_merge_adjacent_files('lake', 't')")
    before = lake.lying()
    with lake.place.connect(read_only=True) as opened:
        session = LakeSession({"lake": opened}, "lake", "main", lake.session.spark)
        for call in ("cleanup_old_files", "delete_orphaned_files"):
            with pytest.raises(ReadOnlyLake):
                run(session, f"CALL ducklake_{call}('lake', cleanup_all => true)")
    assert lake.lying() == before


def test_a_file_under_another_name_of_its_folder_is_no_orphan(lake: Lake, tmp_path: Path) -> None:
    small_files(lake, 1)
    [path] = lake.lying()
    os.utime(path, (time.time() - 3 * DAY,) * 2)
    link = tmp_path / "link"
    link.symlink_to(path.parent)
    lake.place.execute(f"UPDATE ducklake_data_file SET path = '{link}/{path.name}', path_is_relative = false")
    assert lake.call("CALL ducklake_delete_orphaned_files('lake')") == []
    assert lake.place.asked("SELECT count(*) FROM t") == [(20,)]


def test_a_table_that_spark_cannot_write_is_named_and_others_go_on(lake: Lake) -> None:
    small_files(lake, 12)
    lake.place.judged("CREATE TABLE n (moment TIMESTAMP_NS)", *(["INSERT INTO n SELECT now() FROM range(20)"] * 12))
    assert lake.call("CALL ducklake_compact('lake', 'n')") == []
    assert "holds nanoseconds" in lake.warned[-1]
    assert lake.call("CALL ducklake_merge_adjacent_files('lake')") == [("main", "t", 12, 1)]
    lake.place.judged("CREATE VIEW v AS SELECT 1 AS one")
    assert lake.call("CALL ducklake_compact('lake', 'v')") == []


def test_each_partition_counts_for_itself(lake: Lake) -> None:
    lake.place.judged(
        "CREATE TABLE t (id BIGINT, k BIGINT)", "ALTER TABLE t SET PARTITIONED BY (k)",
        *(f"INSERT INTO t SELECT {n}, k FROM range(6) r(k)" for n in range(3)),
        "INSERT INTO t SELECT 9, 0", "INSERT INTO t SELECT 9, 0",
    )  # fmt: skip
    # 20 small files, but three or five in a partition.
    assert lake.call("CALL ducklake_compact('lake', 't', small_files => 5)") == [("main", "t", "merge", 5, 1)]
    assert lake.call("CALL ducklake_compact('lake', 't', small_files => 5)") == []


def test_deletes_of_a_file_that_has_ended_stay(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    place.options = {"data_inlining_row_limit": 20}
    place.judged(
        "CREATE TABLE t (id BIGINT)", "INSERT INTO t SELECT i FROM range(50) r(i)", "DELETE FROM t WHERE id < 3",
        "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.01)",
        "INSERT INTO t SELECT 100 + i FROM range(50) r(i)", "DELETE FROM t WHERE id > 147",
    )  # fmt: skip
    versions = [row[0] for row in place.asked("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1")][2:]
    before = {version: place.asked(f"SELECT count(*) FROM t AT (VERSION => {version})") for version in versions}
    with place.connect() as opened:
        session = LakeSession({"lake": opened}, "lake", "main", SparkHandle(spark_settings(tmp_path_factory)))
        lake = Lake(place, session)
        assert lake.call("CALL ducklake_compact('lake', 't', inlined_rows => 1)") == [("main", "t", "flush", 0, 1)]
        assert lake.call("CALL ducklake_compact('lake', 't', inlined_rows => 1)") == []
        for version, rows in before.items():
            assert place.asked(f"SELECT count(*) FROM t AT (VERSION => {version})") == rows, version
        lake.call("CALL ducklake_expire_snapshots('lake', older_than => '0 seconds')")
    left = next(rows for name, rows in place.tables().items() if name.startswith("ducklake_inlined_delete_"))
    assert left == []
    assert place.asked("SELECT count(*) FROM t") == [(95,)]


def test_snapshots_expire_by_age_to_the_second(lake: Lake) -> None:
    small_files(lake, 3)
    ids, tables = lake.snapshots(), lake.place.tables()["ducklake_snapshot"]
    middle = next(row["snapshot_time"] for row in tables if int(row["snapshot_id"]) == ids[-2])
    expired = lake.call(f"CALL ducklake_expire_snapshots('lake', older_than => '{middle}')")
    assert [row[0] for row in expired] == ids[:-2]
    assert lake.snapshots() == ids[-2:]
    assert lake.call("CALL ducklake_expire_snapshots('lake')") == []
    lake.call("CALL ducklake_set_option('lake', 'expire_older_than', '0 seconds')")
    assert [row[0] for row in lake.call("CALL ducklake_expire_snapshots('lake')")] == [ids[-2]]
    with pytest.raises(NotAllowed, match="newest snapshot"):
        lake.call(f"CALL ducklake_expire_snapshots('lake', versions => [{ids[-1]}])")
    with pytest.raises(NotUnderstood, match="or how long ago, such as '7 days'"):
        lake.call("CALL ducklake_expire_snapshots('lake', older_than => 'yesterday')")


def test_files_are_removed_when_they_have_waited(lake: Lake) -> None:
    small_files(lake, 3)
    lake.call("CALL ducklake_merge_adjacent_files('lake', 't')")
    assert lake.call("CALL ducklake_cleanup_old_files('lake')") == []
    named = lake.call("CALL ducklake_cleanup_old_files('lake', cleanup_all => true, dry_run => true)")
    assert len(named) == 3
    assert len(lake.lying()) == 4
    # One was removed by somebody else, or by a run that ended in the middle.
    Path(named[0][0]).unlink()
    assert lake.call("CALL ducklake_cleanup_old_files('lake', older_than => '0 seconds')") == named
    assert len(lake.lying()) == 1
    assert lake.place.tables()["ducklake_files_scheduled_for_deletion"] == []
    assert lake.place.asked("SELECT count(*) FROM t") == [(60,)]


def test_a_scheduled_file_that_is_in_use_stays(lake: Lake) -> None:
    small_files(lake, 1)
    path = lake.place.tables()["ducklake_data_file"][0]["path"]
    lake.place.execute(
        "INSERT INTO ducklake_files_scheduled_for_deletion "
        f"VALUES (77, 'main/t/{path}', true, '2020-01-01 00:00:00+00')"
    )
    assert lake.call("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)") == []
    assert lake.place.asked("SELECT count(*) FROM t") == [(20,)]


def test_only_orphans_of_this_lake_are_removed(lake: Lake) -> None:
    small_files(lake, 2)
    [folder] = {path.parent for path in lake.lying()}
    old = time.time() - 3 * DAY

    def lay(path: Path, age: float = old) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
        os.utime(path, (age, age))
        return path

    # Whoever wrote this path spelled it otherwise than a listing does.
    lake.place.execute("UPDATE ducklake_data_file SET path = './/' || path")
    for path in folder.glob("*.parquet"):
        os.utime(path, (old, old))
    orphan = lay(folder / f"ducklake-{uuid4()}.parquet")
    crashed = lay(folder / f"ducklake-{uuid4()}" / "part-00000.parquet")
    spared = {
        lay(folder / f"ducklake-{uuid4()}.parquet", time.time()),
        lay(folder / f"ducklake-{uuid4()}" / "part-00000.parquet", time.time()),
        lay(folder / "mine.parquet"),
        lay(folder.parent / "of_another_lake" / f"ducklake-{uuid4()}.parquet"),
        lay(folder.parent.parent / f"ducklake-{uuid4()}.parquet"),
    }
    expected = sorted(str(path) for path in (orphan, crashed))
    named = lake.call("CALL ducklake_delete_orphaned_files('lake', dry_run => true)")
    assert sorted(row[0] for row in named) == expected
    assert sorted(row[0] for row in lake.call("CALL ducklake_delete_orphaned_files('lake')")) == expected
    assert not orphan.exists()
    assert not crashed.exists()
    assert all(path.exists() for path in spared)
    # What somebody may be writing is left alone even where all is asked for.
    young = sorted(path for path in spared if path.parent.name != folder.name and path.stat().st_mtime > old + DAY)
    lake.call("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    assert all(path.exists() for path in young)
    assert lake.place.asked("SELECT count(*) FROM t") == [(40,)]


def test_checkpoint_does_it_all(lake: Lake) -> None:
    small_files(lake, 4)
    lake.call("CALL ducklake_set_option('lake', 'expire_older_than', '0 seconds')")
    assert run(lake.session, "CHECKPOINT lake").code == "CHECKPOINT"
    assert lake.files() == 1
    assert len(lake.snapshots()) == 2


def test_a_file_that_a_table_has_twice_has_rows_of_both(place_of: PlaceOf, spark: SparkSession) -> None:
    with place_of("duckdb").connect() as opened:
        made = opened.transaction()
        made.create_table("main", "t", plain("a"))
        made.commit()
        file = write_file(opened.snapshot().table("main", "t"), [(7,), (8,)])
        for _ in range(2):
            transaction = opened.transaction()
            transaction.append(transaction.table("main", "t"), [file])
            transaction.commit()
        snapshot = opened.snapshot()
        table = snapshot.table("main", "t")
        files = snapshot.files(table)
        groups = [[one] for one in files.data_files]
        parts = scan_versions(spark, Storage(opened.data_path, {}), table, files, snapshot.id, groups)
        found = [sorted((row["a"], row[ROW_ID], row[ROW_SNAPSHOT]) for row in part.collect()) for part in parts]
    assert found == [[(7, 0, 2), (8, 1, 2)], [(7, 2, 3), (8, 3, 3)]]


def test_what_makes_no_sense_is_refused(lake: Lake, place_of: PlaceOf) -> None:
    small_files(lake, 1)
    for sql, said in (
        (
            "CALL ducklake_merge_adjacent_files('lake', 't', max_compacted_files => 0)",
            "It takes a whole number from 1 on.",
        ),
        ("CALL ducklake_merge_adjacent_files('lake', 't', min_file_size => 9, max_file_size => 9)", "is not below"),
        ("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 2)", "a share between 0 and 1"),
        ("CALL ducklake_cleanup_old_files('lake', cleanup_all => true, older_than => '1 day')", "Give one of them"),
        ("CALL ducklake_merge_adjacent_files('lake', 't', partition => 'k')", "Write key=value"),
    ):
        with pytest.raises(NotAllowed, match=said):
            lake.call(sql)
