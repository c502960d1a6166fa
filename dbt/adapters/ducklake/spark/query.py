"""A query with its tables in Spark's sight, as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.spark.arrow_values import python_values
from dbt.adapters.ducklake.spark.schema import quoted, type_text
from dbt.adapters.ducklake.spark.storage import spark_path

Rows: TypeAlias = DataFrame
Spark: TypeAlias = SparkSession
Sorted: TypeAlias = list[Column]


def run_query(spark: Spark, sql: str) -> Rows:
    # The class's own: in a Python model the session's `sql` is `answering`.
    return type(spark).sql(spark, sql)


def show_as(rows: Rows, view: str) -> None:
    """Make rows known to queries of the same session under a name, whatever characters it has."""
    rows.createOrReplaceTempView(quoted(view))


def rows_of_files(spark: Spark, location: str, kind: str, schema: str | None, options: Mapping[str, str]) -> Rows:
    """The rows of files that belong to no lake, in any format that Spark reads."""
    reader = spark.read.format(kind).options(**options)
    return (reader if schema is None else reader.schema(schema)).load(spark_path(location))


def one_value(spark: Spark, sql: str) -> object:
    return run_query(spark, sql).collect()[0][0]


def sort_keys(keys: Sequence[tuple[str, bool, bool]]) -> list[Column]:
    """Sort keys of (expression, descending, NULLs first)."""
    found = []
    for expression, descending, nulls_first in keys:
        key = F.expr(expression)
        if descending:
            found.append(key.desc_nulls_first() if nulls_first else key.desc_nulls_last())
        else:
            found.append(key.asc_nulls_first() if nulls_first else key.asc_nulls_last())
    return found


def arranged(rows: Rows, columns: Sequence[int | str]) -> Rows:
    """Rows whose columns are, in this order, those at a place or the value of an expression."""
    names = [f"_ducklake_{place}" for place in range(len(rows.columns))]
    placed = rows.toDF(*names)
    chosen = [F.col(names[one]) if isinstance(one, int) else F.expr(one) for one in columns]
    return placed.select(*(value.alias(f"_ducklake_{place}") for place, value in enumerate(chosen)))


def marked(rows: Rows, name: str) -> Rows:
    """The rows with one more column that is true in each: where a join finds none, it is NULL."""
    return rows.withColumn(name, F.lit(True))


def numbered(rows: Rows, name: str) -> Rows:
    """The rows with a number of its own for each, which stays as long as the rows are kept."""
    return rows.withColumn(name, F.monotonically_increasing_id())


def in_none(rows: Rows, others: Rows, number: str) -> Rows:
    """The rows whose number no other row has."""
    known = others.select(F.col(number).alias("_ducklake_known"))
    return rows.join(known, F.col(number) == F.col("_ducklake_known"), "left_anti")


def together(some: Rows, others: Rows) -> Rows:
    """All rows of both; a column that one of them lacks is NULL in its rows."""
    return some.unionByName(others, allowMissingColumns=True)


def checked(rows: Rows, condition: str, text: str) -> Rows:
    """The rows, which fail with a text if they have one for which the condition is not true."""
    return rows.where(F.when(F.expr(condition), F.lit(True)).otherwise(F.raise_error(F.lit(text)).cast("boolean")))


def setting(spark: Spark, key: str, default: str) -> str:
    return spark.conf.get(key, default) or default


def forget(spark: Spark, view: str) -> None:
    spark.catalog.dropTempView(view)


def plain_views(spark: Spark) -> set[str]:
    """The temporary views of a user: without a dot in their names, as tables of lakes are shown under whole ones."""
    shown = run_query(spark, "SHOW VIEWS").select("viewName").collect()
    return {row[0] for row in shown if "." not in row[0]}


def is_plain_view(spark: Spark, name: str) -> bool:
    """Whether a name of one part is a temporary view of the session's."""
    return spark.catalog.tableExists(quoted(name)) and spark.catalog.getTable(quoted(name)).isTemporary


def count_where(spark: Spark, sql: str, condition: str) -> int:
    return spark.sql(sql).where(condition).limit(1).count()


def query_columns(spark: Spark, sql: str) -> list[tuple[str, str]]:
    """Names and types of a query's columns; no row is computed."""
    return [(field.name, type_text(field.dataType)) for field in spark.sql(sql).schema.fields]


def columns_of_view(spark: Spark, view: str) -> frozenset[str] | None:
    """The folded names of a temporary view's columns; None if the session has no such view."""
    try:
        # The class's own, as in `run_query`.
        return frozenset(map(fold, type(spark).table(spark, quoted(view)).columns))
    except AnalysisException:
        return None


def result_columns(rows: Rows) -> list[tuple[str, str]]:
    return [(field.name, type_text(field.dataType)) for field in rows.schema.fields]


def fetched(rows: Rows, limit: int | None = None) -> list[tuple[Any, ...]]:
    """The rows as Python's values, at most `limit` of them. Moments have the zone of the session; a date or moment that
    Python has not is DuckDB's text of it."""
    # By Arrow: Row objects would come with moments in the zone of this process.
    table = (rows if limit is None else rows.limit(limit)).toArrow()
    columns = [python_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def shown(rows: Rows) -> Rows:
    """The rows for people and for macros: as text what neither of them has a value for."""
    columns = [_shown(F.col(f"_ducklake_{place}"), field) for place, field in enumerate(rows.schema.fields)]
    named = [column.alias(name) for column, name in zip(columns, rows.columns, strict=True)]
    return rows.toDF(*(f"_ducklake_{place}" for place in range(len(named)))).select(*named)


def _shown(value: Column, field: T.StructField) -> Column:
    kind = field.dataType
    if isinstance(kind, T.BinaryType):
        return F.hex(value)
    if isinstance(kind, T.YearMonthIntervalType | T.CalendarIntervalType):
        return value.cast("string")
    if isinstance(kind, T.VariantType | T.MapType) or (_is_nested(kind) and not _is_plain(kind)):
        return F.to_json(value)
    return value


def _is_nested(kind: T.DataType) -> bool:
    return isinstance(kind, T.StructType | T.ArrayType)


def _is_plain(kind: T.DataType) -> bool:
    """Whether lists and fields of a type hold what Python's and JSON's do."""
    if isinstance(kind, T.StructType):
        return all(_is_plain(field.dataType) for field in kind)
    if isinstance(kind, T.ArrayType):
        return _is_plain(kind.elementType)
    return not isinstance(kind, T.MapType | T.BinaryType | T.VariantType | T.YearMonthIntervalType)


def exhaust(rows: Rows) -> None:
    """Compute all rows and keep none."""
    rows.write.format("noop").mode("overwrite").save()


@contextmanager
def answering(spark: Spark, answer: Callable[[str], Rows | None]) -> Iterator[None]:
    """Let `spark.sql` and `spark.table` ask `answer` first, in the block; where it gives None, Spark answers."""
    own = spark.sql

    def sql(text: str, *arguments: Any, **named: Any) -> Rows:
        found = None if arguments or named else answer(text)
        return own(text, *arguments, **named) if found is None else found

    # On the session itself: libraries look whether they were given one.
    spark.sql = sql  # type: ignore[method-assign, assignment]
    spark.table = lambda name: sql(f"SELECT * FROM {name}")  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del spark.sql, spark.table
