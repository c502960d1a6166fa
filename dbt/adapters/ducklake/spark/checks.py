"""What may be wrong with a table's rows: in a partition that is another's, or with text that DuckDB does not read."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import SnapshotId, Table, TableFiles, parse_value, partition_text
from dbt.adapters.ducklake.spark.partition import PartitionKey
from dbt.adapters.ducklake.spark.scan import FILE, scan_placed
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.spark.texts import is_json, is_utf8


def misplaced_files(
    spark: SparkSession, storage: Storage, table: Table, files: TableFiles, snapshot: SnapshotId
) -> list[str]:
    """The paths of the files that hold a row whose partition is not the one that the metadata say."""
    placed = scan_placed(spark, storage, table, files, snapshot)
    columns, wrong = table.by_id(), set()
    specs = {spec for spec, fields in files.partition_specs.items() if all(one.column_id in columns for one in fields)}
    for spec in specs:
        keys = [
            PartitionKey(place, columns[field.column_id], field.transform)
            for place, field in enumerate(files.partition_specs[spec])
        ]
        if any(key.transform == "identity" and key.column.type.name == "variant" for key in keys):
            # By DuckDB's text of it, which Spark has not.
            continue
        members = {number: file for number, file in placed.files.items() if file.partition_id == spec}
        if not members:
            continue
        texts = [key.text(F.col(quoted(key.column.name))) for key in keys]
        rows = placed.rows.where(F.col(FILE).isin(list(members))).select(FILE, *texts).distinct()
        for number, *found in rows.collect():
            said = files.partition_values.get(members[number].id, ())
            if [_plain(key, key.value(text)) for key, text in zip(keys, found, strict=True)] != [
                _said(key, text) for key, text in zip(keys, said, strict=True)
            ]:
                wrong.add(members[number].path)
    return sorted(wrong)


def _plain(key: PartitionKey, value: object) -> object:
    return _said(key, partition_text(key.transform, key.column.type, value))


def _said(key: PartitionKey, text: str | None) -> object:
    """A partition value of the metadata, of which the two engines spell some differently."""
    if text is None:
        return None
    return str(parse_value(key.column.type, text)) if key.transform == "identity" else int(text)


def unreadable_texts(rows: DataFrame, table: Table) -> dict[str, int]:
    """How many rows have text in a column that DuckDB does not read; nothing of columns without such rows."""
    wrong: dict[str, Expression] = {}
    for column in table.columns:
        value, kind = rows[quoted(column.name)], rows.schema[column.name].dataType
        is_right = is_utf8(value, kind)
        if column.type.name == "json" and is_right is not None:
            is_right = is_right & (value.isNull() | is_json(value))
        if is_right is not None:
            wrong[column.name] = F.count_if(~is_right)
    if not wrong:
        return {}
    [counts] = rows.agg(*wrong.values()).collect()
    return {name: count for name, count in zip(wrong, counts, strict=True) if count}
