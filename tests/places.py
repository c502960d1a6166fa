"""Places for lakes: a fresh metadata database of each kind, and its tables as they are, read past all code of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from dbt.adapters.ducklake.lake import Lake, LakeDescription, connect
from tests.judge import LAKE_VERSION, Judge

KINDS = ("duckdb", "sqlite", "postgres")
Rows = list[dict[str, Any]]


@dataclass
class Place:
    """Where one lake is, or will be."""

    kind: str
    folder: Path
    postgres: str | None = None
    schema: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def metadata(self) -> str:
        if self.kind == "postgres":
            return f"postgres:{self.postgres}"
        return f"{self.kind}:{self.metadata_file}"

    @property
    def metadata_file(self) -> Path:
        return self.folder / f"metadata.{self.kind}"

    @property
    def data_path(self) -> str:
        return f"{self.folder / 'data'}/"

    def describe(self, **more: Any) -> LakeDescription:
        given = {"data_path": self.data_path, "metadata_schema": self.schema, **self.options, **more}
        if "catalog" not in given and LAKE_VERSION != "any":
            given.setdefault("ducklake_version", LAKE_VERSION)
        return LakeDescription(self.metadata, **given)

    @property
    def target(self) -> dict[str, Any]:
        """What a target of a profile says of it."""
        given = {"metadata_schema": self.schema, "ducklake_version": LAKE_VERSION if LAKE_VERSION != "any" else None}
        return {"metadata": self.metadata, "data_path": self.data_path, **{k: v for k, v in given.items() if v}}

    def connect(self, **more: Any) -> Lake:
        return connect(self.describe(**more))

    def attach(self, judge: Judge, name: str = "lake", **more: Any) -> None:
        given = {"data_path": self.data_path, "metadata_schema": self.schema, **self.options, **more}
        judge.attach(self.metadata, name, **given)
        judge.run(f"USE {name}")

    @contextmanager
    def attached(self, **more: Any) -> Iterator[Judge]:
        """The extension with this lake attached, as `lake`, and nothing cached of it."""
        given = {"data_path": self.data_path, "metadata_schema": self.schema, **self.options, **more}
        with Judge.of_this_process().attached(self.metadata, **given) as judge:
            judge.run("USE lake")
            yield judge

    def judged(self, *statements: str, **more: Any) -> None:
        """Let the extension run statements on this lake."""
        with self.attached(**more) as judge:
            judge.run(*statements)

    def asked(self, sql: str, **more: Any) -> list[tuple[Any, ...]]:
        with self.attached(**more) as judge:
            return judge.rows(sql)

    def tables(self) -> dict[str, Rows]:
        """All rows of all tables of the metadata database."""
        return dict(self._read_tables())

    def execute(self, sql: str) -> None:
        """Change the metadata behind everybody's back; `ducklake_…` tables are found unqualified."""
        if self.kind == "sqlite":
            with sqlite3.connect(self.metadata_file) as file:
                file.execute(sql)
            file.close()
        elif self.kind == "duckdb":
            with duckdb.connect(str(self.metadata_file)) as opened:
                opened.execute(sql).fetchall()
        else:
            with psycopg.connect(str(self.postgres), options=f"-c search_path={self.schema or 'public'}") as server:
                server.execute(sql)

    def _read_tables(self) -> Iterator[tuple[str, Rows]]:
        if self.kind == "duckdb":
            with duckdb.connect(str(self.metadata_file), read_only=True) as opened:
                names = opened.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
                for (name,) in names:
                    yield name, _dicts(opened.execute(f'SELECT COLUMNS(*)::VARCHAR FROM "{name}"'))
        elif self.kind == "sqlite":
            file = sqlite3.connect(self.metadata_file)
            names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in names:
                yield name, _dicts(file.execute(f'SELECT * FROM "{name}"'))
            file.close()
        else:
            schema = self.schema or "public"
            with psycopg.connect(str(self.postgres), options=f"-c search_path={schema}") as server:
                names = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
                for (name,) in names:
                    yield name, _dicts(server.execute(f'SELECT * FROM "{name}"'))


def _dicts(cursor: Any) -> Rows:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
