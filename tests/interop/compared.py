"""Two lakes compared: their metadata row by row, and their tables as the extension reads them at every snapshot."""

from __future__ import annotations

import re
from typing import Any

from dbt.adapters.ducklake.lake.names import quoted
from tests.judge import Judge
from tests.places import Place, Rows

_UNIQUE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Each lake of a test has a folder of its own, which shows where files are registered by their full paths.
_FOLDER = re.compile(r"/[^ ]*/lake[0-9]+/")
_TIMES = ("snapshot_time", "schedule_start")
# A delete file holds the path of its data file, and how far a random name can be compressed is chance.
_SIZES_OF_DELETES = ("file_size_bytes", "footer_size")


def comparable(tables: dict[str, Rows]) -> dict[str, list[str]]:
    """Metadata rows without what must differ: uuids, times, file names, and who made the lake where."""
    return {
        name: sorted(
            _comparable(row, _SIZES_OF_DELETES if name == "ducklake_delete_file" else ())
            for row in rows
            if row.get("key") not in ("created_by", "data_path")
        )
        for name, rows in tables.items()
    }


def _comparable(row: dict[str, Any], but_for: tuple[str, ...]) -> str:
    shown = ((name, None if name in (*_TIMES, *but_for) else value) for name, value in row.items())
    return ", ".join(
        f"{name}={_FOLDER.sub('/', _UNIQUE.sub('*', _text(value)))}" for name, value in shown if value is not None
    )


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def differences(ours: dict[str, Rows], theirs: dict[str, Rows]) -> list[str]:
    """One line per metadata row that only one of two lakes has."""
    own, others = comparable(ours), comparable(theirs)
    found = []
    for name in sorted(own.keys() | others.keys()):
        mine, their = own.get(name, ["no such table"]), others.get(name, ["no such table"])
        found += [f"ours   {name}: {row}" for row in mine if mine.count(row) > their.count(row)]
        found += [f"theirs {name}: {row}" for row in their if their.count(row) > mine.count(row)]
    return found


def everything_read(place: Place) -> dict[tuple[int, str], Any]:
    """Every table and view at every snapshot as the extension reads it, with its counts and bounds."""
    found: dict[tuple[int, str], Any] = {}
    for (version,) in place.asked("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1"):
        with place.attached(snapshot_version=version) as judge:
            for schema, name in judge.rows(RELATIONS):
                found[version, f"{schema}.{name}"] = read(judge, f"lake.{quoted(schema)}.{quoted(name)}")
    return found


RELATIONS = (
    "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake' "
    "UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'lake'"
)


def read(judge: Judge, relation: str) -> Any:
    columns = [row[0] for row in judge.rows(f"DESCRIBE {relation}")]
    rows = judge.rows(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {relation}")
    # Answered from statistics where DuckDB trusts them.
    folded = ", ".join(
        f"count({c}), CAST(min({c}) AS VARCHAR), CAST(max({c}) AS VARCHAR)" for c in map(quoted, columns)
    )
    return columns, sorted(map(repr, rows)), judge.rows(f"SELECT count(*), {folded} FROM {relation}")
