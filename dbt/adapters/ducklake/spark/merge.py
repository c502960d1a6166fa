"""Rows that a statement changes → files that hold the new ones, and the places of those that go.

The changed rows are computed once: they are counted, removed and written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import FileToAdd, Table
from dbt.adapters.ducklake.spark.assignment import assigned, stored
from dbt.adapters.ducklake.spark.delete import Removed, remove_delete_files, remove_rows
from dbt.adapters.ducklake.spark.errors import MatchedTwice
from dbt.adapters.ducklake.spark.local_rows import keys_dataframe
from dbt.adapters.ducklake.spark.pinned import pinned
from dbt.adapters.ducklake.spark.scan import FILE, INLINED, POSITION, ROW_ID, Placed
from dbt.adapters.ducklake.spark.schema import ROW_IDS
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.spark.write import WriteSettings, remove_files, write_rows

# Which of a statement's clauses changes a row, and what names the row in an error.
CLAUSE, NAMED = "_ducklake_clause", "_ducklake_named"
_TWICE_SHOWN = 3


@dataclass(frozen=True)
class Clause:
    """What one clause does. `values` are the columns of the changed rows that have the new values, in the order of
    the table's columns; none for a clause that deletes. `unchanged` are the places of columns that keep their value."""

    kind: str
    values: tuple[str, ...] = ()
    unchanged: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Changed:
    """What was written and what goes."""

    added: tuple[FileToAdd, ...]
    removed: Removed
    inserted: int
    updated: int
    deleted: int


def change_rows(
    spark: SparkSession,
    storage: Storage,
    table: Table,
    placed: Placed,
    changes: DataFrame,
    clauses: Sequence[Clause],
    settings: WriteSettings,
    sort_by: Sequence[Expression] = (),
    is_pinned: bool = False,
    has_valid_text: bool = False,
) -> Changed:
    """Write what the clauses make of the rows of `changes`, which has CLAUSE, the places and the clauses' values, and
    may be pinned already. `has_valid_text` as in `assigned`.

    MatchedTwice if two rows of a source change one row of the table. After any error no file is left.
    """
    changed = changes.where(F.col(CLAUSE).isNotNull())
    rows = changed if is_pinned else pinned(changed)
    counted = _counted(rows)
    _refuse_twice(table, rows, clauses, counted)
    by_kind = {
        kind: sum(one.rows for one in counted if clauses[one.clause].kind == kind)
        for kind in ("insert", "update", "delete")
    }
    in_files: dict[int, int] = {}
    for one in counted:
        if one.file is not None:
            in_files[one.file] = in_files.get(one.file, 0) + one.places
    gone = rows.where(F.col(FILE).isNotNull()).select(FILE, POSITION)
    if by_kind["delete"] > sum(one.places for one in counted if clauses[one.clause].kind == "delete"):
        gone = gone.distinct()
    removed = remove_rows(spark, storage, table, placed, gone, in_files) if in_files else Removed()
    added: list[FileToAdd] = []
    try:
        if by_kind["update"]:
            new = _new_rows(spark, table, placed, rows, clauses, "update", has_valid_text)
            added += write_rows(spark, storage, new, table, settings, sort_by, own=ROW_IDS)
        if by_kind["insert"]:
            new = _new_rows(spark, table, placed, rows, clauses, "insert", has_valid_text)
            added += write_rows(spark, storage, new, table, settings, sort_by)
    except BaseException:
        remove_files(storage, added)
        remove_delete_files(storage, removed.deletes)
        raise
    deleted = removed.count - by_kind["update"]
    return Changed(tuple(added), removed, by_kind["insert"], by_kind["update"], deleted)


def remove_placed(spark: SparkSession, storage: Storage, table: Table, placed: Placed, gone: DataFrame) -> Removed:
    """Remove the rows whose places `gone` has, each once."""
    places = pinned(gone.select(FILE, POSITION))
    counted = places.groupBy(FILE).agg(F.min(FILE).alias("file"), F.count(F.lit(1)).alias("rows"))
    counted = counted.select("file", "rows").toArrow()
    counts = dict(zip(*(column.to_pylist() for column in counted.columns), strict=True))
    return remove_rows(spark, storage, table, placed, places, counts) if counts else Removed()


@dataclass(frozen=True)
class _Count:
    """Of the rows that a clause changes in a file (None: in no file yet): how many, and of how many places."""

    clause: int
    file: int | None
    rows: int
    places: int
    # Whether a place has rows of several clauses, or of one twice.
    is_twice: bool


