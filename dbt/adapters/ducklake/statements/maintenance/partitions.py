"""Which partitions of a table a call is about: `region=EU`, `day(sold)=12, region=EU`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import DataFile, Table, TableFiles, fold
from dbt.adapters.ducklake.statements.errors import NotAllowed

_NULL = "null"


@dataclass(frozen=True)
class Partition:
    """Keys, as `partitioned_by` says them, with the texts that the metadata hold."""

    keys: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, text: str) -> Partition:
        pairs = [part.partition("=") for part in text.split(",")]
        if not all(key.strip() and equals for key, equals, _ in pairs):
            raise NotAllowed("name a partition", f"found {text!r}", "Write key=value, such as region=EU.")
        return cls(tuple((fold(key.strip()), value.strip()) for key, _, value in pairs))

    def chooser(self, table: Table, files: TableFiles) -> Callable[[DataFile], bool]:
        columns = table.by_id()
        specs = {
            spec_id: [
                _said(columns[field.column_id].name, field.transform) for field in spec if field.column_id in columns
            ]
            for spec_id, spec in files.partition_specs.items()
        }
        known = {key for spec in specs.values() for key in spec}
        if unknown := [key for key, _ in self.keys if key not in known]:
            there = ", ".join(sorted(known)) or "none"
            raise NotAllowed(
                f"compact a partition of {table}", f"there is no key {unknown[0]}", f"Its keys are: {there}."
            )

        def is_meant(file: DataFile) -> bool:
            spec = specs.get(file.partition_id or -1, [])
            found = dict(zip(spec, files.partition_values.get(file.id, ()), strict=False))
            return all(key in found and _text(found[key]) == value for key, value in self.keys)

        return is_meant


def _said(column: str, transform: str) -> str:
    return fold(column) if transform == "identity" else f"{fold(transform)}({fold(column)})"


def _text(value: str | None) -> str:
    return _NULL if value is None else value
