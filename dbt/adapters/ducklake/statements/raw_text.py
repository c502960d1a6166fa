"""Queries whose text columns may hold bytes that are not UTF-8.

Spark takes any bytes for text, and DuckDB cannot read a column in which some are not UTF-8. To look at each value costs
a write of many texts a sixth of its time, so it is done only if the bytes can come from somewhere: a cast of BINARY, a
file that is in no lake, code that is not SQL. What lies in a lake is UTF-8 already.
"""

from __future__ import annotations

import re

from dbt.adapters.ducklake.lake import Table

# Parts of words, as many functions have more than one name: those that return or take bytes, or run other programs.
_WORDS = (
    "binary", "hex", "base64", "encode", "aes_", "avro", "protobuf", "bitmap", "sketch", "hll_", "kll_", "theta_",
    "accumulate", "compress", "st_", "read_files", "using", "reflect", "java_method", "as '", 'as "',
)  # fmt: skip
_LITERAL = re.compile(r"\bx\s*['\"]", re.IGNORECASE)
_BYTES = frozenset({"blob", "variant", "geometry", "unknown"})


def may_make_bytes(sql: str) -> bool:
    """Whether a query may make text of bytes; rather too often than too rarely."""
    folded = sql.lower()
    return any(word in folded for word in _WORDS) or _LITERAL.search(sql) is not None


def holds_bytes(table: Table) -> bool:
    return any(leaf.type.name in _BYTES for column in table.columns for leaf in column.leaves())
