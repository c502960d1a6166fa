"""What a column gets where a row gives it nothing."""

from __future__ import annotations

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.spark.literals import literal_of_text
from dbt.adapters.ducklake.statements.translate import spark_expression_of


def default_of(column: Column) -> str:
    """The column's default as Spark SQL."""
    text = column.default.text
    if column.type.is_container or text is None or text == "NULL":
        return "NULL"
    if column.default.kind == "expression":
        return spark_expression_of(text)
    return literal_of_text(column, text)
