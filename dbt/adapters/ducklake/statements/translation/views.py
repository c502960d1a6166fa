"""Views between the two engines: DuckDB's SQL for those who read the lake with DuckDB, Spark's for Spark."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.errors import SqlglotError

from dbt.adapters.ducklake.lake import NotFound, Snapshot, Table, View, fold, quoted
from dbt.adapters.ducklake.spark.errors import UnsupportedType
from dbt.adapters.ducklake.spark.schema import spark_type, type_text
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import TableUse, names_in
from dbt.adapters.ducklake.statements.names import quoted as quoted_for_spark
from dbt.adapters.ducklake.statements.translation.casts import Zone
from dbt.adapters.ducklake.statements.translation.from_duckdb import OWN_LAKE, query_for_spark
from dbt.adapters.ducklake.statements.translation.parsing import tree_of
from dbt.adapters.ducklake.statements.translation.queries import UNNAMED, Query, TableOf, is_unnamed
from dbt.adapters.ducklake.statements.translation.relations import Output
from dbt.adapters.ducklake.statements.translation.typed import Untranslatable, text_literal

# Tags of views that Spark made: the query as it was written, and the columns that it had then.
SPARK_SQL, SPARK_COLUMNS = "spark_sql", "spark_columns"
# Views over views; what is deeper reads itself.
_DEEPEST = 30


def query_for_duckdb(snapshot: Snapshot, lake: str, sql: str, columns: Sequence[tuple[str, str]], zone: str) -> str:
    """The query in DuckDB's SQL; `columns` are the names and types that it has in Spark. Untranslatable."""
    if OWN_LAKE in sql or UNNAMED in sql:
        raise Untranslatable(None, f"it has the word {OWN_LAKE} or {UNNAMED}")
    found, outputs = _translated(snapshot, lake, sql, Zone(zone), _DEEPEST)
    if len(outputs) != len(columns):
        raise Untranslatable(None, f"it has {len(outputs)} columns there and {len(columns)} here")
    for output, (name, kind) in zip(outputs, columns, strict=True):
        if is_unnamed(output.name):
            found = found.replace(quoted(output.name), quoted(name))
        elif fold(output.name) != fold(name):
            raise Untranslatable(None, f"column {name} is called {output.name} there")
        if _shown(output) != kind:
            raise Untranslatable(None, f"column {name} is of type {kind}, and there of {_shown(output)}")
    return found


def _shown(output: Output) -> str:
    try:
        return type_text(spark_type(output.type))
    except UnsupportedType:
        return output.type.type.text


def _translated(snapshot: Snapshot, lake: str, sql: str, zone: Zone, depth: int) -> tuple[str, tuple[Output, ...]]:
    if not depth:
        raise Untranslatable(None, "it reads itself, or a view of too many views")
    tables = {}
    for use in names_in(sql).tables:
        at, then = _version(snapshot, use)
        there = None if use.arguments is not None else _found(at, lake, use.name.parts)
        if there is None:
            raise Untranslatable(None, f"{use.name} is no table of this lake")
        if isinstance(there, View):
            _, inner = _translated(at, lake, _own_query(at, there, lake), zone, depth - 1)
            names = there.column_aliases or [output.name for output in inner]
            columns = tuple(Output(name, output.type) for name, output in zip(names, inner, strict=False))
        else:
            columns = tuple(Output(column.name, column) for column in there.columns)
        whole = ".".join(map(quoted, (*there.schema.parts, there.name)))
        tables[use.start] = TableOf(f"{OWN_LAKE}.{whole}", columns, then)
    try:
        return Query(tables, zone).translated(tree_of(sql))
    except (SqlglotError, RecursionError) as error:
        first = str(error).strip().splitlines()[0].rstrip(".")
        raise Untranslatable(None, f"it cannot be read ({first})") from error


def _version(snapshot: Snapshot, use: TableUse) -> tuple[Snapshot, str]:
    """The snapshot that a use is of, and how DuckDB says that."""
    if use.travel is None:
        return snapshot, ""
    if not use.travel.is_version or not use.travel.expression.isdecimal():
        raise Untranslatable(None, f"{use.name} at a time is another row of snapshots in each session's zone")
    try:
        return snapshot.at(int(use.travel.expression)), f" AT (VERSION => {int(use.travel.expression)})"
    except NotFound as error:
        raise Untranslatable(None, str(error).rstrip(".")) from error


def _found(snapshot: Snapshot, lake: str, parts: tuple[str, ...]) -> Table | View | None:
    is_own = len(parts) > 2 and fold(parts[0]) == fold(lake)
    own = parts[1:] if is_own else parts
    if len(own) < 2 or (len(own) > 2 and not is_own):
        # Of a name that does not begin with the lake, the first part may be another one.
        return None
    schema = snapshot.find_schema(own[0]) if len(own) == 2 else snapshot.schema_at(own[:-1])
    return snapshot.find_in(schema, own[-1]) if schema is not None else None


def query_of_view(snapshot: Snapshot, view: View, lake: str) -> str:
    """The view's query for Spark: as it was written for it, or translated."""
    if not _is_sparks(view):
        try:
            _translated(snapshot, lake, _own_query(snapshot, view, lake), Zone("UTC"), _DEEPEST)
        except Untranslatable as refused:
            raise NotAllowed(
                f"read view {view}", f"its DuckDB SQL may be another thing in Spark's: {reason_of(refused)}",
                "Create it with dbt, or read its tables.",
            ) from refused  # fmt: skip
    sql = _own_query(snapshot, view, lake)
    if not view.column_aliases:
        return sql
    names = ", ".join(map(quoted_for_spark, view.column_aliases))
    return f"SELECT * FROM ({sql}) AS {quoted_for_spark(view.name)}({names})"


def _is_sparks(view: View) -> bool:
    return view.tag(SPARK_SQL) is not None or view.dialect.lower() == "spark"


def _own_query(snapshot: Snapshot, view: View, lake: str) -> str:
    if _is_sparks(view):
        return view.tag(SPARK_SQL) or view.sql
    return query_for_spark(view.sql, lake, lambda path: snapshot.schema_at(path) is not None)


def only_for_spark(name: str) -> str:
    """What DuckDB finds in place of a view's query that has no translation: an error, and not other rows."""
    text = f"View {name} is written in Spark SQL that DuckDB may answer otherwise. Read it with Spark."
    return f"SELECT error({text_literal(text)}) AS only_for_spark"


def reason_of(refused: Untranslatable) -> str:
    """The reason, with the expression and its line where they are known."""
    node = refused.node
    if node is None:
        return refused.reason
    lines = [part.meta["line"] for part in node.walk() if "line" in part.meta]
    place = f" in line {min(lines)}" if lines else ""
    text = " ".join(node.sql(dialect="spark").split())
    return f"{refused.reason} (`{text[:80]}`{place})"
