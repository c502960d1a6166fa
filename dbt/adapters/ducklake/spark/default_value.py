"""The value of an expression without rows, as a column of a lake keeps it."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from dbt.adapters.ducklake.lake import Column, value_text
from dbt.adapters.ducklake.spark.assignment import assigned
from dbt.adapters.ducklake.spark.errors import WriteRefused, failure
from dbt.adapters.ducklake.spark.query import Spark
from dbt.adapters.ducklake.spark.times import micros_of_naive


def constant_text(spark: Spark, expression: str, column: Column, table: str) -> str | None:
    """The DuckDB text of the expression's value, which has to be one of the column's type. WriteRefused."""
    try:
        rows = spark.range(1).select(F.expr(expression).alias("value"))
        value = assigned(F.col("value"), rows.schema.fields[0].dataType, column, table)
        [found] = rows.select(_in_ticks(value, column)).toArrow().column(0).to_pylist()
    except PySparkException as error:
        asked = f"the default {expression} of column {column.name} is no value for {column.type.text}"
        raise WriteRefused(table, f"{asked}: {failure(error)}", "Give a value of the column's type.") from error
    return None if found is None else value_text(column.type, found)


def _in_ticks(value: Expression, column: Column) -> Expression:
    match column.type.name:
        case "date":
            return F.unix_date(value)
        case "timestamptz":
            return F.unix_micros(value)
        case "timestamp":
            return micros_of_naive(value)
    return value
