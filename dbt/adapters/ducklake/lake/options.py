"""DuckLake's options: which there are, what they take, and which one holds for a table.

Options belong to the lake, not to a snapshot. A table's own value comes before its schema's, that before the lake's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dbt.adapters.ducklake.lake.errors import InvalidMetadata, InvalidOption
from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.lake.names import SchemaId, TableId
from dbt.adapters.ducklake.lake.spans import NotASpan, check_span
from dbt.adapters.ducklake.lake.spec import tables
from dbt.adapters.ducklake.lake.spec.layout import OPTION_TAG

DEFAULT_INLINING_LIMIT = 10
# Rows of ducklake_metadata that are no options: facts of the lake that nobody may set afterwards.
PROPERTIES = frozenset({"version", "created_by", "data_path", "encrypted"})

_CODECS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")
_SIZE = re.compile(r"(\d+)\s*([kmgt]i?)?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_BOOLEANS = frozenset({"hive_file_pattern", "sort_on_insert", "auto_compact", "require_commit_message"})
_COUNTS = frozenset({"parquet_compression_level", "parquet_row_group_size", "data_inlining_row_limit"})
_SIZES = frozenset({"parquet_row_group_size_bytes", "target_file_size"})
_INTERVALS = frozenset({"delete_older_than", "expire_older_than"})
_KNOWN = _BOOLEANS | _COUNTS | _SIZES | _INTERVALS
_KNOWN |= {"parquet_compression", "parquet_version", "rewrite_delete_threshold"}
# Options that say how DuckDB itself writes: the value by which it does what Spark does, and what that is.
_OF_DUCKDB = {
    "write_deletion_vectors": ("false", "Spark writes delete files in Parquet, whatever it says"),
    "per_thread_output": ("true", "each of Spark's tasks writes files of its own, whatever it says"),
}


@dataclass(frozen=True)
class Options:
    """All options of a lake, with the scopes they were set for: (key, None | 'schema' | 'table', id)."""

    values: Mapping[tuple[str, str | None, int | None], str]
    attached_inlining_limit: int | None = None
    given: Mapping[str, str] = field(default_factory=dict)

    def with_values(self, given: Mapping[str, object]) -> Options:
        """These options with others that come before them, as a statement gives them for a table it makes."""
        return replace(self, given={key: stored_value(key, value) for key, value in given.items()})

    def value(self, key: str, schema: SchemaId | None = None, table: TableId | None = None) -> str | None:
        """The value that holds for a table, or a schema, or the lake; None if none was set."""
        if key in self.given:
            return self.given[key]
        for scope, scope_id in (("table", table), ("schema", schema), (None, None)):
            if (scope is None or scope_id is not None) and (key, scope, scope_id) in self.values:
                return self.values[key, scope, scope_id]
        return None

    def inlining_limit(self, schema: SchemaId | None = None, table: TableId | None = None) -> int:
        """The most rows of an insert that DuckDB keeps in the metadata database."""
        stored = self.value("data_inlining_row_limit", schema, table)
        if stored is not None:
            return int(stored)
        return DEFAULT_INLINING_LIMIT if self.attached_inlining_limit is None else self.attached_inlining_limit

    @property
    def requires_message(self) -> bool:
        return self.value("require_commit_message") == "true"


def read_options(session: MetadataSession, attached_inlining_limit: int | None) -> Options:
    return options_from_rows(session.read(tables.Metadata), attached_inlining_limit)


def options_from_rows(rows: Iterable[tables.Metadata], attached_inlining_limit: int | None) -> Options:
    values = {}
    for row in rows:
        if row.scope not in (None, "schema", "table"):
            raise InvalidMetadata(f"an option has scope {row.scope!r}", "DuckDB cannot attach this lake either.")
        if row.key not in PROPERTIES:
            values[row.key, row.scope, row.scope_id] = row.value
    return Options(values, attached_inlining_limit)


def store_option(session: MetadataSession, row: tables.Metadata) -> None:
    if session.layout.tenant is not None:
        # In tags, which are the tenant's own: the rows of ducklake_metadata are of all tenants, and their scopes know
        # no tenants either.
        of = session.layout.tenant if row.scope_id is None else row.scope_id
        key, newest = f"{OPTION_TAG}{row.key}", session.query("SELECT max(snapshot_id) FROM {snapshot}")[0][0]
        session.delete(tables.Tag, {"object_id": of, "key": key})
        session.insert([tables.Tag(of, newest, None, key, row.value)])
    elif (row.key, row.scope, row.scope_id) in {(one.key, *one[2:]) for one in session.read(tables.Metadata)}:
        where = {"key": row.key, "scope": row.scope, "scope_id": row.scope_id}
        session.update(tables.Metadata, {"value": row.value}, where)
    else:
        session.insert([row])


def stored_value(key: str, value: object) -> str:
    """The text under which DuckDB stores an option; InvalidOption where it would not take it."""
    text = str(value).strip()
    if key in _OF_DUCKDB:
        usual, found = _OF_DUCKDB[key]
        if text.lower() != usual:
            raise InvalidOption(key, found, f"Set it with DuckDB, for what DuckDB writes, or to {usual}.")
        return usual
    if key in PROPERTIES or key not in _KNOWN:
        raise InvalidOption(key, "it is not an option that can be set", f"There are: {', '.join(sorted(_KNOWN))}.")
    if key in _BOOLEANS:
        return _one_of(key, text.lower(), {"true": "true", "1": "true", "false": "false", "0": "false"})
    if key in _COUNTS:
        if not text.isdecimal():
            raise InvalidOption(key, f"found {text!r}", "It takes a whole number, 0 or more.")
        return str(int(text))
    if key in _SIZES:
        return _size(key, text)
    if key in _INTERVALS:
        return _span(key, text)
    if key == "parquet_compression":
        return _one_of(key, text.lower(), {codec: codec for codec in _CODECS})
    if key == "parquet_version":
        return _one_of(key, text.lower().removeprefix("v"), {"1": "V1", "2": "V2"})
    return _threshold(key, text) if key == "rewrite_delete_threshold" else text


def _one_of(key: str, text: str, allowed: Mapping[str, str]) -> str:
    if text not in allowed:
        raise InvalidOption(key, f"found {text!r}", f"It takes one of: {', '.join(allowed)}.")
    return allowed[text]


def _size(key: str, text: str) -> str:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InvalidOption(key, f"found {text!r}", "It takes bytes, such as 10485760, 10MB or 10MiB.")
    return str(int(match[1]) * _UNITS[(match[2] or "").lower()])


def _span(key: str, text: str) -> str:
    # An empty text takes back what was set.
    try:
        if text:
            check_span(text)
    except NotASpan:
        raise InvalidOption(key, f"found {text!r}", "It takes a span of time, such as 2 days or 12 hours.") from None
    return text


def _threshold(key: str, text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InvalidOption(key, f"found {text!r}", "It takes a share between 0 and 1.")
    return f"{value:f}"
