"""DuckDB's SQL in Spark's: views and defaults that DuckDB made, as far as both engines take the same text alike.

The types of columns are not known here, so hardly a function passes. A view's types are then looked at in what came out
of it, as those of Spark's own views are.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from dbt.adapters.ducklake.lake import quoted
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.translation.typed import Untranslatable

_QUERIES: tuple[type[exp.Expr], ...] = (
    exp.Select, exp.Subquery, exp.Union, exp.Except, exp.Intersect, exp.With, exp.CTE, exp.From, exp.Join, exp.Where,
    exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Table, exp.TableAlias,
    exp.Identifier, exp.Alias, exp.Star, exp.Window, exp.WindowSpec, exp.Filter, exp.Dot, exp.Version,
)  # fmt: skip
_VALUES: tuple[type[exp.Expr], ...] = (
    exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ,
    exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Case, exp.If,
    exp.Coalesce, exp.Nullif, exp.Exists, exp.Add, exp.Sub, exp.Mul, exp.Count, exp.Min, exp.Max, exp.Sum,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Tuple,
)  # fmt: skip
_KNOWN = frozenset((*_QUERIES, *_VALUES))
# What a text that stands alone is cast to, and the texts of which both engines make the same.
_OF_TEXT = {
    exp.DType.BOOLEAN: "t f true false", exp.DType.DATE: None, exp.DType.TIMESTAMPNTZ: None, exp.DType.TEXT: None,
}  # fmt: skip
_DIGITS = {exp.DType.DATE: "####-##-##", exp.DType.TIMESTAMPNTZ: "####-##-## ##:##:##"}
# What one engine has in an order, or with a meaning, of its own.
_NEVER: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: ("windows", "qualify", "sample", "laterals", "distribute", "sort", "cluster", "kind", "into"),
    exp.With: ("recursive",),
    exp.Join: ("using", "method"),
    exp.Union: ("by_name",),
    exp.Group: ("rollup", "cube", "grouping_sets"),
    exp.Distinct: ("on",),
    exp.Table: ("sample", "pivots", "when"),
    exp.Star: ("replace", "rename"),
    exp.Count: ("big_int_only",),
}  # fmt: skip
_MOST_DIGITS = 18
# What DuckDB stores where a view names the lake it is in.
OWN_LAKE = "{DUCKLAKE_CATALOG}"
_DEFAULT_SCHEMA = "main"
# Defaults that give each row another value.
_ANEW = {
    "now()": "current_timestamp()", "get_current_timestamp()": "current_timestamp()",
    "current_timestamp": "current_timestamp()", "current_date": "current_date()", "today()": "current_date()",
    "uuid()": "uuid()", "gen_random_uuid()": "uuid()", "random()": "rand()",
}  # fmt: skip


def query_for_spark(sql: str, lake: str, has_schema: Callable[[tuple[str, ...]], bool] = lambda _: False) -> str:
    """A stored query of DuckDB's in Spark's SQL, with the name of the lake that it is in; `has_schema` says whether a
    schema lies in others there. Untranslatable."""
    return _written(_parsed(sql.replace(OWN_LAKE, quoted(OWN_LAKE))).transform(_in_words_of_both, lake, has_schema))


def _in_words_of_both(node: exp.Expr, lake: str, has_schema: Callable[[tuple[str, ...]], bool]) -> exp.Expr:
    """What DuckDB stores in words of its own."""
    if isinstance(node, exp.Table):
        _set_version(node)
        parts = [part.name for part in node.parts]
        if len(parts) > 2 and parts[0] != OWN_LAKE and has_schema(tuple(parts[:-1])):
            # Newer clients leave the lake's name out, and then the first part is a schema.
            node.set("this", exp.Dot.build([exp.to_identifier(part, quoted=True) for part in parts[1:]]))
            node.set("db", exp.to_identifier(parts[0], quoted=True))
            node.set("catalog", exp.to_identifier(lake, quoted=True))
            return node
    if isinstance(node, exp.Table) and OWN_LAKE in (node.catalog, node.db):
        # Without a schema it is in the lake's default one, which no setting changes.
        schema = node.args["db"] if node.catalog else exp.to_identifier(_DEFAULT_SCHEMA)
        node.set("catalog", exp.to_identifier(lake, quoted=True))
        node.set("db", schema)
    elif isinstance(node, exp.Column) and OWN_LAKE in (node.catalog, node.db):
        # A view reads no other lake, so the rest says which table it is.
        node.set("catalog" if node.catalog else "db", None)
    elif isinstance(node, exp.Literal) and OWN_LAKE in node.this:
        raise Untranslatable(node, f"a text with {OWN_LAKE}")
    elif isinstance(node, exp.Anonymous) and str(node.this).lower() == "count_star":
        return exp.Count(this=exp.Star())
    elif isinstance(node, exp.Columns) and isinstance(node.this, exp.Star) and not any(node.this.args.values()):
        if isinstance(node.parent, exp.Select):
            return exp.Star()
        if isinstance(node.parent, exp.Ordered):
            return exp.column("ALL")
    return node


def _set_version(node: exp.Table) -> None:
    """`AT (VERSION => n)` as Spark says it. At a time, each session's zone would decide."""
    at = node.args.get("when")
    if isinstance(at, exp.HistoricalData) and at.args.get("kind") == "VERSION":
        number = at.expression
        if isinstance(number, exp.Literal) and not number.is_string:
            node.set("when", None)
            node.set("version", exp.Version(this="VERSION", kind="AS OF", expression=number.copy()))


