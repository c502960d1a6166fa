"""Hooks before and after models and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.hooks.test_model_hooks import (
    MODEL_POST_HOOK,
    MODEL_PRE_HOOK,
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks


class Data:
    @pytest.fixture(scope="class")
    def test_data_dir(self) -> Path:
        return Path(__file__).parent / "hooks_data"

    def context(self, project: Any, table: str, state: str) -> list[dict[str, Any]]:
        fields: tuple[str, ...] = (
            "test_state",
            "target_name",
            "target_schema",
            "target_type",
            "target_threads",
            "run_started_at",
        )
        fields = (*fields, "invocation_id", "thread_id")
        # Names in backticks; Spark takes what stands in double quotes for strings.
        query = f"select {', '.join(fields)} from {project.test_schema}.{table} where test_state = '{state}'"
        return [dict(zip(fields, row, strict=True)) for row in project.run_sql(query, fetch="all")]

    def assert_context(self, project: Any, found: dict[str, Any], state: str) -> None:
        expected = (state, "default", project.test_schema, "ducklake", 4)
        assert tuple(found.values())[:5] == expected
        assert all(tuple(found.values())[5:])


class ModelHooks(Data):
    def check_hooks(self, state: str, project: Any, host: str, count: int = 1) -> None:
        found = self.context(project, "on_model_hook", state)
        assert len(found) == count
        for one in found:
            self.assert_context(project, one, state)


class RunHooks(Data):
    def check_hooks(self, state: str, project: Any, host: str) -> None:
        (found,) = self.context(project, "on_run_hook", state)
        self.assert_context(project, found, state)


class Outside:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        # VACUUM is PostgreSQL's; what counts is a hook outside of the transaction.
        outside: dict[str, Any] = {"sql": "insert into {{ this.schema }}.on_model_hook (test_state) values ('outside')"}
        outside = {**outside, "transaction": False}
        return {"models": {"test": {"pre-hook": [MODEL_PRE_HOOK, outside], "post-hook": [outside, MODEL_POST_HOOK]}}}


class TestPrePostModelHooks(Outside, ModelHooks, BasePrePostModelHooks):
    def test_pre_and_post_run_hooks(self, project: Any, dbt_profile_target: Any) -> None:
        super().test_pre_and_post_run_hooks(project, dbt_profile_target)
        count = f"select count(*) from {project.test_schema}.on_model_hook where test_state = 'outside'"
        assert project.run_sql(count, fetch="one")[0] == 2


class TestHookRefs(ModelHooks, BaseHookRefs):
    pass


class TestPrePostModelHooksOnSeeds(ModelHooks, BasePrePostModelHooksOnSeeds):
    pass


class TestHooksRefsOnSeeds(ModelHooks, BaseHooksRefsOnSeeds):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(ModelHooks, BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(
    ModelHooks, BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    pass


class TestPrePostModelHooksInConfig(ModelHooks, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(Outside, ModelHooks, BasePrePostModelHooksInConfigWithCount):
    pass


class TestPrePostModelHooksInConfigKwargs(ModelHooks, BasePrePostModelHooksInConfigKwargs):
    pass


class TestDuplicateHooksInConfigs(ModelHooks, BaseDuplicateHooksInConfigs):
    pass


class TestPrePostRunHooks(RunHooks, BasePrePostRunHooks):
    pass


class TestAfterRunHooks(BaseAfterRunHooks):
    pass
