"""A relation: lake, schema and name, each in backticks; or the files of a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import HasQuoting, RelationConfig, RelationType

from dbt.adapters.ducklake.lake import fold
from dbt.adapters.ducklake.sources import files_of
from dbt.adapters.ducklake.spark.schema import quoted


@dataclass(frozen=True, eq=False, repr=False)
class DuckLakeRelation(BaseRelation):
    quote_character: str = "`"
    # Spark takes a subquery without an alias, so that `ref(...) as name` stays possible where dbt limits rows.
    require_alias: bool = False
    # What a rebuild replaces within one snapshot, whatever kind it was before.
    replaceable_relations: frozenset[RelationType] = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    renameable_relations: frozenset[RelationType] = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )

    # The table function that reads a source's files, where it is no table of a lake.
    files: str | None = None

    @classmethod
    def create_from(cls, quoting: HasQuoting, relation_config: RelationConfig, **kwargs: Any) -> Self:
        if getattr(relation_config, "resource_type", None) == "source":
            kwargs["files"] = files_of(relation_config)
        return super().create_from(quoting, relation_config, **kwargs)

    def _is_exactish_match(self, field: Any, value: str) -> bool:
        """A lake compares names without case, so there is no other relation that could be meant."""
        return fold(self.path.get_part(field) or "") == fold(value)

    def render(self) -> str:
        return self.files or super().render()

    def quoted(self, identifier: str) -> str:
        return quoted(identifier)
