"""A Python model: its function is called with the session's DataFrames, and what it returns becomes its table."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.errors import OURS
from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.model_config import ModelConfig
from dbt.adapters.ducklake.spark.errors import JobFailed
from dbt.adapters.ducklake.spark.query import Rows, Spark, answering, as_rows, show_as
from dbt.adapters.ducklake.spark.session import PYTHON
from dbt.adapters.ducklake.statements.doors import refuse
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.kinds.create_table import create_from_rows, read_create_table
from dbt.adapters.ducklake.statements.kinds.query import Query, query_in
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.parse import parse
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
    session.temporary[fold(view)] = None


def _rows(session: LakeSession, spark: Spark, relation: str, model: Mapping[str, Any], code: str) -> Rows:
    """What `model(dbt, session)` returns: a DataFrame of Spark, pandas or Arrow."""
    refuse(session, PYTHON)
    name = f"dbt_model_{model['alias']}"
    # As in notebooks, whose models dbt-spark runs.
    namespace: dict[str, Any] = {"__name__": name, "spark": spark}
    try:
        exec(compile(code, _file(model), "exec"), namespace)  # noqa: S102  it is the user's model
        # All that the model reads is of one snapshot.
        found = Reading(session)
        dbt = namespace["dbtObj"](lambda text: query_in(found, spark, f"SELECT * FROM {text}"))
        function = namespace.get("model")
        if function is None:
            raise DbtRuntimeError(f"The Python model {relation} has no function `model(dbt, session)`.")
        with answering(spark, lambda text: _of_lakes(found, spark, text)):
            returned = function(dbt, spark)
    except (DbtRuntimeError, *OURS):
        raise
    except Exception as error:
        # The user's code may raise what it likes.
        raise DbtRuntimeError(_said(relation, model, code, error)) from error
    finally:
        # What the model set for itself is not for writing its table.
        session.settle()
    rows = as_rows(spark, returned)
    if rows is None:
        raise DbtRuntimeError(
            f"The Python model {relation} returned {type(returned).__name__}. Return a DataFrame of Spark, pandas "
            "or Arrow."
        )
    return rows


def _of_lakes(found: Reading, spark: Spark, text: str) -> Rows | None:
    """What `session.sql` answers: a query may name tables of the lakes, as `dbt.this` is; all else is Spark's."""
    try:
        is_query = isinstance(parse(text), Query)
    except StatementError:
        return None
    return query_in(found, spark, text) if is_query else None


def _said(relation: str, model: Mapping[str, Any], code: str, error: Exception) -> str:
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _file(model)]
    where = f"The Python model {relation}"
    if lines:
        # dbt puts lines of its own around the user's.
        own = str(model.get("raw_code") or "").rstrip()
        before = code[: max(code.find(own), 0)].count("\n")
        where = f"Line {lines[-1] - before} of the Python model {relation}"
    return f"{where}: {type(error).__name__}: {JobFailed.from_error(error).said}"


def _file(model: Mapping[str, Any]) -> str:
    return f"<{model['unique_id']}>"
