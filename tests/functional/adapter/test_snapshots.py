"""Snapshots: dbt's own suites."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseCloneNotPossible, BaseCloneSameSourceAndTarget
from dbt.tests.adapter.hooks.test_model_hooks import (
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.simple_snapshot import (
    fixtures,
    new_record_check_mode,
    new_record_dbt_valid_to_current,
    new_record_timestamp_mode,
    test_various_configs,
)
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import BaseSnapshotNewRecordDbtValidToCurrent
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import BaseSnapshotNewRecordTimestampMode
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)
from dbt.tests.util import check_relations_equal, run_dbt

from tests.functional.adapter.test_hooks import ModelHooks

# What the suites write in PostgreSQL's words, whose timestamps have no zone.
_IN_SPARK = {"::text": "::string", "::timestamp": "::timestamp_ntz", " TIMESTAMP": " TIMESTAMP_NTZ"}


def _in_spark(value: object) -> object:
    if isinstance(value, list):
        return [_in_spark(one) for one in value]
    if isinstance(value, str):
        for theirs, sparks in _IN_SPARK.items():
            value = value.replace(theirs, sparks)
    return value


# Their modules hold it as texts, each under names of its own.
for _module in (
    fixtures,
    new_record_check_mode,
    new_record_dbt_valid_to_current,
    new_record_timestamp_mode,
    test_various_configs,
):
    for _name, _value in list(vars(_module).items()):
        if isinstance(_value, str | list) and not _name.startswith("__"):
            setattr(_module, _name, _in_spark(_value))


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


class TestSnapshotNewRecordCheckMode(BaseSnapshotNewRecordCheckMode):
    pass


class TestSnapshotNewRecordDbtValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    pass


class TestSnapshotNewRecordTimestampMode(BaseSnapshotNewRecordTimestampMode):
    pass


class TestSnapshotEphemeralHardDeletes(BaseSnapshotEphemeralHardDeletes):
    pass


class TestSnapshotNewColumnTimestampStrategy(BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestSnapshotNewColumnSpecificCheckCols(BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestSnapshotNewColumnWithDeletes(BaseSnapshotNewColumnWithDeletes):
    pass


class TestSimpleSnapshot(BaseSimpleSnapshot):
    pass


class TestSnapshotCheck(BaseSnapshotCheck):
    pass


class TestSnapshotColumnNames(BaseSnapshotColumnNames):
    pass


class TestSnapshotColumnNamesFromDbtProject(BaseSnapshotColumnNamesFromDbtProject):
    pass


class TestSnapshotInvalidColumnNames(BaseSnapshotInvalidColumnNames):
    pass


class TestSnapshotDbtValidToCurrent(BaseSnapshotDbtValidToCurrent):
    """Its test reads rows without an order and takes PostgreSQL's for granted."""

    def test_valid_to_current(self, project: Any) -> None:
        for sql in ("create_seed_sql", "create_snapshot_expected_sql", "seed_insert_sql",
                    "populate_snapshot_expected_valid_to_current_sql"):  # fmt: skip
            project.run_sql(getattr(test_various_configs, sql))
        run_dbt(["snapshot"])
        current = datetime(2099, 12, 31)
        ends = "select test_valid_to from {schema}.snapshot_actual where id in (1, 10) order by id, test_valid_from"
        assert project.run_sql(ends, fetch="all") == [(current,), (current,)]
        project.run_sql(test_various_configs.invalidate_sql)
        project.run_sql(test_various_configs.update_with_current_sql)
        run_dbt(["snapshot"])
        assert project.run_sql(ends, fetch="all") == [(current,), (datetime(2016, 8, 20, 16, 44, 49),), (current,)]
        check_relations_equal(project.adapter, ["snapshot_actual", "snapshot_expected"])


class TestSnapshotMultiUniqueKey(BaseSnapshotMultiUniqueKey):
    pass


class TestPrePostModelHooksOnSnapshots(ModelHooks, BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(ModelHooks, BasePrePostSnapshotHooksInConfigKwargs):
    pass


class TestCloneNotPossible(BaseCloneNotPossible):
    pass


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    pass
