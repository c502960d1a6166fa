from __future__ import annotations

from dbt.adapters.ducklake.lake.columns import scalar
from dbt.adapters.ducklake.spark.partition import PartitionKey, hive_folder


def test_folders_of_keys_of_one_kind() -> None:
    """As DuckDB names them: by the transform, then with the column, then with a number."""
    a, b = scalar("a", "date"), scalar("b", "date")
    given = [(a, "year"), (b, "year"), (b, "year"), (b, "year"), (a, "epoch_day"), (b, "epoch_day"), (a, "bucket(3)")]
    keys = [PartitionKey(place, column, transform) for place, (column, transform) in enumerate(given)]
    folders = hive_folder(keys, ["1", "2", "3", None, "-5", "6", "0"]).split("/")
    assert folders == [
        "year=1", "year_b=2", "year_b_2=3", "year_b_3=__HIVE_DEFAULT_PARTITION__", "epoch_day=-5", "epoch_day_b=6",
        "bucket=0", "",
    ]  # fmt: skip
