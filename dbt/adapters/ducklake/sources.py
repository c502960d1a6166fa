"""Sources that are files and no tables of a lake: what their YAML says of them, as a table function of a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.spark.schema import quoted, string_literal

_KEYS = ("format", "location", "options")


def files_of(source: Any) -> str | None:
    """`read_files(...)` for a source whose `meta` or `config` gives a `location`; None for a table of a lake.

    In the location `{name}`, `{identifier}`, `{schema}` and `{source}` stand for what the source has of them.
    """
    given = _given(source)
    location, options = given.get("location"), given.get("options") or {}
    if location is None:
        return None
    title = f"Source {source.source_name}.{source.name}"
    if not isinstance(location, str) or not location:
        raise DbtRuntimeError(f"{title} has the `location` {location!r}. It is the path of its files.")
    if not isinstance(options, Mapping):
        raise DbtRuntimeError(f"{title} has the `options` {options!r}. They are options of Spark's reader by name.")
    names = {"name": source.name, "identifier": source.identifier, "schema": source.schema}
    for key, value in {**names, "source": source.source_name}.items():
        location = location.replace(f"{{{key}}}", str(value))
    arguments = [string_literal(location)]
    if given.get("format"):
        arguments.append(f"format => {string_literal(str(given['format']))}")
    arguments += [f"{quoted(str(key))} => {string_literal(_text(value))}" for key, value in options.items()]
    return f"read_files({', '.join(arguments)})"


def _given(source: Any) -> dict[str, Any]:
    """What the YAML says of files: what stands at the table goes before what its source has for all its tables."""
    config = source.config
    found: dict[str, Any] = {}
    for place in (source.source_meta, source.meta, config.meta, config._extra):
        found |= {key: place[key] for key in _KEYS if place.get(key) is not None}
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
