"""A relation: lake, schema and name, each in backticks."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType

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

    def quoted(self, identifier: str) -> str:
        return quoted(identifier)
