"""A Python model: its function is called with the session's DataFrames, and what it returns becomes its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.model_config import ModelConfig
from dbt.adapters.ducklake.spark.query import as_rows
from dbt.adapters.ducklake.statements.kinds.create_table import create_from_rows, read_create_table
from dbt.adapters.ducklake.statements.kinds.query import Query, run_query_statement
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.session import LakeSession


def run_python_model(session: LakeSession, relation: str, model: Mapping[str, Any], code: str) -> Outcome:
    """Run the compiled code of a model and write what `model(dbt, session)` returns: a DataFrame of Spark, pandas or
    Arrow."""
    name = f"dbt_model_{model['alias']}"
    namespace: dict[str, Any] = {"__name__": name}
    with session.spark.job(f"model {relation}") as spark:
        # As in notebooks, whose models dbt-spark runs.
        namespace["spark"] = spark
        try:
            exec(compile(code, f"<{model['unique_id']}>", "exec"), namespace)  # noqa: S102  it is the user's model
            dbt = namespace["dbtObj"](lambda text: _table(session, text))
            returned = namespace["model"](dbt, spark)
        except KeyError as error:
            raise DbtRuntimeError(f"The Python model {relation} has no function {error.args[0]}.") from error
        rows = as_rows(spark, returned)
        if rows is None:
            raise DbtRuntimeError(
                f"The Python model {relation} returned {type(returned).__name__}. Return a DataFrame of Spark, pandas "
                "or Arrow."
            )
        clauses = ModelConfig.of(model).table_clauses()
        statement = read_create_table(Reader(f"{relation} {clauses} AS SELECT"), is_replace=True)
        return create_from_rows(session, statement, spark, rows)


def _table(session: LakeSession, relation: str) -> Any:
    return run_query_statement(session, Query(f"SELECT * FROM {relation}")).rows
