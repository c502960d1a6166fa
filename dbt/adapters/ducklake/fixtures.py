"""Values of unit tests' rows as SQL: nested ones come as text of SQL, or as YAML's lists and mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.ducklake.lake import Column
from dbt.adapters.ducklake.spark.schema import string_literal
from dbt.adapters.ducklake.statements.errors import StatementError
from dbt.adapters.ducklake.statements.reader import Reader, is_string
from dbt.adapters.ducklake.statements.types import read_type


def fixture_value(value: Any, type_text: str) -> str:
    """The SQL of a value for a column of that type. A text for a nested column is SQL in quotes, which come off."""
    try:
        column = read_type(type_text, Reader("").place)
    except StatementError:
        return str(value)
    if not column.type.is_container:
        return str(value)
    if not isinstance(value, str):
        return _nested(value, column)
    reader = Reader(value)
    is_text = len(reader.tokens) == 1 and is_string(reader.tokens[0])
    return str(reader.tokens[0].text) if is_text else value


def _nested(value: Any, column: Column) -> str:
    if value is None:
        return "NULL"
    kind = column.type.name
    if kind == "list" and isinstance(value, Sequence) and not isinstance(value, str):
        return f"array({', '.join(_nested(one, column.children[0]) for one in value)})"
    if kind == "map" and isinstance(value, Mapping):
        key, held = column.children
        return f"map({', '.join(f'{_nested(k, key)}, {_nested(v, held)}' for k, v in value.items())})"
    if kind == "struct" and isinstance(value, Mapping):
        given = {str(name).lower(): one for name, one in value.items()}
        parts = (
            f"{string_literal(child.name)}, {_nested(given.get(child.name.lower()), child)}"
            for child in column.children
        )
        return f"named_struct({', '.join(parts)})"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else string_literal(str(value))
