"""Run a Python model: its function gets the session's DataFrames, and what it returns becomes the model's table."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.errors import OURS
from dbt.adapters.ducklake.incremental_config import batch_condition
from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.model_config import ModelConfig
from dbt.adapters.ducklake.spark.errors import FrameRefused, JobFailed
from dbt.adapters.ducklake.spark.frames import as_rows, without_void
from dbt.adapters.ducklake.spark.query import Rows, Spark, answering, checked, plain_views, show_as
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
    with session.spark.job(f"model {relation}") as spark, _own_settings(session):
        rows = without_void(_rows(session, spark, relation, model, code))
        if (within := batch_condition(model)) is not None:
            rows = checked(rows, *within)
        clauses = ModelConfig.of(model).table_clauses()
        statement = read_create_table(Reader(f"{relation} {clauses} AS SELECT"), is_replace=True)
        return create_from_rows(session, statement, spark, rows)


def show_python_model(session: LakeSession, relation: str, view: str, model: Mapping[str, Any], code: str) -> None:
    """Run the compiled code of a model and show what it returns as a temporary view."""
    # Its settings last until its rows are written, which is before the session is renewed.
    session.changed_settings = True
    with session.spark.job(f"model {relation}") as spark:
        rows = _rows(session, spark, relation, model, code)
        within = batch_condition(model)
        show_as(rows if within is None else checked(rows, *within), view)
    session.temporary[fold(view)] = None


@contextmanager
def _own_settings(session: LakeSession) -> Iterator[None]:
    """What a model sets in the block holds until its rows are computed, and no longer."""
    try:
        yield
    finally:
        session.settle()


def _rows(session: LakeSession, spark: Spark, relation: str, model: Mapping[str, Any], code: str) -> Rows:
    """What `model(dbt, session)` returns, as rows of Spark."""
    refuse(session, PYTHON)
    _warn_of_packages(session, relation, model)
    # As in notebooks, whose models dbt-spark runs.
    namespace: dict[str, Any] = {"__name__": f"dbt_model_{model['alias']}", "spark": spark}
    before = plain_views(spark)
    try:
        with session.spark.own_code():
            exec(compile(code, _file(model), "exec"), namespace)  # noqa: S102  it is the user's model
        # All that the model reads is of one snapshot.
        found = Reading(session, sees_views=True)
        function = namespace.get("model")
        if function is None:
            raise DbtRuntimeError(f"The Python model {relation} has no function `model(dbt, session)`.")
        inputs = namespace["dbtObj"](lambda name: _input(found, spark, name))
        with answering(spark, lambda text: _of_lakes(found, spark, text)), session.spark.own_code():
            returned = function(inputs, spark)
        rows = as_rows(spark, returned)
    except FrameRefused as error:
        raise DbtRuntimeError(f"The Python model {relation}: {error}") from error
    except (DbtRuntimeError, *OURS):
        raise
    except (Exception, SystemExit) as error:
        # The user's code may raise what it likes; an exit would end dbt's thread without a result.
        raise DbtRuntimeError(_said(relation, model, code, error)) from error
    finally:
        session.python_views |= plain_views(spark) - before
        session.spark.require()
        session.forget_plans()
    if rows is None:
        raise DbtRuntimeError(
            f"The Python model {relation} returned {type(returned).__name__}. Return a DataFrame of Spark, pandas "
            "or Arrow."
        )
    return rows


def _input(found: Reading, spark: Spark, name: str) -> Rows:
    """A relation that the model reads; of a microbatch, the rows of the batch's time."""
    return query_in(found, spark, f"SELECT * FROM {found.session.inputs.get(name, name)}")


def _of_lakes(found: Reading, spark: Spark, text: str) -> Rows | None:
    """What `session.sql` answers: a query may name tables of the lakes, as `dbt.this` is; all else is Spark's."""
    try:
        is_query = isinstance(parse(text), Query)
    except StatementError:
        return None
    return query_in(found, spark, text) if is_query else None


def _warn_of_packages(session: LakeSession, relation: str, model: Mapping[str, Any]) -> None:
    if packages := (model.get("config") or {}).get("packages"):
        names = ", ".join(map(str, packages)) if isinstance(packages, list) else str(packages)
        session.warn(
            f"The Python model {relation} asks for the packages {names}. Nothing installs them: they have to be in the "
            "environment of dbt, and for functions that Spark runs in that of its workers."
        )


def _said(relation: str, model: Mapping[str, Any], code: str, error: BaseException) -> str:
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
