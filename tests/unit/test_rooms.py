"""The house keeps its rooms: imports go one way, and one outside library has one owner."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "dbt" / "adapters" / "ducklake"
PACKAGE = "dbt.adapters.ducklake"
# From the top down: a room may import those after it.
ROOMS = ("", "statements", "spark", "lake")
OWNERS = {
    "duckdb": "lake/backends",
    "sqlite3": "lake/backends",
    "psycopg": "lake/backends",
    "psycopg_pool": "lake/backends",
    "pyspark": "spark",
    "pyarrow": "spark",
    "sqlglot": "statements",
    "agate": "",
    "dbt": "",
}
MODULES = sorted(HOUSE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    first = path.relative_to(HOUSE).parts[0]
    return first if first in ROOMS else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_go_one_way(path: Path) -> None:
    allowed = ROOMS[ROOMS.index(room_of(path)) :]
    for name in imports(path):
        if not name.startswith(f"{PACKAGE}."):
            continue
        first = name.removeprefix(f"{PACKAGE}.").split(".")[0]
        room = first if first in ROOMS else ""
        assert room in allowed, f"{room_of(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_an_outside_library_has_one_owner(path: Path) -> None:
    folder = path.relative_to(HOUSE).parent.as_posix()
    for name in imports(path):
        if name.startswith(PACKAGE):
            continue
        owner = OWNERS.get(name.split(".")[0])
        if owner is not None:
            assert folder == (owner or ".") or (owner and folder == f"{owner}/translation"), (
                f"{path.relative_to(ROOT)} imports {name}, which belongs to {owner or 'the root'}"
            )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_metadata_tables_are_named_in_the_layout_only(path: Path) -> None:
    """Every access to a `ducklake_*` table goes through the layer that knows the layout, and only it knows tenants."""
    knows = {
        "spec/layout.py",
        "spec/shared.py",
        "spec/inlined.py",
        "spec/indexes.py",
        "metadata.py",
        "tenants.py",
        "protection.py",
    }
    if path.relative_to(HOUSE / "lake").as_posix() in knows if path.is_relative_to(HOUSE / "lake") else False:
        return
    strings = [
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    queries = [
        text for text in strings if any(word in text for word in ("FROM ducklake_", "INTO ducklake_", "catalog_id"))
    ]
    assert not queries


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_no_module_is_named_for_what_is_left_over(path: Path) -> None:
    assert path.stem not in {"utils", "helpers", "common", "constants", "util", "misc"}
