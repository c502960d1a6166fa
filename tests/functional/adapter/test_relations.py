"""Names, caches, kinds of relations and the schemas they are in."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.aliases import fixtures as aliases
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.empty.test_empty import BaseTestEmpty, BaseTestEmptyInlineSourceRef, BaseTestEmptySeedFlag
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.util import check_relations_equal, run_dbt

dbt_version = tuple(int(part) for part in version("dbt-core").split(".")[:2])

# Spark has no type `text`.
_LITERAL = aliases.MACROS__CAST_SQL.replace("::text", "")


class StringLiteral:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"cast.sql": _LITERAL, "expect_value.sql": aliases.MACROS__EXPECT_VALUE_SQL}


class TestAliases(StringLiteral, BaseAliases):
    pass


class TestAliasErrors(StringLiteral, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(StringLiteral, BaseSameAliasDifferentSchemas):
    pass


class TestSameAliasDifferentDatabases(StringLiteral, BaseSameAliasDifferentDatabases):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], lake_folder: Path) -> dict[str, Any]:
        return {
            **dbt_profile_target,
            "attach": [{"name": "second", "metadata": f"duckdb:{lake_folder}/second.ducklake"}],
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"alias": "duped_alias", "model_b": {"database": "second"}}}}


class TestCachingLowercaseModel(BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(BaseNoPopulateCache):
    pass


class TestTestEmpty(BaseTestEmpty):
    pass


class TestTestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


@pytest.mark.skipif(dbt_version < (1, 12), reason="dbt seed --empty came with dbt 1.12")
class TestTestEmptySeedFlag(BaseTestEmptySeedFlag):
    pass


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


class TestChangeRelationTypeValidator(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestSampleModeTest(BaseSampleModeTest):
    pass


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        check_relations_equal(project.adapter, ["seed", "dependent", "double_dependent", "super_dependent"])
        sql = Path("target/run/test/models/double_dependent.sql").read_text()
        assert sql.count("__dbt__cte__base as (") == 1
        assert sql.strip().startswith("create or replace view")


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        sql = Path("target/run/test/models/root_view.sql").read_text()
        assert sql.index("__dbt__cte__ephemeral_level_two as (") < sql.index("__dbt__cte__ephemeral as (")
        assert project.run_sql("select count(*) from root_view", fetch="one") == (2,)
