"""Rows that are computed once, however often they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel


@dataclass(frozen=True)
class Kept:
    rows: DataFrame
    view: str


def keep(rows: DataFrame) -> Kept:
    """The rows, to be computed once; what memory cannot hold goes to disks. Whoever keeps them lets them go.

    Spark knows kept rows by their plan. A mark of their own keeps two threads from letting go each other's, and as a
    view the plan is settled: through Connect a random function would else be another in each use.
    """
    view = f"_ducklake_kept_{uuid4().hex}"
    rows.where(F.lit(view).isNotNull()).createOrReplaceTempView(view)
    return Kept(rows.sparkSession.table(view).persist(StorageLevel.MEMORY_AND_DISK), view)


def let_go(kept: Kept) -> None:
    kept.rows.unpersist()
    kept.rows.sparkSession.catalog.dropTempView(kept.view)


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once, however often they are used in the block."""
    stored = keep(rows)
    try:
        yield stored.rows
    finally:
        let_go(stored)
