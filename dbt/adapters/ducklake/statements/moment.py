"""The time that a statement asks for is one value, also if the statement takes several queries of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.statements.reader import Reader, is_quoted

# Each function without arguments that asks for the time, with its value at a moment.
_FUNCTIONS = {
    "CURRENT_TIMESTAMP": "{0}",
    "NOW": "{0}",
    "LOCALTIMESTAMP": "CAST({0} AS TIMESTAMP_NTZ)",
    "CURRENT_DATE": "CAST({0} AS DATE)",
    "CURDATE": "CAST({0} AS DATE)",
    "UNIX_TIMESTAMP": "unix_timestamp({0})",
}
# Those that may be written without parentheses; then a column of that name comes first.
_KEYWORDS = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE"})


def now() -> int:
    """The present in microseconds since 1970."""
    return time.time_ns() // 1000


def literal(micros: int) -> str:
    """A moment as Spark SQL that means the same in every time zone."""
    return f"timestamp_micros({micros})"


def at_moment(sql: str, micros: int, has_column: Callable[[str], bool]) -> str:
    """Return a query with the moment in place of each question for the time; `has_column` says whether a table of the
    query has, or may have, a column of a folded name."""
    reader = Reader(sql)
    edits = []
    for at, token in enumerate(reader.tokens):
        word = token.text.upper()
        before = reader.tokens[at - 1].text if at else ""
        if word not in _FUNCTIONS or is_quoted(token) or before == ".":
            continue
        after = [one.text for one in reader.tokens[at + 1 : at + 3]]
        if after == ["(", ")"]:
            edits.append((token.start, reader.tokens[at + 2].end + 1, word))
        elif word in _KEYWORDS and after[:1] not in (["."], ["("]) and not _is_column(reader, fold(word), has_column):
            edits.append((token.start, token.end + 1, word))
    for start, end, word in reversed(edits):
        sql = f"{sql[:start]}{_FUNCTIONS[word].format(literal(micros))}{sql[end:]}"
    return sql


def _is_column(reader: Reader, name: str, has_column: Callable[[str], bool]) -> bool:
    """Whether the query has, or may have, a column of that name."""
    pairs = zip(reader.tokens, reader.tokens[1:], strict=False)
    is_alias = any(first.text.upper() in ("AS", ".") and fold(second.text) == name for first, second in pairs)
    is_text = any(fold(token.text) == name and is_quoted(token) for token in reader.tokens)
    return is_alias or is_text or has_column(name)
