"""Rows that are computed once, however many jobs use them.

Spark's cache does not promise that: it computes a lost block again, finds cached rows only if it recognises their plan,
and drops them if a view that they read is replaced. A local checkpoint cuts the plan off. If an executor is lost with
its blocks, the next job fails (`RowsLost`), and the statement runs again as a whole.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.storagelevel import StorageLevel

# What Spark counts for a value of a plain type, and a guess for an entry of a list or a map.
_VALUE, _ENTRY = 8, 32
_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


def pinned(rows: DataFrame) -> DataFrame:
    """Compute rows now and return them as a DataFrame without a past. What memory cannot hold goes to disk.

    The blocks are freed some time after the last reference to the DataFrame.
    """
    _make_active(rows)
    return rows.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK)


def _make_active(rows: DataFrame) -> None:
    """Through Connect, PySpark gives pinned rows to the thread's active session, which is the first it ever had."""
    session: Any = rows.sparkSession
    if (active := getattr(type(session), "_active_session", None)) is not None:
        active.session = session


def total_size(rows: DataFrame) -> Expression:
    """An aggregate: about how many bytes the rows have, whose columns have plain names."""
    sizes = [_size(F.col(field.name), field.dataType) for field in rows.schema.fields]
    return F.coalesce(F.sum(reduce(Expression.__add__, sizes, F.lit(0))), F.lit(0))


def broadcast_if_small(spark: SparkSession, rows: DataFrame, size: int) -> DataFrame:
    """Pinned rows, marked for a broadcast if Spark would broadcast a table of their size: of pinned rows it only knows
    the size of what they were computed from."""
    found = re.fullmatch(r"(-?\d+)([bkmgtp]?)b?", str(spark.conf.get(_THRESHOLD)).strip().lower())
    limit = int(found[1]) * _UNITS[found[2]] if found else 0
    return rows.hint("broadcast") if size <= limit else rows


def _size(value: Expression, kind: T.DataType) -> Expression:
    if isinstance(kind, T.StringType | T.BinaryType):
        return F.coalesce(F.octet_length(value), F.lit(0)) + F.lit(_VALUE)
    if isinstance(kind, T.ArrayType | T.MapType):
        return F.coalesce(F.size(value), F.lit(0)) * F.lit(_ENTRY) + F.lit(_VALUE)
    return F.lit(_VALUE * (len(kind.fields) if isinstance(kind, T.StructType) else 1))
