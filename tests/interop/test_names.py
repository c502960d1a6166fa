"""Statements over lakes in which everything has the same names. Run here and by DuckDB: equal rows, or both refuse."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import duckdb
import pytest

from dbt.adapters.ducklake.lake import LakeError
from dbt.adapters.ducklake.spark.errors import SparkRoomError
from dbt.adapters.ducklake.statements.errors import StatementError
from tests.conftest import spark_settings
from tests.judge import Judge
from tests.seeds import ALL
from tests.sessions import Session, session_over

# Tables and schemas, columns and fields, aliases and CTEs are all called t, s or main.
TABLES = {
    "lake.main.t": "cast(id % 3 as int) as v from range(0, 6, 1, 1)",
    "lake.main.s": "named_struct('id', cast(id + 1 as int), 'v', 2) as t from range(1, 5, 1, 1)",
    "lake.other.t": "1 as v, named_struct('id', cast(id as int), 'v', cast(id % 2 as int)) as s from range(2, 8, 1, 1)",
    "lake.other.main": "cast(id as int) as v from range(0, 4, 1, 1)",
    "far.main.t": "3 as v from range(3, 9, 1, 1)",
    "far.other.s": "named_struct('t', named_struct('id', 5), 'v', cast(id as int)) as main from range(0, 5, 1, 1)",
}
COLUMNS = {
    "lake.main.t": ("id", "v"),
    "lake.main.s": ("id", "t.id", "t.v"),
    "lake.other.t": ("id", "v", "s.id", "s.v"),
    "lake.other.main": ("id", "v"),
    "far.main.t": ("id", "v"),
    "far.other.s": ("id", "main.t.id", "main.v"),
}
ALIASES = ("t", "s", "main", "other", "x")


@dataclass
class Relation:
    text: str
    name: tuple[str, ...]
    columns: Sequence[str]


@dataclass
class Generator:
    random: random.Random
    lakes: tuple[str, ...] = ("lake", "far")
    ctes: dict[str, Sequence[str]] = field(default_factory=dict)

    def table(self) -> Relation:
        table = self.random.choice(sorted(table for table in TABLES if table.split(".")[0] in self.lakes))
        text = self.spelled(table)
        if self.random.random() < 0.3:
            alias = self.random.choice(ALIASES)
            return Relation(f"{text} AS {alias}", (alias,), COLUMNS[table])
        return Relation(text, tuple(table.split(".")), COLUMNS[table])

    def spelled(self, table: str) -> str:
        lake, schema, name = table.split(".")
        if lake == "far" or self.random.random() < 0.2:
            return table
        return name if schema == "main" and self.random.random() < 0.4 else f"{schema}.{name}"

    def relation(self, depth: int) -> Relation:
        chance = self.random.random()
        if self.ctes and chance < 0.2:
            name = self.random.choice(sorted(self.ctes))
            return Relation(name, (name,), self.ctes[name])
        if depth > 0 and chance < 0.35:
            alias, inner = self.random.choice(ALIASES), self.table()
            column = self.random.choice(inner.columns)
            return Relation(f"(SELECT id, {column} AS v FROM {inner.text}) AS {alias}", (alias,), ("id", "v"))
        return self.table()

    def sources(self, depth: int, count: int) -> tuple[str, list[Relation]]:
        found = [self.relation(depth)]
        text = found[0].text
        for _ in range(count - 1):
            found.append(self.relation(depth))
            text += f" JOIN {found[-1].text} ON {self.name([found])} = {self.name([found])}"
        return text, found

    def name(self, scopes: Sequence[Sequence[Relation]]) -> str:
        """A column, by as many of the names before it as chance wants; most of the time of the innermost query."""
        relations = scopes[-1] if self.random.random() < 0.6 else self.random.choice(scopes)
        relation = self.random.choice(relations)
        qualifier = relation.name[self.random.randint(0, len(relation.name)) :]
        return ".".join([*qualifier, self.random.choice(relation.columns)])

    def condition(self, scopes: Sequence[Sequence[Relation]], depth: int) -> str:
        chance = self.random.random()
        if depth == 0 or chance < 0.35:
            return f"{self.name(scopes)} {self.random.choice(['=', '=', '<', '>='])} {self.name(scopes)}"
        if chance < 0.45:
            return f"{self.condition(scopes, depth - 1)} AND {self.name(scopes)} > {self.random.randint(0, 3)}"
        text, inner = self.sources(depth - 1, self.random.choice([1, 1, 2]))
        of_inner = self.condition([*scopes[-1:], inner], 0)
        if chance < 0.75:
            no = "NOT " if self.random.random() < 0.3 else ""
            return f"{no}EXISTS (SELECT 1 FROM {text} WHERE {of_inner})"
        return f"{self.name(scopes)} IN (SELECT {self.name([inner])} FROM {text} WHERE {of_inner})"

    def query(self) -> str:
        head = ""
        if self.random.random() < 0.25:
            name, inner = self.random.choice(["t", "s", "main"]), self.table()
            head = f"WITH {name} AS (SELECT id, id + 1 AS v FROM {inner.text}) "
            self.ctes = {name: ("id", "v")}
        text, relations = self.sources(2, self.random.choice([1, 1, 2]))
        values = [f"{self.name([relations])} AS c{place}" for place in range(2)]
        if self.random.random() < 0.2:
            values.append(f"{self.value(relations)} AS c2")
        where = f" WHERE {self.condition([relations], 2)}" if self.random.random() < 0.85 else ""
        return f"{head}SELECT {', '.join(values)} FROM {text}{where}"

    def value(self, outer: Sequence[Relation]) -> str:
        """A query of one value that may name the columns of the query around it."""
        text, inner = self.sources(0, 1)
        return f"(SELECT max({self.name([inner])}) FROM {text} WHERE {self.condition([outer, inner], 0)})"

    def change(self) -> tuple[str, str]:
        """A statement that changes a table, and the table."""
        table = self.random.choice(["lake.main.t", "lake.other.t", "lake.other.main"])
        target = Relation(self.spelled(table), tuple(table.split(".")), ("id", "v"))
        if self.random.random() < 0.25:
            alias = self.random.choice(ALIASES)
            target = Relation(f"{target.text} AS {alias}", (alias,), ("id", "v"))
        chance = self.random.random()
        if chance < 0.4:
            return f"DELETE FROM {target.text} WHERE {self.condition([[target]], 2)}", table
        if chance < 0.7:
            where = self.condition([[target]], 2)
            return f"UPDATE {target.text} SET v = {self.value([target])} WHERE {where}", table
        source = self.relation(1)
        pair = [[target, source]]
        first = target.name[-2:] if len(target.name) > 1 else target.name
        # The extension takes one clause for rows that match.
        then = self.random.choice([f"UPDATE SET v = {self.name(pair)}", "DELETE"])
        return (
            f"MERGE INTO {target.text} USING {source.text} ON {'.'.join(first)}.id = {self.name([[source]])} "
            f"WHEN MATCHED AND {self.condition(pair, 1)} THEN {then} "
            f"WHEN NOT MATCHED THEN INSERT (id, v) VALUES ({self.name([[source]])}, 7)"
        ), table


Result = list[str] | None


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("names")
    with session_over(folder, spark_settings(tmp_path_factory), ("lake", "far")) as made:
        made.run("create schema lake.other", "create schema far.other", *map(rebuilt, TABLES))
        yield made


def rebuilt(table: str) -> str:
    return f"create or replace table {table} as select cast(id as int) as id, {TABLES[table]}"


def shown(rows: Sequence[object]) -> list[str]:
    return sorted(map(repr, rows))


def ours(session: Session, *statements: str) -> Result:
    """The last statement's rows; None if one of them is refused."""
    try:
        return shown(session.run(*statements))
    except (LakeError, SparkRoomError, StatementError):
        return None


