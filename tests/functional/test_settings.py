"""Settings of Spark and of Parquet, each once over one scenario: the same rows for both engines, or a refusal."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException

from dbt.adapters.ducklake.lake import LakeError
from dbt.adapters.ducklake.spark.errors import SparkRoomError
from dbt.adapters.ducklake.statements.errors import StatementError
from tests.conftest import spark_settings
from tests.seeds import ALL
from tests.sessions import Session, session_over

JARS = Path(pyspark.__file__).parent / "jars"
OF_SPARK = re.compile(rb"spark\.sql\.(?:parquet|ansi|legacy)\.[A-Za-z0-9_.]*[A-Za-z0-9]")
OF_PARQUET = re.compile(rb"parquet\.[a-z][A-Za-z0-9_.\-]*[a-z0-9]")
# What the two readings tried besides.
OTHERS = {
    "spark.sql.caseSensitive": ["true"],
    "spark.sql.adaptive.enabled": ["false"],
    "spark.sql.files.maxRecordsPerFile": ["2"],
    "spark.sql.files.maxPartitionBytes": ["300"],
    "spark.sql.timestampType": ["TIMESTAMP_NTZ"],
    "spark.sql.optimizer.disableHints": ["true"],
    "spark.sql.autoBroadcastJoinThreshold": ["-1"],
    "spark.sql.execution.arrow.maxRecordsPerBatch": ["1"],
    "spark.sql.execution.arrow.useLargeVarTypes": ["true"],
    "spark.sql.sources.useV1SourceList": ["''"],
    "spark.sql.files.ignoreMissingFiles": ["true"],
    "spark.sql.files.ignoreCorruptFiles": ["true"],
    "spark.sql.storeAssignmentPolicy": ["LEGACY", "STRICT"],
    "spark.sql.codegen.wholeStage": ["false"],
    "spark.sql.parser.escapedStringLiterals": ["true"],
    "spark.sql.session.timeZone": ["America/New_York"],
    "spark.sql.sources.partitionOverwriteMode": ["dynamic"],
    "spark.sql.sources.partitionColumnTypeInference.enabled": ["false"],
    "spark.sql.retainGroupColumns": ["false"],
    "spark.sql.groupByOrdinal": ["false"],
    "spark.sql.mapKeyDedupPolicy": ["LAST_WIN"],
    "spark.sql.ui.explainMode": ["simple"],
    "spark.sql.redaction.string.regex": [".*"],
    "spark.sql.variable.substitute": ["false"],
    "spark.sql.crossJoin.enabled": ["false"],
    "spark.sql.execution.pythonUDF.arrow.enabled": ["true"],
    "spark.sql.sources.commitProtocolClass": ["org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"],
    "mapreduce.fileoutputcommitter.algorithm.version": ["2"],
    "mapreduce.output.fileoutputformat.compress": ["false"],
    "mapreduce.output.basename": ["other"],
    "zlib.compress.level": ["NO_COMPRESSION"],
}
# One test would take longer than a test may.
PARTS = 12 if ALL else 1
# What no default tells, by the end of a key.
VALUES = {
    "parquet.crypto.factory.class": ["org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"],
    "parquet.encryption.footer.key": ["k1"],
    "parquet.encryption.uniform.key": ["k1"],
    "parquet.compression": ["GZIP", "UNCOMPRESSED"],
    "parquet.writer.version": ["v2"],
    "parquet.summary.metadata.level": ["ALL"],
    "parquet.compression.codec.zstd.level": ["19"],
    "parquet.bloom.filter.fpp": ["0.5"],
    "parquet.read.schema": ["message s { optional int32 id; }"],
    "parquet.read.filter": ["org.apache.parquet.filter.PagedRecordFilter"],
    "parquet.read.support.class": ["org.apache.parquet.hadoop.example.GroupReadSupport"],
    "parquet.write.support.class": ["org.apache.parquet.hadoop.example.GroupWriteSupport"],
    "spark.sql.parquet.compression.codec": ["gzip", "none"],
    "spark.sql.parquet.outputTimestampType": ["INT96", "TIMESTAMP_MILLIS"],
}
# Each was seen to change files, rows or statistics before it was overridden.
DANGEROUS = frozenset({
    "parquet.bloom.filter.enabled", "parquet.bloom.filter.enabled#x", "parquet.crypto.factory.class",
    "parquet.column.statistics.enabled", "parquet.column.statistics.enabled#n", "parquet.statistics.truncate.length",
    "parquet.strings.signed-min-max.enabled", "parquet.block.row.count.limit", "parquet.enable.summary-metadata",
    "spark.sql.parquet.outputTimestampType", "spark.sql.parquet.writeLegacyFormat", "spark.sql.ansi.enabled",
    "spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.binaryAsString", "spark.sql.caseSensitive",
    "spark.sql.parquet.recordLevelFilter.enabled", "spark.sql.files.maxRecordsPerFile", "spark.sql.session.timeZone",
    "spark.sql.legacy.timeParserPolicy", "spark.sql.storeAssignmentPolicy", "parquet.writer.version",
    "spark.sql.parquet.fieldId.write.enabled", "spark.sql.timestampType", "spark.sql.parquet.mergeSchema",
})  # fmt: skip
CREATED = (
    "create table t (id int, n bigint, m decimal(18,4), s string, b boolean, f double, d date, moment timestamp, "
    "clock timestamp_ntz, x binary, l array<int>, o struct<`a b`: int, c: array<string>>, p string) "
    "partitioned by (months(moment), p)"
)
CHANGES = (
    "insert into t select * from given where id < 8",
    "insert into t select * from given where id >= 8",
    "update t set n = n + 1, s = concat(s, '!') where id % 3 = 0",
    "delete from t where id = 5",
    "merge into t using (select * from given where id in (1, 5, 6)) as g on t.id = g.id "
    "when matched then update set m = g.m + 1, p = 'moved' when not matched then insert *",
    "call ducklake_rewrite_data_files('lake')",
    "call ducklake_merge_adjacent_files('lake')",
    "delete from t where p = 'moved' and id = 1",
)
GIVEN = """
CREATE TABLE given AS SELECT i::INT AS id, CASE WHEN i % 4 <> 0 THEN i * 1000000007 END AS n, (i / 7)::DECIMAL(18,4) AS m,
    CASE i % 5 WHEN 0 THEN 'ö' || repeat('é', 300) WHEN 1 THEN '' WHEN 2 THEN 'a''b\\c' ELSE i::VARCHAR END AS s, i % 2 = 0 AS b,
    CASE i WHEN 3 THEN 'NaN'::DOUBLE WHEN 4 THEN '-0.0'::DOUBLE ELSE i / 3 END AS f, DATE '1000-01-01' + (i * 40000)::INT AS d,
    TIMESTAMPTZ '1880-03-28 01:30:00+00' + INTERVAL (i * 150) DAY AS moment, TIMESTAMP '1582-10-04 02:30:00.123456' + INTERVAL (i * 7) DAY AS clock,
    ('\\x00\\xFF' || i::VARCHAR)::BLOB AS x, CASE WHEN i % 3 > 0 THEN [i, NULL, -i]::INT[] END AS l,
    CASE WHEN i <> 2 THEN {'a b': i::INT, 'c': [i::VARCHAR, NULL]} END AS o, CASE i % 3 WHEN 0 THEN 'a/b' WHEN 1 THEN NULL ELSE '' END AS p