def expression_for_spark(sql: str, what: str) -> str:
    """An expression of DuckDB's, such as a default, in Spark's SQL."""
    try:
        return _ANEW.get(sql.strip().lower()) or _written(_parsed(sql))
    except Untranslatable as refused:
        raise NotAllowed(
            f"evaluate {what}, {sql}", f"DuckDB's SQL may be another thing in Spark's: {refused.reason}",
            "Give the value.",
        ) from refused  # fmt: skip


def sort_key_for_spark(sql: str) -> str:
    """An expression of DuckDB's that decides about the order of rows alone."""
    try:
        return sqlglot.transpile(sql, read="duckdb", write="spark", unsupported_level=ErrorLevel.RAISE)[0]
    except (SqlglotError, RecursionError) as error:
        raise NotAllowed(
            f"sort by {sql}", f"it cannot be translated to Spark's SQL ({_first_line(error)})",
            "Sort the table by columns.",
        ) from error  # fmt: skip


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")


def _parsed(sql: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, RecursionError) as error:
        raise Untranslatable(None, f"it cannot be read ({_first_line(error)})") from error


def _written(parsed: exp.Expr) -> str:
    for node in parsed.walk():
        _check(node)
    try:
        return parsed.sql(dialect="spark", unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        raise Untranslatable(None, _first_line(error)) from error


def _check(node: exp.Expr) -> None:
    if type(node) not in _KNOWN or (isinstance(node, exp.Dot) and not _is_of_table(node)):
        own_name = str(node.this) if isinstance(node, exp.Anonymous) else type(node).__name__
        title = own_name if isinstance(node, exp.Func) else node.sql(dialect="duckdb")[:60]
        raise Untranslatable(node, f"{title} is not known to give the same in both")
    if never := [key for key in _NEVER.get(type(node), ()) if node.args.get(key)]:
        raise Untranslatable(node, f"{never[0]} is not known to give the same in both")
    if isinstance(node, exp.Cast):
        _check_cast(node)
    elif isinstance(node, exp.Literal):
        _check_literal(node)
    elif isinstance(node, exp.Sum) and isinstance(node.this, exp.Distinct):
        raise Untranslatable(node, "sum of distinct values is not known to give the same in both")


def _is_of_table(node: exp.Expr) -> bool:
    """Whether dots are those of a table's name, which has more parts than sqlglot has places for."""
    while isinstance(node.parent, exp.Dot):
        node = node.parent
    return isinstance(node.parent, exp.Table)


def _check_cast(node: exp.Cast) -> None:
    value, wanted = node.this, node.to.this
    if isinstance(value, exp.Literal) and value.is_string and wanted in _OF_TEXT and not node.to.expressions:
        known, form = _OF_TEXT[wanted], _DIGITS.get(wanted)
        shape = "".join("#" if letter.isdigit() else letter for letter in value.this)
        if (known is None or value.this in known.split()) and (form is None or shape == form):
            return
    raise Untranslatable(node, "a cast goes by rules of each engine's own")


def _check_literal(node: exp.Literal) -> None:
    text = str(node.this)
    # Spark reads a backslash as the beginning of an escape, unless a setting says otherwise.
    if node.is_string and "\\" in text:
        raise Untranslatable(node, "a text with a backslash")
    if not node.is_string and len(text) > _MOST_DIGITS:
        raise Untranslatable(node, f"a number of more than {_MOST_DIGITS} digits")
