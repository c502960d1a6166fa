"""Show what dbt built, as DuckDB's own ducklake extension reads it: `make demo` ends with this."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
LAKE = Path(os.environ.get("SHOP_LAKE", HERE / "shop.ducklake"))


def extension_file(name: str) -> Path:
    """The extension as its wheel from PyPI carries it; with a network, INSTALL ducklake does the same."""
    folder = Path(importlib.import_module(f"duckdb_extension_{name}").__path__[0]) / "extensions"
    return folder / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"


def written_by_dbt() -> dict[str, int]:
    """The rows that dbt says it wrote, by relation."""
    results = json.loads((HERE / "target" / "run_results.json").read_text())["results"]
    found = {}
    for result in results:
        kind, *_, name = result["unique_id"].split(".")
        if kind in ("model", "seed") and result["adapter_response"].get("files"):
            # dbt does not say of seeds where they are.
            relation = (result["relation_name"] or f"lake.main_raw.{name}").replace("`", "").removeprefix("lake.")
            found[relation] = result["adapter_response"]["rows_affected"]
    return found


def main() -> None:
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension_file('ducklake')}'")
    connection.execute(f"ATTACH 'ducklake:{LAKE}' AS shop (READ_ONLY)")
    connection.execute("SET TimeZone = 'UTC'")
    print("\nRows that dbt wrote, and rows that DuckDB reads:\n")
    for relation, rows in sorted(written_by_dbt().items()):
        (read,) = connection.execute(f"SELECT count(*) FROM shop.{relation}").fetchone() or (None,)
        print(f"  {relation:<28}{rows:>6}{read:>6}{'' if rows == read else '   differs'}")
    print("\nThe best customers, by DuckDB:\n")
    columns = "name, city, order_count, amount, segment"
    joined = "shop.main.customers JOIN shop.main.customer_segments USING (customer_id)"
    connection.sql(f"SELECT {columns} FROM {joined} ORDER BY amount DESC LIMIT 5").show()
    print("The last snapshots of the lake:\n")
    said = "snapshot_id, snapshot_time::TIMESTAMP(0) AS at, commit_message"
    connection.sql(f"SELECT {said} FROM shop.snapshots() ORDER BY snapshot_id DESC LIMIT 6").show(max_width=110)
    print("Open it yourself:\n")
    print(f"  duckdb -cmd \"INSTALL ducklake; ATTACH 'ducklake:{LAKE}' AS shop; USE shop\"\n")


if __name__ == "__main__":
    main()
