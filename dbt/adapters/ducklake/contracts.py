"""A model's contract: its types in Spark's words, its columns by a lake's rule for names, and what nobody enforces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbt.adapters.events.types import ConstraintNotEnforced
from dbt_common.events.functions import warn_or_error

from dbt.adapters.ducklake.column import DuckLakeColumn
from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.kinds.describe import type_text
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.types import read_type

_LENGTH = re.compile(r"\s*(var|n|nvar)?(char|character)(\s+varying)?\s*\(\s*\d+\s*\)\s*", re.IGNORECASE)


def spark_type_of(text: str) -> str:
    """A type in the words that Spark has for it; one that is not known here stays as it is, for Spark to refuse."""
    try:
        return type_text(read_type(text, Reader(text).place))
    except StatementError:
        return text


def named_alike(given: Sequence[DuckLakeColumn], declared: Sequence[DuckLakeColumn]) -> list[DuckLakeColumn]:
    """The columns of a query, as the contract spells those that differ from it in case only."""
    names = {fold(column.name): column.name for column in declared}
    return [replace(column, column=names.get(fold(column.name), column.name)) for column in given]


def warn_of_lengths(model: Mapping[str, Any]) -> None:
    """A lake has no length of texts: of each that a contract declares, dbt's warning of constraints is given."""
    for column in (model.get("columns") or {}).values():
        kind = str(column.get("data_type") or "")
        if _LENGTH.fullmatch(kind):
            said = f"length {kind} of column {column.get('name')}"
            warn_or_error(ConstraintNotEnforced(constraint=said, adapter="ducklake"))
