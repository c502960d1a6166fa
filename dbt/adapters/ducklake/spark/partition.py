"""Partition keys of rows that are written: the value of each as a text in a folder's name, and back.

Spark writes one folder for each combination of the keys. It is given copies of the keys as columns of their own, so
that the partitioned columns stay in the files, and texts that no value shares: Spark would put NULL and '' together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from urllib.parse import quote, unquote

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import (
    CALENDAR_PARTS,
    EPOCH_PARTS,
    Column,
    Table,
    Value,
    bucket_count,
    parse_value,
    partition_text,
)
from dbt.adapters.ducklake.spark.murmur import bucket_of
from dbt.adapters.ducklake.spark.schema import quoted
from dbt.adapters.ducklake.spark.times import date_in_utc, hour_in_utc, hours_in_utc

_KEY = "_ducklake_key_{}"
_NULL, _VALUE = "n", "v"


@dataclass(frozen=True)
class PartitionKey:
    place: int
    column: Column
    transform: str

    @property
    def name(self) -> str:
        return _KEY.format(self.place)

    def text(self, value: Expression) -> Expression:
        """The key of a value as a text; NULL has one too."""
        raw = _raw(value, self.column, self.transform).try_cast("string")
        return F.coalesce(F.concat(F.lit(_VALUE), raw), F.lit(_NULL)).alias(self.name)

    def value(self, text: str) -> Value:
        """The partition value of a text."""
        if text == _NULL:
            return None
        raw = text.removeprefix(_VALUE)
        if self.transform != "identity":
            return int(raw)
        return _parsed(self.column, raw)


def partition_keys(table: Table) -> list[PartitionKey]:
    fields = table.partitioning.fields if table.partitioning else ()
    columns = table.by_id()
    return [PartitionKey(place, columns[field.column_id], field.transform) for place, field in enumerate(fields)]


def rows_in_partitions_of(rows: DataFrame, batch: DataFrame, table: Table) -> DataFrame:
    """The rows that lie, by the table's present partitioning, in a partition that the batch has a row in."""
    keys = partition_keys(table)
    texts = [key.text(F.col(quoted(key.column.name))) for key in keys]
    wanted = batch.select(*texts).distinct()
    return rows.select("*", *texts).join(F.broadcast(wanted), [key.name for key in keys], "left_semi")


def values_in_path(path: str, keys: Sequence[PartitionKey]) -> tuple[str | None, ...]:
    """The texts that the metadata hold for a file, of the folders that Spark put it in."""
    folders = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    return tuple(partition_text(key.transform, key.column.type, key.value(unquote(folders[key.name]))) for key in keys)


def hive_folder(keys: Sequence[PartitionKey], texts: Sequence[str | None]) -> str:
    """The folder below the table in which DuckDB would put the file."""
    taken: set[str] = set()
    parts = []
    for key, text in zip(keys, texts, strict=True):
        name = _hive_name(key, taken)
        taken.add(name)
        parts.append(
            f"{quote(name, safe='')}={'__HIVE_DEFAULT_PARTITION__' if text is None else quote(text, safe='')}/"
        )
    return "".join(parts)


def _hive_name(key: PartitionKey, taken: set[str]) -> str:
    if key.transform == "identity":
        return key.column.name
    short = "bucket" if bucket_count(key.transform) else key.transform
    long = f"{short}_{key.column.name}"
    names = chain((short, long), (f"{long}_{place}" for place in count(2)))
    return next(name for name in names if name not in taken)


def _raw(value: Expression, column: Column, transform: str) -> Expression:
    if buckets := bucket_count(transform):
        return bucket_of(value, column, buckets)
    if transform in CALENDAR_PARTS:
        return F.when(~_is_endless(value, column), _part(value, column, transform))
    if transform in EPOCH_PARTS:
        return F.when(~_is_endless(value, column), _epoch_part(value, column, transform))
    if column.type.name == "date":
        return F.unix_date(value)
    if column.type.name == "timestamptz":
        return F.unix_micros(value)
    return F.hex(value) if column.type.name == "blob" else value


def _part(value: Expression, column: Column, transform: str) -> Expression:
    """A part of a time; of a timestamp with a zone, that of its moment in UTC."""
    is_zoned = column.type.name == "timestamptz"
    if transform == "hour":
        return hour_in_utc(value) if is_zoned else F.hour(value)
    part = {"year": F.year, "month": F.month, "day": F.dayofmonth}[transform]
    return part(date_in_utc(value) if is_zoned else value)


def _epoch_part(value: Expression, column: Column, transform: str) -> Expression:
    """How many of the units have gone by since 1970; of a timestamp with a zone, in UTC."""
    is_zoned = column.type.name == "timestamptz"
    date = date_in_utc(value) if is_zoned else value.cast("date")
    years, days = F.year(date) - F.lit(1970), F.unix_date(date)
    match transform:
        case "epoch_year":
            return years
        case "epoch_month":
            return years * F.lit(12) + F.month(date) - F.lit(1)
        case "epoch_day":
            return days
    if is_zoned:
        return hours_in_utc(value)
    midnight = days.cast("bigint") * F.lit(24)
    return midnight if column.type.name == "date" else midnight + F.hour(value)


def _is_endless(value: Expression, column: Column) -> Expression:
    """DuckDB's infinities, which are the outermost numbers of days or microseconds."""
    if column.type.name == "date":
        return F.abs(F.unix_date(value).cast("bigint")) == F.lit(2**31 - 1)
    if column.type.name == "timestamptz":
        return F.abs(F.unix_micros(value)) == F.lit(2**63 - 1)
    # The texts of the outermost microseconds without a zone.
    return value.cast("string").isin("+294247-01-10 04:00:54.775807", "-290308-12-21 19:59:05.224193")


def _parsed(column: Column, raw: str) -> Value:
    name = column.type.name
    if name in ("date", "timestamptz"):
        return int(raw)
    if name in ("float32", "float64"):
        return float(raw.replace("Infinity", "inf"))
    if name == "blob":
        return bytes.fromhex(raw)
    if name.startswith("timestamp"):
        raw = raw.removeprefix("+")
    return parse_value(column.type, raw)
