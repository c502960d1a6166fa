from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.incremental_config import check_incremental, checked_batch, statement_of

COLUMNS = ["id", "v", "at"]


def statement(strategy: str, **config: Any) -> str:
    return statement_of(strategy, {"name": "m", "config": config}, "t", "batch", COLUMNS)


def test_a_merge_by_a_key_updates_every_column_and_inserts_the_rest() -> None:
    assert statement("merge", unique_key="id").splitlines() == [
        "MERGE INTO t AS `DBT_INTERNAL_DEST`",
        "USING batch AS `DBT_INTERNAL_SOURCE`",
        "ON `DBT_INTERNAL_DEST`.`id` = `DBT_INTERNAL_SOURCE`.`id`",
        "WHEN MATCHED THEN UPDATE SET `id` = `DBT_INTERNAL_SOURCE`.`id`, `v` = `DBT_INTERNAL_SOURCE`.`v`, "
        "`at` = `DBT_INTERNAL_SOURCE`.`at`",
        "WHEN NOT MATCHED THEN INSERT (`id`, `v`, `at`) VALUES (`DBT_INTERNAL_SOURCE`.`id`, "
        "`DBT_INTERNAL_SOURCE`.`v`, `DBT_INTERNAL_SOURCE`.`at`)",
    ]


def test_a_merge_without_a_key_inserts_all() -> None:
    assert "WHEN MATCHED" not in statement("merge")
    assert "ON FALSE" in statement("merge")


def test_all_that_a_merge_may_say() -> None:
    said = statement(
        "merge", unique_key=["id", "at"], null_safe_keys=True, incremental_predicates=["t.at > 1"],
        merge_exclude_columns=["id", "at"], matched_condition="s.v > t.v", not_matched_condition="s.v > 0",
        not_matched_by_source_action="delete", not_matched_by_source_condition="t.v = 0", target_alias="t",
        source_alias="s",
    )  # fmt: skip
    assert said.splitlines()[2:] == [
        "ON `t`.`id` <=> `s`.`id` AND `t`.`at` <=> `s`.`at` AND (t.at > 1)",
        "WHEN MATCHED AND (s.v > t.v) THEN UPDATE SET `v` = `s`.`v`",
        "WHEN NOT MATCHED AND (s.v > 0) THEN INSERT (`id`, `v`, `at`) VALUES (`s`.`id`, `s`.`v`, `s`.`at`)",
        "WHEN NOT MATCHED BY SOURCE AND (t.v = 0) THEN delete",
    ]


def test_a_key_may_be_an_expression_or_several_columns() -> None:
    names = "`id`, `v`, `at`"
    expression = statement("delete+insert", unique_key="concat(id, '-', v), at")
    assert "REPLACE USING (concat(id, '-', v), `at`)\n" in expression
    for key in ("id, at", ["id", "at"], ['"id"', "`at`"]):
        assert f"({names}) REPLACE USING (`id`, `at`)" in statement("delete+insert", unique_key=key)
        assert "`DBT_INTERNAL_DEST`.`at` = `DBT_INTERNAL_SOURCE`.`at`" in statement("merge", unique_key=key)


@pytest.mark.parametrize(
    ("key", "name"),
    [("a/b", "a/b"), ("`a,b`", "a,b"), ("it's", "it's"), ('"x(1)"', "x(1)"), ("a + b", "a + b"), ("`c``d`", "c`d")],
)
def test_the_name_of_a_column_may_have_any_sign(key: str, name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    for given in (key, [key]):
        check_incremental({"name": "m", "config": {"materialized": "incremental", "unique_key": given}})
        model = {"name": "m", "config": {"unique_key": given}}
        merge = statement_of("merge", model, "t", "batch", [name, "v"])
        assert f"ON `DBT_INTERNAL_DEST`.{quoted} = `DBT_INTERNAL_SOURCE`.{quoted}\n" in merge
        assert f"REPLACE USING ({quoted})\n" in statement_of("delete+insert", model, "t", "batch", [name, "v"])


def test_a_batch_may_end_with_a_semicolon() -> None:
    times = {
        f"__dbt_internal_microbatch_event_time_{side}": f"2026-01-0{day}" for side, day in (("start", 1), ("end", 2))
    }
    config = {"incremental_strategy": "microbatch", "event_time": "at", **times}
    checked = checked_batch({"name": "m", "config": config}, "select ';' as at -- the end;\n;; -- more")
    assert checked.startswith("SELECT * FROM (select ';' as at -- the end;\n\n) WHERE")


def test_what_only_the_second_build_would_notice_is_refused_before_the_first() -> None:
    for config in ({"unique_key": "lower(id)"}, {"incremental_strategy": "delete+insert"}):
        with pytest.raises(DbtRuntimeError, match="`unique_key`"):
            check_incremental({"name": "m", "config": {"materialized": "incremental", **config}})
    check_incremental({"name": "m", "config": {"materialized": "incremental", "unique_key": "id"}})


def test_the_statements_of_the_other_strategies() -> None:
    names = "`id`, `v`, `at`"
    assert statement("append") == f"INSERT INTO t ({names})\nSELECT {names} FROM batch"
    assert statement("delete+insert", unique_key="id", incremental_predicates="v > 1") == (
        f"INSERT INTO t AS `DBT_INTERNAL_DEST` ({names}) REPLACE USING (`id`) WHERE (v > 1)\nSELECT {names} FROM batch"
    )
    assert statement("insert_overwrite", partitioned_by=["month(at)"]) == (
        f"INSERT OVERWRITE t PARTITION (month(at)) ({names})\nSELECT {names} FROM batch"
    )
    times = {
        f"__dbt_internal_microbatch_event_time_{side}": f"2026-01-0{day}" for side, day in (("start", 1), ("end", 2))
    }
    assert statement("microbatch", event_time="at", **times) == (
        f"INSERT INTO t ({names}) REPLACE WHERE at >= '2026-01-01' AND at < '2026-01-02'\nSELECT {names} FROM batch"
    )


@pytest.mark.parametrize(
    ("strategy", "config", "said"),
    [
        ("merge", {"unique_key": "nope"}, "`unique_key` nope, which is no column"),
        ("merge", {"merge_update_columns": ["v"], "merge_exclude_columns": ["id"]}, "Give one of them"),
        ("merge", {"skip_matched_step": True, "skip_not_matched_step": True}, "skips every step"),
        ("delete+insert", {}, "no `unique_key`"),
        ("microbatch", {}, "It needs `event_time`"),
        ("merge", {"unique_key": 3}, "`unique_key` is 3"),
    ],
)
def test_a_wrong_setting_is_named(strategy: str, config: dict[str, Any], said: str) -> None:
    with pytest.raises(DbtRuntimeError, match=said):
        statement(strategy, **config)
