"""Views between the two engines: DuckDB's SQL for those who read the lake with DuckDB, Spark's for Spark."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError, UnsupportedError

from dbt.adapters.ducklake.lake import View
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import quoted

# What DuckDB stores where a view names the lake it is in.
_OWN_LAKE = "{DUCKLAKE_CATALOG}"
_STAND_IN = "__ducklake_catalog__"
# Tags of views that Spark made: the query as it was written, and the columns that it had then.
SPARK_SQL, SPARK_COLUMNS = "spark_sql", "spark_columns"


# What both engines take and answer differently, or what only one of them has. sqlglot passes it on without a word.
_UNLIKE: tuple[type[exp.Expr], ...] = tuple(
    getattr(exp, name)
    for name in (
        "Anonymous", "AnonymousAggFunc", "Version", "BitwiseXor", "DayOfWeek", "DayOfWeekIso", "WeekOfYear",
        "Slice", "ArraySlice", "Quantile", "ApproxQuantile", "PercentileCont", "PercentileDisc", "Skewness",
        "Kurtosis", "Substring", "Log", "ArrayAgg", "ArrayUniqueAgg", "TableSample", "Lateral", "Unnest",
        "Explode", "Pivot", "RegexpExtract", "Split", "TimeToStr", "StrToTime", "ToChar", "JSONExtract",
        "JSONExtractScalar", "Bracket", "Rand", "Levenshtein", "NumberToStr", "Conv", "DateDiff",
        "TimestampDiff", "MonthsBetween", "GenerateSeries",
    )
    if hasattr(exp, name)
)  # fmt: skip
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "INT128"})
_EXTRACTED = frozenset({"year", "month", "day", "hour", "minute", "second", "quarter"})


def _is_unlike(node: exp.Expr) -> bool:
    """Whether the two engines may not agree on what this is; in doubt they do not."""
    if isinstance(node, exp.Cast | exp.TryCast):
        # Spark cuts a fraction off, DuckDB rounds.
        is_plain = isinstance(node.this, exp.Literal) and (node.this.is_string or node.this.is_int)
        return node.to.this.name in _WHOLE and not is_plain
    if isinstance(node, exp.Extract):
        return str(node.this).lower() not in _EXTRACTED
    return isinstance(node, _UNLIKE)


def _check_alike(parsed: exp.Expr) -> None:
    unlike = next((node for node in parsed.walk() if _is_unlike(node)), None)
    if unlike is not None:
        raise UnsupportedError(f"{unlike.sql()[:80]} may be another thing there")


def only_for_spark(name: str) -> str:
    """What DuckDB finds in place of a view's query that has no translation: an error, and not other rows."""
    text = f"View {name} is written in Spark SQL that DuckDB would answer otherwise. Read it with Spark.".replace(
        "'", "''"
    )
    return f"SELECT error('{text}') AS only_for_spark"


def spark_query_of(view: View, lake: str) -> str:
    """The view's query for Spark: as it was written for it, or translated."""
    if (kept := view.tag(SPARK_SQL)) is not None:
        sql = kept
    elif view.dialect.lower() == "spark":
        sql = view.sql
    else:
        sql = _translated(view, view.sql.replace(_OWN_LAKE, quoted_for_duckdb(lake)))
    if not view.column_aliases:
        return sql
    return f"SELECT * FROM ({sql}) AS {quoted(view.name)}({', '.join(map(quoted, view.column_aliases))})"


def _translated(view: View, sql: str) -> str:
    try:
        parsed = sqlglot.parse_one(sql, dialect="duckdb")
        _check_alike(parsed)
        return parsed.sql(dialect="spark", unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        raise NotAllowed(
            f"read view {view}", f"its DuckDB SQL cannot be translated to Spark's ({_first_line(error)})",
            "Create it with dbt, or read its tables.",
        ) from error  # fmt: skip


def duckdb_query_of(sql: str, own: Mapping[int, tuple[str, str]]) -> str | None:
    """A Spark query in DuckDB's SQL, None where there is no translation.

    `own` are schema and name of the tables of the view's own lake, by where they stand in the text.
    """
    try:
        parsed = sqlglot.parse_one(sql, dialect="spark")
        _check_alike(parsed)
        for table in parsed.find_all(exp.Table):
            starts = [part.meta.get("start") for part in table.parts if isinstance(part, exp.Identifier)]
            place = own.get(min((start for start in starts if start is not None), default=-1))
            if place is not None:
                table.set("catalog", exp.to_identifier(_STAND_IN))
                table.set("db", exp.to_identifier(place[0], quoted=True))
                table.set("this", exp.to_identifier(place[1], quoted=True))
        text = parsed.sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError):
        return None
    return text.replace(_STAND_IN, _OWN_LAKE)


def quoted_for_duckdb(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def spark_expression_of(sql: str) -> str:
    """A DuckDB expression, such as a default, in Spark's SQL."""
    try:
        return sqlglot.transpile(sql, read="duckdb", write="spark", unsupported_level=ErrorLevel.RAISE)[0]
    except (SqlglotError, RecursionError) as error:
        raise NotAllowed(
            f"evaluate {sql}", f"it cannot be translated to Spark's SQL ({_first_line(error)})", "Give the value."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")


def duckdb_expression_of(sql: str) -> str:
    """A Spark expression, such as a default, in DuckDB's SQL."""
    try:
        return sqlglot.transpile(sql, read="spark", write="duckdb", unsupported_level=ErrorLevel.RAISE)[0]
    except (SqlglotError, RecursionError) as error:
        raise NotAllowed(
            f"keep the expression {sql}", f"it cannot be translated to DuckDB's SQL ({_first_line(error)})",
            "Give a value.",
        ) from error  # fmt: skip
