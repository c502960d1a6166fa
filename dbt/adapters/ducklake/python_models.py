"""A Python model: its function is called with the session's DataFrames, and what it returns becomes its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.model_config import ModelConfig
from dbt.adapters.ducklake.spark.query import Rows, Spark, as_rows, show_as
from dbt.adapters.ducklake.statements.kinds.create_table import create_from_rows, read_create_table
from dbt.adapters.ducklake.statements.kinds.query import query_in
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.resolve import Reading
from dbt.adapters.ducklake.statements.session import LakeSession


def run_python_model(session: LakeSession, relation: str, model: Mapping[str, Any], code: str) -> Outcome:
    """Run the compiled code of a model and write what it returns to its table."""
    with session.spark.job(f"model {relation}") as spark:
        rows = _rows(session, spark, relation, model, code)
        clauses = ModelConfig.of(model).table_clauses()
        statement = read_create_table(Reader(f"{relation} {clauses} AS SELECT"), is_replace=True)
        return create_from_rows(session, statement, spark, rows)


def show_python_model(session: LakeSession, relation: str, view: str, model: Mapping[str, Any], code: str) -> None:
    """Run the compiled code of a model and show what it returns as a temporary view."""
    with session.spark.job(f"model {relation}") as spark:
        show_as(_rows(session, spark, relation, model, code), view)
    session.temporary.add(fold(view))


def _rows(session: LakeSession, spark: Spark, relation: str, model: Mapping[str, Any], code: str) -> Rows:
    """What `model(dbt, session)` returns: a DataFrame of Spark, pandas or Arrow."""
    name = f"dbt_model_{model['alias']}"
    # As in notebooks, whose models dbt-spark runs.
    namespace: dict[str, Any] = {"__name__": name, "spark": spark}
    try:
        exec(compile(code, f"<{model['unique_id']}>", "exec"), namespace)  # noqa: S102  it is the user's model
        # All that the model reads is of one snapshot.
        found = Reading(session)
        dbt = namespace["dbtObj"](lambda text: query_in(found, spark, f"SELECT * FROM {text}"))
        function = namespace.get("model")
        if function is None:
            raise DbtRuntimeError(f"The Python model {relation} has no function `model(dbt, session)`.")
        returned = function(dbt, spark)
    finally:
        # What the model set for itself is not for writing its table.
        session.spark.settle()
    rows = as_rows(spark, returned)
    if rows is None:
        raise DbtRuntimeError(
            f"The Python model {relation} returned {type(returned).__name__}. Return a DataFrame of Spark, pandas "
            "or Arrow."
        )
    return rows
