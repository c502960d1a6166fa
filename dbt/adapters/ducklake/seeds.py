"""A seed: dbt's table of a CSV file becomes a lake's, in one snapshot and without a detour through SQL text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dbt_common.clients.agate_helper import Integer
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.lake import Column, fold, type_from_text
from dbt.adapters.ducklake.model_config import ModelConfig
from dbt.adapters.ducklake.spark.local_rows import dataframe_of, with_moments
from dbt.adapters.ducklake.spark.schema import quoted, string_literal
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.kinds.create_table import create_from_rows, read_create_table
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.types import read_column

if TYPE_CHECKING:
    import agate

_PLAIN_NAME = re.compile(r"\w+")
_EPOCH = dt.date(1970, 1, 1)
_TEXT = type_from_text("varchar")


def load_seed(session: LakeSession, relation: str, rows: agate.Table, model: Mapping[str, Any]) -> Outcome:
    """Make or replace the table of a seed. Its types are those of `column_types`, and else of what the file holds."""
    config = model.get("config") or {}
    _refuse_odd_names(rows, config.get("quote_columns"))
    columns = [_column(rows, place) for place in range(len(rows.column_names))]
    settings = ModelConfig.of(model)
    declared = _declared(rows, config.get("column_types") or {}, settings)
    clauses = replace(settings, columns=()).table_clauses()
    text = f"{relation} ({', '.join(declared)}) {clauses}" if declared else f"{relation} {clauses} AS SELECT"
    statement = read_create_table(Reader(text), is_replace=True)
    with session.spark.job(f"seed {relation}") as spark:
        values = ([_value(column, cell) for column, cell in zip(columns, row, strict=True)] for row in rows.rows)
        moments = {place for place, column in enumerate(columns) if column.type.name == "timestamptz"}
        given = [replace(column, type=_TEXT) if place in moments else column for place, column in enumerate(columns)]
        read = with_moments(dataframe_of(spark, given, values), moments)
        return create_from_rows(session, statement, spark, read)


def _refuse_odd_names(rows: agate.Table, quote_columns: object) -> None:
    """A name that is none without quotes is most often a whole line that was not taken apart."""
    odd = [name for name in rows.column_names if not _PLAIN_NAME.fullmatch(name)]
    if odd and quote_columns is False:
        raise DbtRuntimeError(
            f"Column {odd[0]!r} of the seed needs quotes. Check its `delimiter`, or set `quote_columns: true`."
        )


def _declared(rows: agate.Table, column_types: Mapping[str, str], settings: ModelConfig) -> list[str]:
    """What is said of the seed's columns: their types, and their descriptions where those are kept."""
    by_name = {fold(name): name for name in rows.column_names}
    comments = {fold(column.name): column.comment for column in settings.columns if column.comment}
    typed = {fold(name) for name in column_types}
    found = [
        f"{quoted(by_name[name])} COMMENT {string_literal(text)}"
        for name, text in comments.items()
        if name in by_name and name not in typed
    ]
    for name, kind in column_types.items():
        if fold(name) not in by_name:
            there = ", ".join(rows.column_names)
            raise DbtRuntimeError(f"`column_types` has {name}, and the seed has no such column. It has: {there}.")
        text = f"{quoted(by_name[fold(name)])} {kind}"
        try:
            declared = read_column(Reader(text))
        except StatementError as error:
            raise DbtRuntimeError(f"`column_types` says {name} is {kind}. {error.text}") from error
        if declared.type is not None and declared.type.children:
            raise DbtRuntimeError(
                f"`column_types` says {name} is {kind}, and a CSV file holds no nested values. Make it a string, and "
                "take it apart in a model, such as with from_json."
            )
        comment = comments.get(fold(name))
        found.append(f"{text} COMMENT {string_literal(comment)}" if comment else text)
    return found


def _column(rows: agate.Table, place: int) -> Column:
    return Column(rows.column_names[place], type_from_text(type_of(rows, place)))


def type_of(rows: agate.Table, place: int) -> str:
    """The lake type of what agate found in a column."""
    import agate

    kind = rows.column_types[place]
    if isinstance(kind, agate.Number):
        if not isinstance(kind, Integer) and rows.aggregate(agate.MaxPrecision(place)):
            return "float64"
        greatest = max((abs(cell) for cell in rows.columns[place].values_without_nulls()), default=0)
        return "int64" if greatest < 2**63 else "decimal(38,0)"
    if isinstance(kind, agate.Boolean):
        return "boolean"
    if isinstance(kind, agate.DateTime):
        return "timestamptz"
    return "date" if isinstance(kind, agate.Date) else "varchar"


def _value(column: Column, cell: Any) -> Any:
    """A cell as a lake value."""
    if cell is None:
        return None
    name = column.type.name
    if name == "varchar":
        return str(cell)
    if name == "int64":
        return int(cell)
    if name == "decimal":
        return Decimal(int(cell))
    if name == "float64":
        return float(cell) if isinstance(cell, Decimal | int) else cell
    if name == "date":
        return (cell - _EPOCH).days
    # As text: of one without a zone, the session's zone decides, as it does of a text in SQL.
    return cell.isoformat() if name == "timestamptz" else cell
