"""INSERT OVERWRITE, and INSERT INTO ... REPLACE: new rows come and others go, in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.ducklake.lake import Column, Predicate, Table, fold
from dbt.adapters.ducklake.spark.partition import rows_in_partitions_of
from dbt.adapters.ducklake.spark.pinned import pinned
from dbt.adapters.ducklake.spark.query import Rows as SparkRows
from dbt.adapters.ducklake.spark.query import Spark, setting, show_as
from dbt.adapters.ducklake.spark.write import WriteSettings, as_table
from dbt.adapters.ducklake.statements.again import again_where_others_were_faster
from dbt.adapters.ducklake.statements.changing import (
    Change,
    Rows,
    Target,
    enclosed,
    of_one_clause,
)
from dbt.adapters.ducklake.statements.conditions import Equality, comparisons, matched_by
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.kinds.describe import type_text
from dbt.adapters.ducklake.statements.kinds.insert import Insert, Replaced, check_known, for_table, refused, run_insert
from dbt.adapters.ducklake.statements.names import quoted
from dbt.adapters.ducklake.statements.outcome import Outcome, written
from dbt.adapters.ducklake.statements.resolve import reading, rows_of
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.writing import Writing, can_end, writing

_BATCH = "_ducklake_batch"
_MODE = "spark.sql.sources.partitionOverwriteMode"


def run_insert_or_replace(session: LakeSession, statement: Insert) -> Outcome:
    if statement.replaced is None:
        return run_insert(session, statement)
    return again_where_others_were_faster(session, statement.name, lambda: _replace(session, statement))


def _replace(session: LakeSession, statement: Insert) -> Outcome:
    with session.spark.job(f"INSERT INTO {statement.name}") as spark:
        with reading(session, has_one_time=True) as found:
            change = Change(session, found, _target(statement), "INSERT INTO")
            rows = for_table(statement, change.table, rows_of(found, spark, statement.query))
            settings = WriteSettings.of(change.lake.options(), change.table)
        batch = as_table(rows, change.table, found.has_valid_text)
        with writing(session, change.lake, change.base) as work:
            work.table(change.name, change.asked, statement.name)
            if _is_whole(statement, change, spark):
                work.remove_all(change.table)
                change.look_in(work, ())
            else:
                # Which rows go must not depend on other rows than those that come.
                batch = pinned(batch) if _by_batch(statement, change.table, spark) else batch
                change.look_in(work, _remove(statement, change, spark, work, batch))
            work.add_rows(spark, batch, change.table, settings)
    return written("INSERT", work.files, work.snapshot if work.transaction.changes else None)


def _target(statement: Insert) -> Target:
    return Target(statement.name, ".".join(map(quoted, statement.name.parts)), statement.alias)


def _is_whole(statement: Insert, change: Change, spark: Spark) -> bool:
    """Whether all rows go, whatever comes."""
    is_all = statement.replaced in (Replaced(), Replaced(condition="TRUE"))
    return is_all and not _is_dynamic(statement, change.table, spark) and can_end(change.files())


def _by_batch(statement: Insert, table: Table, spark: Spark) -> bool:
    """Whether it depends on the new rows which rows go."""
    replaced = statement.replaced
    assert replaced is not None
    return bool(replaced.using or replaced.by) or _by_partitions(statement, replaced, table, spark)


def _remove(statement: Insert, change: Change, spark: Spark, work: Writing, batch: SparkRows) -> tuple[Predicate, ...]:
    """Remove what the new rows take the place of; what is true of all such rows."""
    replaced, table = statement.replaced, change.table
    assert replaced is not None
    if _by_partitions(statement, replaced, table, spark):
        columns, fields = table.by_id(), table.partitioning.fields if table.partitioning else ()
        # Of a part of time, other values than the batch's lie in the same partition.
        keys = [columns[field.column_id] for field in fields if field.transform == "identity"]
        where = _files_with(spark, batch, keys, is_null_safe=True)
        placed = change.placed(spark, where)
        work.remove_rows(spark, rows_in_partitions_of(placed.rows, batch, table), placed, table)
        return where
    check_known(statement, table, replaced.using)
    keys = [_column(table, name) for name in replaced.using]
    said = comparisons(spark, replaced.condition, change.side(), table)
    where = (*said, *_files_with(spark, batch, keys, is_null_safe=False))
    planned = change.plan(spark, _rows_to_go(statement, replaced, table), where)
    work.remove_rows(spark, planned.changes, planned.placed, table)
    return where


def _by_partitions(statement: Insert, replaced: Replaced, table: Table, spark: Spark) -> bool:
    """Whether the partitions that have new rows are replaced, and no others."""
    if any(key.value is None for key in replaced.partition):
        _check_partitions(statement, replaced, table)
        return True
    return not replaced.partition and _is_dynamic(statement, table, spark)


def _is_dynamic(statement: Insert, table: Table, spark: Spark) -> bool:
    is_set = setting(spark, _MODE, "static").lower() == "dynamic"
    return is_set and statement.replaced == Replaced() and table.partitioning is not None


def _check_partitions(statement: Insert, replaced: Replaced, table: Table) -> None:
    """That the statement names the table's own keys: with others it would replace other rows than it says."""
    if any(key.value is not None for key in replaced.partition):
        raise refused(statement, "some keys of PARTITION have a value and others none: give all of them one or none",
                      table)  # fmt: skip
    said = [(key.column, key.transform) for key in replaced.partition]
    fields = table.partitioning.fields if table.partitioning else ()
    columns = table.by_id()
    there = [(columns[field.column_id].name, field.transform) for field in fields]
    if [(fold(name), kind) for name, kind in said] != [(fold(name), kind) for name, kind in there]:
        raise NotAllowed(
            f"overwrite {statement.name} by partition",
            f"the statement names {_shown(said)} and the table is partitioned by {_shown(there)}",
            "Name the table's own keys, rebuild it (--full-refresh), or ALTER TABLE ... SET PARTITIONED BY.",
            statement.name.place,
        )


