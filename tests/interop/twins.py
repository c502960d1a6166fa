"""Two lakes with the same past: what is done to one by us and to the other by the extension is compared."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from dbt.adapters.ducklake.lake.names import quoted
from tests.conftest import PlaceOf
from tests.interop.compared import RELATIONS, differences, read
from tests.interop.generated import Generator
from tests.judge import Judge
from tests.places import Place


@dataclass
class Twins:
    ours: Place
    theirs: Place

    def __post_init__(self) -> None:
        self._before = set(differences(self.ours.tables(), self.theirs.tables()))

    def differences(self) -> list[str]:
        """What differs in the metadata and did not when they were made: sizes of files depend on how DuckDB's threads
        met."""
        return [line for line in differences(self.ours.tables(), self.theirs.tables()) if line not in self._before]


def twins(seed: int, kind: str, steps: int, place_of: PlaceOf, without: tuple[str, ...] = ()) -> Twins:
    """Twins after random statements; `without` are steps of the generator, and types, that are left out."""
    return Twins(_made(seed, kind, steps, place_of, without), _made(seed, kind, steps, place_of, without))


def _made(seed: int, kind: str, steps: int, place_of: PlaceOf, without: tuple[str, ...]) -> Place:
    place = place_of(kind)
    place.options = {"data_inlining_row_limit": (0, 3, 10, 100)[seed % 4]}
    with place.attached() as judge:
        judge.run("SET threads = 1")
        generator = Generator(seed, judge, kind, without)
        try:
            generator.run(steps)
        except duckdb.FatalException:
            Judge.forget()
            raise
        judge.run("SET threads = 2")
    return place


def read_at(place: Place, versions: list[int]) -> dict[tuple[int, str], object]:
    """Every table at these snapshots as the extension reads it, or why it cannot: it goes by the bounds of today, which
    after a change of type may not be values of what a column was."""
    found: dict[tuple[int, str], object] = {}
    for version in versions:
        with place.attached(snapshot_version=version) as judge:
            for schema, name in judge.rows(RELATIONS):
                try:
                    found[version, f"{schema}.{name}"] = read(judge, f"lake.{quoted(schema)}.{quoted(name)}")
                except duckdb.InvalidInputException as error:
                    found[version, f"{schema}.{name}"] = str(error)
    return found