FROM range(16) r(i)
"""  # noqa: E501


def keys(pattern: re.Pattern[bytes], jars: str) -> list[str]:
    found = set()
    for path in JARS.glob(jars):
        with zipfile.ZipFile(path) as jar:
            for name in jar.namelist():
                if name.endswith(".class"):
                    found |= {match.decode() for match in pattern.findall(jar.read(name))}
    return sorted(found)


def candidates(lake: Session, key: str) -> list[str]:
    if key in OTHERS or key in VALUES:
        return OTHERS.get(key) or VALUES[key]
    try:
        default = str(lake.session.spark.session().conf.get(key))
    except PySparkException:
        default = ""
    if default in ("true", "false"):
        return ["false" if default == "true" else "true"]
    if default.isdigit() or re.search(r"size|length|count|number|limit|level|ndv|bytes|ratio|padding|parallel", key):
        return ["1"]
    if default in ("EXCEPTION", "CORRECTED"):
        return ["LEGACY"]
    return ["true", "false"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_over(tmp_path_factory.mktemp("settings"), spark_settings(tmp_path_factory)) as session:
        with session.judge() as judge:
            judge.run("CALL lake.set_option('data_inlining_row_limit', 0)", GIVEN)
        yield session


def scenario(lake: Session) -> None:
    for statement in (CREATED, *CHANGES):
        lake.run(statement)


def state(lake: Session) -> tuple[list[Any], list[Any], list[Any]]:
    """What both engines read, and what DuckDB finds by each value of each column."""
    ours = lake.run("select id, n, m, s, b, f, x, l, o, p, string(d), unix_micros(moment), string(clock) from t")
    with lake.judge() as judge:
        theirs = judge.rows(
            "SELECT id, n, m, s, b, f, x, l, o, p, d::VARCHAR, epoch_us(moment), clock::VARCHAR FROM t ORDER BY id"
        )
        names = ["id", "n", "m", "s", "b", "f", "d", "moment", "clock", "x", "p"]
        # By ids that are joined to: a filter over each value that the files' statistics may speak of.
        rows = judge.rows(f"SELECT {', '.join(names)} FROM t ORDER BY id")
        found = []
        for row in rows:
            for name, value in zip(names, row, strict=True):
                condition = f"{name} IS NULL" if value is None else f"{name} = ?"
                given = () if value is None else (value,)
                found.append(judge.rows(f"SELECT count(*) FROM t WHERE {condition}", given))
    return sorted(map(repr, ours)), list(map(repr, theirs)), found


@pytest.mark.skipif("DBT_DUCKLAKE_TEST_REMOTE" in os.environ, reason="reads the defaults in this process")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_setting_changes_what_is_stored(lake: Session, part: int) -> None:
    lake.run("drop table if exists t")
    scenario(lake)
    expected = state(lake)
    known = [*keys(OF_SPARK, "spark-*.jar"), *keys(OF_PARQUET, "parquet-hadoop-1*.jar"), *OTHERS, *VALUES]
    known += ["parquet.column.statistics.enabled#n", "parquet.bloom.filter.enabled#x"]
    wrong, refused, right = [], [], 0
    for key in sorted(set(known) if ALL else DANGEROUS)[part::PARTS]:
        for value in candidates(lake, key):
            lake.run("drop table if exists t")
            try:
                lake.run(f"SET `{key}` = {value}")
                scenario(lake)
                right += 1
            except (LakeError, SparkRoomError, StatementError) as error:
                refused.append((key, value, str(error)[:150]))
                continue
            finally:
                with suppress(PySparkException):
                    lake.session.spark.session().conf.unset(key)
                lake.session.settle()
            found = state(lake)
            differs = [at for at, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other]
            if differs:
                wrong.append((key, value, differs))
    print(*refused, sep="\n")
    assert wrong == []
    assert right > (20 if ALL else 10)