def _shown(keys: Sequence[tuple[str, str]]) -> str:
    return ", ".join(name if kind == "identity" else f"{kind} of {name}" for name, kind in keys) or "nothing"


def _files_with(spark: Spark, batch: SparkRows, keys: Sequence[Column], is_null_safe: bool) -> tuple[Predicate, ...]:
    """Show the batch to the queries that look for its keys, and return what is true of the table's rows with any."""
    where, shown = matched_by(spark, batch, [Equality(key, key.name, is_null_safe) for key in keys])
    show_as(shown, _BATCH)
    return where


def _column(table: Table, name: str) -> Column:
    return next(column for column in table.columns if fold(column.name) == fold(name))


def _rows_to_go(statement: Insert, replaced: Replaced, table: Table) -> Rows:
    target = _target(statement)
    if replaced.partition:
        check_known(statement, table, [key.column for key in replaced.partition])
        types = {key.column: type_text(_column(table, key.column)) for key in replaced.partition}
        pairs = (
            f"{target.column(key.column)} <=> CAST({enclosed(key.value or 'NULL')} AS {types[key.column]})"
            for key in replaced.partition
        )
        return of_one_clause(target, table, "delete", f"WHERE {' AND '.join(pairs)}", {})
    and_where = f" AND {enclosed(replaced.condition)}" if replaced.condition is not None else ""
    if replaced.by:
        # Each side's names are found on its side: the ones before IN in the table, the others in the batch.
        keys = ", ".join(map(enclosed, replaced.by))
        before = f"WHERE ({keys}) IN (SELECT {keys} FROM "
        rows = of_one_clause(target, table, "delete", f"{before}{quoted(_BATCH)}){and_where}", {})
        return Rows(rows.clauses, rows.behind, rows.values, views={len(before): _BATCH})
    if not replaced.using:
        return of_one_clause(target, table, "delete", f"WHERE TRUE{and_where}", {})
    equal = " AND ".join(f"{quoted(_BATCH)}.{quoted(name)} = {target.column(name)}" for name in replaced.using)
    before = "WHERE EXISTS (SELECT 1 FROM "
    rows = of_one_clause(target, table, "delete", f"{before}{quoted(_BATCH)} WHERE {equal}){and_where}", {})
    return Rows(rows.clauses, rows.behind, rows.values, views={len(before): _BATCH})
