"""Rows that are computed once, however often they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel


def keep(rows: DataFrame) -> DataFrame:
    """The rows, to be computed once; what memory cannot hold goes to disks. Whoever keeps them lets them go."""
    return rows.persist(StorageLevel.MEMORY_AND_DISK)


def let_go(rows: DataFrame) -> None:
    rows.unpersist()


@contextmanager
def kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once, however often they are used in the block."""
    stored = keep(rows)
    try:
        yield stored
    finally:
        let_go(stored)
