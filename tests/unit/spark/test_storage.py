from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.storage import file_uri, spark_path


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/a b%c/f", "file:/a%20b%25c/f"),
        ("/ü\u00a0x/f", "file:/ü%C2%A0x/f"),
        ("/p'\"`#;:@&=+$,!~()/f", "file:/p'%22%60%23;:@&=+$,!~()/f"),
        ("/q[1]{a}*?^|<>\\/f", "file:/q%5B1%5D%7Ba%7D*%3F%5E%7C%3C%3E%5C/f"),
        ("/😀\u200b\x7f/f", "file:/😀\u200b%7F/f"),
        ("s3://bucket/a b/f", "s3a://bucket/a%20b/f"),
    ],
)
def test_a_path_is_spelled_as_sparks_hidden_column_spells_it(path: str, uri: str) -> None:
    assert file_uri(path) == uri


def test_object_stores_are_called_as_hadoop_calls_them() -> None:
    assert spark_path("s3://bucket/x") == "s3a://bucket/x"
    assert spark_path("/x") == "/x"
