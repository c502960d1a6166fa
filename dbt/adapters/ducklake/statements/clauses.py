"""Clauses that several statements share."""

from __future__ import annotations

from dbt.adapters.ducklake.lake import CALENDAR_PARTS, EPOCH_PARTS, SortField, fold
from dbt.adapters.ducklake.lake import quoted as quoted_for_duckdb
from dbt.adapters.ducklake.statements.errors import NotUnderstood
from dbt.adapters.ducklake.statements.reader import Reader

# Spark and Iceberg name the same transforms in the plural.
_TRANSFORMS = {name: name for name in (*CALENDAR_PARTS, *EPOCH_PARTS, "identity")}
_TRANSFORMS |= {f"{name}s": name for name in CALENDAR_PARTS}


def read_partitioning(reader: Reader) -> tuple[tuple[str, str], ...]:
    """`(region, year(ordered_at), bucket(8, id))` as (column, transform) pairs."""

    return reader.in_parentheses(lambda: read_partition_key(reader))


def read_partition_key(reader: Reader) -> tuple[str, str]:
    name, place = reader.name_part(), reader.place
    if not reader.accept("("):
        if reader.word() and reader.word() not in (",", ")", "="):
            raise reader.unexpected(f"A name with spaces or other signs is written in backticks, such as `{name} ...`.")
        return name, "identity"
    if fold(name) == "bucket":
        count = reader.text_until(",")
        reader.expect(",")
        transform = f"bucket({count.strip()})"
    elif fold(name) in _TRANSFORMS:
        transform = _TRANSFORMS[fold(name)]
    else:
        known = ", ".join((*CALENDAR_PARTS, *EPOCH_PARTS, "bucket"))
        raise NotUnderstood(f"The partition transform {name}", f"There are {known}.", place)
    column = reader.name_part()
    reader.expect(")")
    return column, transform


def read_sorting(reader: Reader) -> tuple[SortField, ...]:
    """`(ordered_at DESC NULLS LAST, id)`; as in DuckDB, NULLs come last unless it says otherwise."""

    def key() -> SortField:
        name = reader.name_part()
        descending = reader.accept("DESC")
        if not descending:
            reader.accept("ASC")
        nulls_first = reader.accept("NULLS", "FIRST")
        if not nulls_first:
            reader.accept("NULLS", "LAST")
        return SortField(quoted_for_duckdb(name), descending, nulls_first)

    return reader.in_parentheses(key)


def read_properties(reader: Reader) -> dict[str, str]:
    """`('parquet_compression' = 'zstd', target_file_size = '64MB')`"""

    def pair() -> tuple[str, str]:
        key = reader.string() if reader.word() == "" and not _is_name(reader) else reader.name_part()
        if not reader.accept("="):
            reader.accept("==")
        value = reader.string() if reader.word() == "" else reader.name_part()
        return fold(key), value

    return dict(reader.in_parentheses(pair))


def _is_name(reader: Reader) -> bool:
    return not reader.is_done and reader.tokens[reader.at].token_type.name == "IDENTIFIER"
