"""Docs: the catalog, and descriptions that are kept in the lake."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, expected_references_catalog
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs,
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsCommentOnQuotedColumn,
)
from dbt.tests.util import AnyInteger, run_dbt

from dbt.adapters.ducklake.lake import LakeDescription

_NONE = {
    "has_stats": {
        "id": "has_stats",
        "label": "Has Stats?",
        "value": False,
        "description": "Indicates whether there are statistics for this table",
        "include": False,
    }
}


def of_table() -> dict[str, Any]:
    """The figures that the metadata have of every table."""
    said = {
        "row_count": ("Rows", "Rows at the newest snapshot"),
        "bytes": ("Bytes", "Bytes of its data files"),
        "files": ("Files", "Data files at the newest snapshot"),
        "snapshot": ("Snapshot", "The snapshot that last added rows"),
    }
    found = {
        name: {"id": name, "label": label, "value": AnyInteger(), "description": text, "include": True}
        for name, (label, text) in said.items()
    }
    has = {**_NONE["has_stats"], "value": True}
    return {"has_stats": has, **found}


class Types:
    """Spark's types, no owners, and figures of tables alone."""

    @pytest.fixture(scope="class")
    def profile_user(self) -> None:
        return None

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        # Snapshots come in a later version.
        return {}


class TestDocsGenerate(Types, BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return base_expected_catalog(
            project, role=None, id_type="bigint", text_type="string", time_type="timestamp", view_type="VIEW",
            table_type="BASE TABLE", model_stats=_NONE, seed_stats=of_table(),
        )  # fmt: skip


class TestDocsGenReferences(Types, BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return expected_references_catalog(
            project, role=None, id_type="bigint", text_type="string", time_type="timestamp", bigint_type="bigint",
            view_type="VIEW", table_type="BASE TABLE", model_stats=of_table(), seed_stats=of_table(),
            view_summary_stats=_NONE,
        )  # fmt: skip


class TestPersistDocs(BasePersistDocs):
    def _assert_has_view_comments(
        self, view_node: Any, has_node_comments: bool = True, has_column_comments: bool = True
    ) -> None:
        # A lake keeps comments on the columns of views from DuckLake 1.1 on.
        are_kept = LakeDescription("duckdb:any").wanted_version != "1.0"
        super()._assert_has_view_comments(view_node, has_node_comments, has_column_comments and are_kept)


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    pass


class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


class TestPersistDocsCommentOnQuotedColumn(BasePersistDocsCommentOnQuotedColumn):
    def _run_and_get(self) -> Any:
        return run_dbt(["docs", "generate"])