def _counted(rows: DataFrame) -> list[_Count]:
    # The keys of groups are named among the aggregates: a setting may leave them out.
    by_place = rows.groupBy(FILE, POSITION).agg(
        F.min(FILE).alias("file"), F.count(F.lit(1)).alias("rows"), F.min(CLAUSE).alias("clause"),
        F.max(CLAUSE).alias("last"),
    )  # fmt: skip
    # Rows that are inserted have no place and stand together by clause.
    of_inserts = rows.where(F.col(FILE).isNull()).groupBy(CLAUSE).agg(
        F.min(CLAUSE).alias("clause"), F.count(F.lit(1)).alias("rows")
    )  # fmt: skip
    twice = (F.col("rows") > 1) | (F.col("clause") != F.col("last"))
    of_places = by_place.where(F.col("file").isNotNull()).groupBy("file", "clause").agg(
        F.min("clause").alias("_clause"), F.min("file").alias("_file"), F.sum("rows").alias("_rows"),
        F.count(F.lit(1)).alias("_places"), F.max(twice).alias("_twice"),
    )  # fmt: skip
    found = of_places.select("_clause", "_file", "_rows", "_places", "_twice").unionAll(
        of_inserts.select("clause", F.lit(None).cast("bigint"), "rows", F.lit(0).cast("bigint"), F.lit(False))
    )
    table = found.toArrow()
    return [_Count(*row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def _refuse_twice(table: Table, rows: DataFrame, clauses: Sequence[Clause], counted: Sequence[_Count]) -> None:
    # A row that is only deleted may be so for several reasons.
    if not any(one.is_twice for one in counted) or all(clause.kind != "update" for clause in clauses):
        return
    by_place = rows.where(F.col(FILE).isNotNull()).groupBy(FILE, POSITION).agg(
        F.count(F.lit(1)).alias("rows"), F.first(NAMED).alias("named")
    )  # fmt: skip
    twice = by_place.where(F.col("rows") > 1)
    shown = (
        twice.orderBy(F.col("rows").desc(), "named").limit(_TWICE_SHOWN).select("named", "rows").toArrow().to_pylist()
    )
    raise MatchedTwice(str(table), twice.count(), [(row["named"], row["rows"]) for row in shown])


def _new_rows(
    spark: SparkSession, table: Table, placed: Placed, rows: DataFrame, clauses: Sequence[Clause], kind: str,
    has_valid_text: bool,
) -> DataFrame:  # fmt: skip
    """The table's columns as the clauses of a kind have them, and for updates the ids that the rows keep."""
    of_kind = {number: clause for number, clause in enumerate(clauses) if clause.kind == kind}
    chosen = rows.where(F.col(CLAUSE).isin(list(of_kind)))
    values = [_value(rows, table, of_kind, place, has_valid_text) for place in range(len(table.columns))]
    if kind == "insert":
        return chosen.select(*values)
    numbers = pa.array([*placed.files, INLINED], pa.int64())
    starts = pa.array([*(file.row_id_start for file in placed.files.values()), None], pa.int64())
    first = keys_dataframe(spark, ["_ducklake_number", "_ducklake_first"], [numbers, starts])
    with_first = chosen.join(F.broadcast(first), F.col(FILE) == F.col("_ducklake_number"))
    unknown = F.raise_error(F.lit(f"A data file of {table} does not say the ids of its rows")).cast("bigint")
    return with_first.select(
        *values, F.coalesce(ROW_ID, F.col("_ducklake_first") + F.col(POSITION), unknown).alias(ROW_ID)
    )


def _value(rows: DataFrame, table: Table, clauses: dict[int, Clause], place: int, has_valid_text: bool) -> Expression:
    """One column of the new rows: the value that the clause of each row gives it."""
    column, types = table.columns[place], {field.name: field.dataType for field in rows.schema.fields}

    def of(clause: Clause) -> Expression:
        name = clause.values[place]
        if place in clause.unchanged:
            return stored(F.col(name), column, table)
        return assigned(F.col(name), types[name], column, table, has_valid_text)

    (first, *others) = [(F.col(CLAUSE) == number, of(clause)) for number, clause in clauses.items()]
    value = F.when(*first)
    for other in others:
        value = value.when(*other)
    return (first[1] if not others else value).alias(f"_ducklake_new_{place}")
