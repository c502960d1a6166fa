"""Where the files of tables lie."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.metadata import MetadataSession
from dbt.adapters.ducklake.lake.paths import stored_path
from dbt.adapters.ducklake.lake.spec import tables


def table_folders(session: MetadataSession, data_path: str) -> dict[int, str]:
    """Where the files of each table lie, of dropped ones too."""
    schemas = {row.schema_id: row for row in session.read(tables.Schema)}
    found = {}
    for row in session.read(tables.Table, "ORDER BY begin_snapshot"):
        schema = schemas.get(row.schema_id)
        above = stored_path(schema.path, schema.path_is_relative).under(data_path) if schema else data_path
        found[row.table_id] = stored_path(row.path, row.path_is_relative).under(above)
    return found
