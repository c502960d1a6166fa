"""What the benchmark asks of our client, in a process with one DuckDB or another.

Both are asked in processes that do nothing else: what the benchmark itself has in memory would slow one of them down.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import duckdb

from dbt.adapters.ducklake.lake import FileToAdd, Lake
from tests.places import Place
from tests.written import plain

COLUMNS = [f"c{number}" for number in range(10)]
_ROOT = Path(__file__).parents[2]
Ask = Callable[..., Any]


class Ours:
    """Work on a lake, each by the seconds that it takes."""

    def __init__(self) -> None:
        self._lakes: dict[str, Lake] = {}

    def version(self) -> str:
        return duckdb.__version__

    def read(self, place: Place, expected: int) -> float:
        started = time.perf_counter()
        with place.connect() as lake, lake.reading() as snapshot:
            found = len(snapshot.files(snapshot.table("main", "t0")).data_files)
        seconds = time.perf_counter() - started
        assert found == expected
        return seconds

    def append(self, place: Place, files: Sequence[FileToAdd]) -> float:
        """The commit alone: the files are written and described before."""
        lake = self._lake(place)
        transaction = lake.transaction()
        transaction.append(transaction.table("main", "t0"), files)
        started = time.perf_counter()
        transaction.commit()
        return time.perf_counter() - started

    def replace(self, place: Place) -> float:
        lake = self._lake(place)
        started = time.perf_counter()
        transaction = lake.transaction()
        transaction.replace_table("main", "ours", plain(*COLUMNS))
        transaction.commit()
        return time.perf_counter() - started

    def _lake(self, place: Place) -> Lake:
        if place.metadata + str(place.schema) not in self._lakes:
            self._lakes[place.metadata + str(place.schema)] = place.connect()
        return self._lakes[place.metadata + str(place.schema)]


@contextmanager
def client(duckdb_in: Path | None = None) -> Iterator[Ask]:
    """Our client in a process of its own, with the DuckDB of that folder or the installed one: its methods by name."""
    with tempfile.TemporaryDirectory() as folder, Listener(f"{folder}/socket", "AF_UNIX") as listener:
        command = [sys.executable, "-m", "tests.bench.client", f"{folder}/socket"]
        path = os.pathsep.join(str(one) for one in (duckdb_in, _ROOT) if one is not None)
        environment = {**os.environ, "PYTHONPATH": path}
        process = subprocess.Popen(command, env=environment)
        try:
            with listener.accept() as other:

                def ask(name: str, *arguments: Any) -> Any:
                    other.send((name, arguments))
                    return other.recv()

                yield ask
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    ours = Ours()
    with Client(sys.argv[1], "AF_UNIX") as asked:
        while True:
            name, arguments = asked.recv()
            asked.send(getattr(ours, name)(*arguments))


if __name__ == "__main__":
    main()