def judged(judge: Judge, *statements: str) -> Result:
    """The same by the extension, which leaves the lake as it was."""
    judge.run("BEGIN")
    try:
        judge.run(*statements[:-1])
        return shown(judge.rows(statements[-1]))
    except duckdb.Error:
        return None
    finally:
        judge.run("ROLLBACK")


def check(statements: Sequence[str], found: Sequence[Result], expected: Sequence[Result], least: int) -> None:
    pairs = list(zip(statements, found, expected, strict=True))
    assert [pair for pair in pairs if pair[1] != pair[2]] == []
    # Most are no refusals, and have rows.
    assert sum(bool(rows) for rows in found) >= least


def test_queries(session: Session) -> None:
    count = 3000 if ALL else 400
    queries = [Generator(random.Random(seed)).query() for seed in range(count)]
    found = [ours(session, sql) for sql in queries]
    with session.judge() as judge:
        check(queries, found, [judged(judge, sql) for sql in queries], count // 3)


def test_changes(session: Session) -> None:
    count = 400 if ALL else 60
    changes = [Generator(random.Random(seed)).change() for seed in range(count)]
    found = []
    for sql, table in changes:
        found.append(ours(session, sql, f"SELECT id, v FROM {table}"))
        session.run(rebuilt(table))
    with session.judge() as judge:
        expected = [judged(judge, sql, f"SELECT id, v FROM {table}") for sql, table in changes]
    check([sql for sql, _ in changes], found, expected, count // 3)


def test_stored_views(session: Session) -> None:
    """A view is read by both as its query is; of two lakes a view is for Spark alone, so there is one here."""
    count = 400 if ALL else 60
    queries = [Generator(random.Random(seed), lakes=("lake",)).query() for seed in range(count)]
    found = [ours(session, f"CREATE VIEW v{at} AS {sql}", f"SELECT * FROM v{at}") for at, sql in enumerate(queries)]
    with session.judge() as judge:
        check(queries, found, [judged(judge, sql) for sql in queries], count // 3)
        read = [None if rows is None else judged(judge, f"SELECT * FROM v{at}") for at, rows in enumerate(found)]
        check(queries, read, found, count // 3)
