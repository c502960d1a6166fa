"""The table of versions in the guide says what the package says."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from dbt.adapters.ducklake.lake.description import VERSIONS
from dbt.adapters.ducklake.lake.migration import KNOWN_VERSIONS
from dbt.adapters.ducklake.lake.spec.layout import STANDARD

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def row(title: str) -> tuple[str, str]:
    text = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(title)} \| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE)
    assert found is not None, title
    return found[1].strip().strip("`"), found[2].strip()


def required(package: str) -> str:
    found = next(one for one in PROJECT["dependencies"] if re.match(rf"{package}[<>=]", one))
    return str(found).removeprefix(package)


def pinned(package: str, file: str = "constraints.txt") -> str:
    found = re.search(rf"^{package}==(\S+)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, package
    return found[1]


@pytest.mark.parametrize(
    ("title", "package"),
    [("DuckDB (`duckdb`)", "duckdb"), ("Spark (`pyspark`)", "pyspark"), ("dbt (`dbt-core`)", "dbt-core")],
)
def test_packages(title: str, package: str) -> None:
    supported, tested = row(title)
    assert supported == required(package)
    # CI runs with the judge's DuckDB, too.
    also = [pinned("duckdb", "tests/judge-requirements.txt")] if package == "duckdb" else []
    assert tested == ", ".join([pinned(package), *also])


def test_python() -> None:
    supported, tested = row("Python")
    assert supported == PROJECT["requires-python"]
    assert tested in supported
    assert sys.version_info >= tuple(map(int, tested.split(".")))


def test_formats() -> None:
    assert row("DuckLake, read and written")[0] == ", ".join(STANDARD)
    older, tested = row("DuckLake, brought to 1.0 or 1.1")
    assert older == ", ".join(KNOWN_VERSIONS[:-1])
    assert set(tested.split(", ")) <= set(KNOWN_VERSIONS)
    assert tuple(version for version in STANDARD if "dev" not in version) == VERSIONS
    fixtures = {path.name for path in (ROOT / "tests/fixtures/lakes-older").iterdir() if path.is_dir()}
    # That of 0.1 is made of that of 0.2, and 1.0 is on the way.
    assert fixtures | {"0.1", "1.0"} == set(tested.split(", "))
