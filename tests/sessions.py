"""A session over one or more lakes in DuckDB files: statements in, rows out, and what the extension reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dbt.adapters.ducklake.lake import Lake, LakeDescription, connect
from dbt.adapters.ducklake.spark.query import fetched
from dbt.adapters.ducklake.spark.session import SparkHandle, SparkSettings
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.run import run
from dbt.adapters.ducklake.statements.session import LakeSession
from tests.judge import LAKE_VERSION, Judge


class Session:
    def __init__(self, folder: Path, lakes: Mapping[str, Lake], settings: SparkSettings) -> None:
        self.folder, self.lakes = folder, lakes
        self.warnings: list[str] = []
        first = next(iter(lakes))
        self.session = LakeSession(lakes, first, "main", SparkHandle(settings), warn=self.warnings.append)

    def outcome(self, *statements: str) -> Outcome:
        """Run statements and return the outcome of the last one."""
        for sql in statements:
            found = run(self.session, sql)
        return found

    def run(self, *statements: str) -> Any:
        """Run statements and return the last one's rows, sorted, or the number of rows that it wrote."""
        outcome = self.outcome(*statements)
        if outcome.listing is not None:
            return list(outcome.listing.rows)
        if outcome.rows is None:
            return outcome.rows_affected
        with self.session.spark.job("fetch"):
            return sorted(fetched(outcome.rows), key=repr)

    def configure(self, **settings: str) -> None:
        """Change settings of Spark; dots are written as two underscores."""
        for key, value in settings.items():
            self.run(f"SET {key.replace('__', '.')} = {value}")

    @contextmanager
    def judge(self) -> Iterator[Judge]:
        """The extension with all lakes attached under their names, and nothing cached of them."""
        with Judge.of_this_process().attached(self.metadata(next(iter(self.lakes))), next(iter(self.lakes))) as judge:
            first, *others = self.lakes
            with ExitStack() as stack:
                for name in others:
                    stack.enter_context(judge.attached(self.metadata(name), name))
                judge.run(f"USE {first}")
                yield judge

    def metadata(self, lake: str) -> str:
        return f"duckdb:{self.folder}/{lake}.ducklake"

    def judged(self, sql: str) -> list[tuple[Any, ...]]:
        with self.judge() as judge:
            return judge.rows(sql)

    def files(self) -> set[str]:
        """The names of all data files of all lakes."""
        return {path.name for path in self.folder.rglob("*.parquet")}

    def close(self) -> None:
        self.session.renew()
        self.session.spark.close()
        for lake in self.lakes.values():
            lake.close()


@contextmanager
def session_over(
    folder: Path, settings: SparkSettings, names: Sequence[str] = ("lake",), version: str = LAKE_VERSION
) -> Iterator[Session]:
    """A session over new lakes of these names, and of a version: the judge reads 1.0."""
    wanted = None if version == "any" else version
    lakes = {
        name: connect(LakeDescription(f"duckdb:{folder}/{name}.ducklake", ducklake_version=wanted)) for name in names
    }
    session = Session(folder, lakes, settings)
    try:
        yield session
    finally:
        session.close()
