"""What a column gets where a row gives it nothing."""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokens import TokenType

from dbt.adapters.ducklake.lake import INTEGERS, Column, Default, fits
from dbt.adapters.ducklake.spark.default_value import constant_text
from dbt.adapters.ducklake.spark.literals import literal_of_text
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.translation.from_duckdb import expression_for_spark
from dbt.adapters.ducklake.statements.types import Asked, DeclaredColumn

# What has another value for each row or statement: the same in both engines, as long as it stands alone.
_ANEW = {
    "now()": "now()", "current_timestamp": "now()", "current_timestamp()": "now()", "current_date": "current_date",
    "current_date()": "current_date", "curdate()": "current_date", "uuid()": "uuid()", "rand()": "random()",
    "random()": "random()",
}  # fmt: skip
_TYPES = {
    "now()": {"timestamptz", "timestamp", "date"}, "current_date": {"date"}, "uuid()": {"varchar", "uuid"},
    "random()": {"float64"},
}  # fmt: skip
_CHANGING = frozenset((
    "now", "current_timestamp", "current_date", "curdate", "current_time", "localtimestamp", "unix_timestamp", "uuid",
    "rand", "random", "randn", "randstr", "uniform", "shuffle", "current_user", "session_user", "user",
    "current_catalog", "current_database", "current_schema", "monotonically_increasing_id", "spark_partition_id",
    "input_file_name", "current_timezone",
))  # fmt: skip


def default_of(column: Column) -> str:
    """The column's default as Spark SQL."""
    text = column.default.text
    if column.type.is_container or text is None or text == "NULL":
        return "NULL"
    if column.default.kind == "expression":
        return expression_for_spark(text, f"the default of column {column.name}")
    return literal_of_text(column, text)


def declared_column(session: LakeSession, table: str, declared: DeclaredColumn, given: Column | None = None) -> Column:
    """The column that a statement declares; `given` is the query's, for which it may leave the type out."""
    shape = declared.type or given
    assert shape is not None
    column = replace(
        given or Column(declared.name, shape.type),
        name=declared.name if declared.type or given is None else given.name,
        type=shape.type,
        children=shape.children,
        nullable=declared.nullable,
        comment=declared.comment,
    )
    if declared.default is None:
        return column
    return replace(column, default=settled(session, table, column, declared.default))


def settled(session: LakeSession, table: str, column: Column, asked: Asked) -> Default:
    """The default as the lake keeps it for both engines: as a value, unless each row gets another."""
    reader = Reader(asked.expression)
    words = ["" if token.token_type is TokenType.STRING else token.text.lower() for token in reader.tokens]
    text = "".join(words)
    if text == "null":
        return Default()
    if text in _ANEW:
        found = _ANEW[text]
        if column.type.name not in _TYPES[found]:
            kinds = " or ".join(sorted(_TYPES[found]))
            raise _refused(table, column, asked, f"it is a {kinds}, and the column a {column.type.text}")
        return Default(found, "expression")
    if changing := next((word for word in words if word in _CHANGING), None):
        raise _refused(table, column, asked, f"{changing} has another value each time, and is computed with")
    if "select" in words:
        raise _refused(table, column, asked, "it is a query")
    if column.type.is_container:
        raise _refused(table, column, asked, f"a column of type {column.type.text} has none but NULL")
    plain = _plain(reader, column)
    if plain is not None:
        return Default(plain, "literal")
    with session.spark.job(f"default of {table}.{column.name}") as spark:
        value = constant_text(spark, asked.expression, column, table)
    return Default() if value is None else Default(value, "literal")


def _plain(reader: Reader, column: Column) -> str | None:
    """The text of a value that needs no Spark to be understood."""
    *signs, last = reader.tokens
    if last.token_type is TokenType.STRING and not signs and column.type.name == "varchar":
        return last.text
    sign = "".join(token.text for token in signs)
    if last.token_type is TokenType.NUMBER and last.text.isdigit() and sign in ("", "-", "+"):
        number = int(f"{sign}{last.text}")
        return str(number) if column.type.name in INTEGERS and fits(column.type.name, number) else None
    return None


def _refused(table: str, column: Column, asked: Asked, found: str) -> NotAllowed:
    return NotAllowed(
        f"give column {column.name} of {table} the default {asked.expression}", found,
        "A default is a constant, or one of now(), current_date, uuid() and rand() alone.",
    )  # fmt: skip
