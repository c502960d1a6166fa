"""How far the tests of random lakes go: a few seeds in `make test`, more where the slow tests run, and with
DBT_DUCKLAKE_TEST_SEEDS=all as many as they were ever tried with, which takes more than an hour."""

from __future__ import annotations

import os

import pytest

from tests.places import KINDS

ALL = os.environ.get("DBT_DUCKLAKE_TEST_SEEDS") == "all"


def on_each_kind(few: int, more: int, every: int) -> list[object]:
    """Each seed on every kind of database."""
    return [_parameter(kind, seed, few) for seed in range(every if ALL else more) for kind in KINDS]


def by_turns(few: int, more: int, every: int) -> list[object]:
    """Each seed on one kind of database."""
    return [_parameter(KINDS[seed % len(KINDS)], seed, few) for seed in range(every if ALL else more)]


def _parameter(kind: str, seed: int, few: int) -> object:
    return pytest.param(kind, seed, marks=[pytest.mark.slow] if seed >= few else [], id=f"{kind}-{seed}")
