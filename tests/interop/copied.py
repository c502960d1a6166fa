"""What the extension did to one lake, as descriptions with which our client does the same to another."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from dbt.adapters.ducklake.lake import (
    ColumnId,
    ColumnStatistics,
    DeletesToAdd,
    FileId,
    FileToAdd,
    MappedColumn,
    SnapshotId,
    Table,
)
from dbt.adapters.ducklake.lake.values import parse_bound
from tests.places import Place, Rows


def last_snapshot(place: Place) -> int:
    return max(int(row["snapshot_id"]) for row in place.tables()["ducklake_snapshot"])


def files_added(place: Place, table: Table) -> list[FileToAdd]:
    """The data files of the last snapshot, with their Parquet files copied to where `table` lies."""
    found = place.tables()
    new = [row for row in of_table(found["ducklake_data_file"], table) if is_last(place, row)]
    return [_file(place, found, row, table) for row in sorted(new, key=lambda row: int(row["data_file_id"]))]


def deletes_added(place: Place, table: Table) -> list[DeletesToAdd]:
    """The delete files that the last snapshot made."""
    found, last = place.tables(), last_snapshot(place)
    new = [
        row
        for row in of_table(found["ducklake_delete_file"], table)
        if number(row["partial_max"]) == last or (row["partial_max"] is None and is_last(place, row))
    ]
    return [_deletes(place, found, row, table) for row in sorted(new, key=lambda row: int(row["delete_file_id"]))]


def ended_files(place: Place, table: Table) -> list[FileId]:
    last = last_snapshot(place)
    rows = of_table(place.tables()["ducklake_data_file"], table)
    return [FileId(int(row["data_file_id"])) for row in rows if number(row["end_snapshot"]) == last]


def of_table(rows: Rows, table: Table) -> Rows:
    # A table that is made in the transaction has no id yet; it is the newest one there.
    id = table.id if table.id >= 0 else max(int(row["table_id"]) for row in rows)
    return [row for row in rows if int(row["table_id"]) == id]


def is_last(place: Place, row: dict[str, Any]) -> bool:
    return int(row["begin_snapshot"]) == last_snapshot(place)


def number(value: Any) -> int | None:
    return None if value is None else int(value)


def _copied(place: Place, path: str, table: Table) -> str:
    source = next(place.folder.rglob(Path(path).name))
    if Path(path).is_absolute():
        # A file outside the data path is registered by its full path, of which only the lake's folder may differ.
        return str(path).replace(str(place.folder), str(Path(table.location).parents[2]))
    target = Path(table.location) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return str(target)


def _file(place: Place, found: dict[str, Rows], row: dict[str, Any], table: Table) -> FileToAdd:
    file_id, types = int(row["data_file_id"]), {column.id: column.type for column in table.by_id().values()}
    columns = {}
    for stats in found["ducklake_file_column_stats"]:
        if int(stats["data_file_id"]) != file_id:
            continue
        column_id = ColumnId(int(stats["column_id"]))
        low, high = (
            None if stats[bound] is None else parse_bound(types[column_id], stats[bound])
            for bound in ("min_value", "max_value")
        )
        columns[column_id] = ColumnStatistics(
            value_count=int(stats["value_count"]),
            null_count=int(stats["null_count"]),
            minimum=low,
            maximum=high,
            contains_nan={"true": True, "false": False, "1": True, "0": False}.get(str(stats["contains_nan"]).lower()),
            size=int(stats["column_size_bytes"]),
            extra=stats["extra_stats"],
        )
    values = sorted(
        (int(value["partition_key_index"]), value["partition_value"])
        for value in found["ducklake_file_partition_value"]
        if int(value["data_file_id"]) == file_id
    )
    return FileToAdd(
        path=_copied(place, row["path"], table),
        record_count=int(row["record_count"]),
        size=int(row["file_size_bytes"]),
        footer_size=int(row["footer_size"]),
        columns=columns,
        partition_values=tuple(value for _, value in values) if row["partition_id"] is not None else None,
        mapping=_mapping(found, row["mapping_id"]),
        row_groups=number(row.get("row_group_count")),
    )


def _mapping(found: dict[str, Rows], mapping_id: Any) -> tuple[MappedColumn, ...] | None:
    if mapping_id is None:
        return None
    rows = [row for row in found["ducklake_name_mapping"] if int(row["mapping_id"]) == int(mapping_id)]

    def below(parent: int | None) -> tuple[MappedColumn, ...]:
        return tuple(
            MappedColumn(
                row["source_name"],
                ColumnId(int(row["target_field_id"])),
                below(int(row["column_id"])),
                str(row["is_partition"]).lower() in ("true", "1"),
            )
            for row in sorted(rows, key=lambda row: int(row["column_id"]))
            if number(row["parent_column"]) == parent
        )

    return below(None)


def _deletes(place: Place, found: dict[str, Rows], row: dict[str, Any], table: Table) -> DeletesToAdd:
    spans = None
    if row["partial_max"] is not None:
        spans = SnapshotId(int(row["begin_snapshot"])), SnapshotId(int(row["partial_max"]))
    older = None
    if spans is not None:
        scheduled = found["ducklake_files_scheduled_for_deletion"]
        older = FileId(max(int(old["data_file_id"]) for old in scheduled))
    return DeletesToAdd(
        data_file_id=FileId(int(row["data_file_id"])),
        path=_copied(place, row["path"], table),
        delete_count=int(row["delete_count"]),
        size=int(row["file_size_bytes"]),
        footer_size=int(row["footer_size"]),
        replaces=older,
        snapshots=spans,
        format=row["format"],
        row_groups=number(row.get("row_group_count")),
    )
