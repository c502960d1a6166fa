"""MERGE INTO a table: one query over the rows of both sides says which clause changes which row, and to what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.ducklake.lake import Table, fold
from dbt.adapters.ducklake.spark.kept import kept
from dbt.adapters.ducklake.spark.merge import CLAUSE, Clause
from dbt.adapters.ducklake.spark.query import Rows as SparkRows
from dbt.adapters.ducklake.spark.query import marked, query_columns, run_query, show_as
from dbt.adapters.ducklake.spark.scan import FILE
from dbt.adapters.ducklake.spark.schema import string_literal
from dbt.adapters.ducklake.statements.again import again_where_others_were_faster
from dbt.adapters.ducklake.statements.changing import (
    TARGET_VIEW,
    Assignment,
    Change,
    Rows,
    Target,
    assigned_values,
    enclosed,
    read_assignments,
    read_target,
    read_value,
)
from dbt.adapters.ducklake.statements.conditions import Equality, Side, equalities, files_with_keys
from dbt.adapters.ducklake.statements.defaults import default_of
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import primary_in, quoted
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading
from dbt.adapters.ducklake.statements.session import LakeSession

MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"
_VIEW, _MATCHED = "_ducklake_source", "_ducklake_matched"


@dataclass(frozen=True)
class Source:
    """What is merged: `text` as it stands after USING, with its alias; `name` where it is a name and no subquery."""

    text: str
    alias: str
    name: str | None = None

    @property
    def in_from(self) -> str:
        return f"{self.name or quoted(_VIEW)} AS {quoted(self.alias)}"


@dataclass(frozen=True)
class When:
    """One WHEN clause. `assignments` None: every column from the source's column of its name (`*`)."""

    rows: str
    condition: str | None
    kind: str
    assignments: tuple[Assignment, ...] | None = ()


@dataclass(frozen=True)
class Merge:
    target: Target
    source: Source
    condition: str
    whens: tuple[When, ...]

    def has(self, rows: str) -> bool:
        return any(when.rows == rows for when in self.whens)


def read_merge(reader: Reader) -> Merge:
    if reader.sees("WITH", "SCHEMA"):
        raise reader.unexpected("MERGE changes no columns here. ALTER TABLE first, or use `on_schema_change`.")
    reader.expect("INTO")
    target = read_target(reader, "USING")
    reader.expect("USING")
    source = _read_source(reader)
    if fold(source.alias) == fold(target.alias):
        raise reader.unexpected(f"Table and source are both called {source.alias}. Give one of them an alias.")
    reader.expect("ON")
    condition = reader.text_until("WHEN")
    if not condition:
        raise reader.unexpected("After ON a condition should stand.")
    whens = []
    while reader.accept("WHEN"):
        whens.append(_read_when(reader))
    if not whens:
        raise reader.unexpected("At least one WHEN clause should stand here.")
    reader.finish()
    return Merge(target, source, condition, tuple(whens))


def _read_source(reader: Reader) -> Source:
    start = reader.at
    if reader.accept("("):
        reader.text_until(")")
        reader.expect(")")
        name, alias = None, _VIEW
    else:
        named = reader.name()
        name, alias = reader.between(start, reader.at), named.parts[-1]
        if reader.accept("("):
            reader.text_until(")")
            reader.expect(")")
            name = None
        elif reader.word() in ("VERSION", "TIMESTAMP", "FOR"):
            reader.accept("FOR")
            reader.at += 3
            primary_in(reader)
            name = None
    if reader.accept("AS") or (not reader.sees("ON") and not reader.is_done):
        alias = reader.name_part()
        if reader.sees("("):
            reader.in_parentheses(reader.name_part)
            name = None
    return Source(reader.between(start, reader.at), alias, name)


def _read_when(reader: Reader) -> When:
    rows = MATCHED if reader.accept("MATCHED") else NOT_MATCHED
    if rows == NOT_MATCHED:
        reader.expect("NOT", "MATCHED")
        if reader.accept("BY", "SOURCE"):
            rows = NOT_MATCHED_BY_SOURCE
        else:
            reader.accept("BY", "TARGET")
    condition = reader.text_until("THEN") if reader.accept("AND") else None
    reader.expect("THEN")
    if rows == NOT_MATCHED:
        reader.expect("INSERT")
        return When(rows, condition, "insert", _read_insert(reader))
    if reader.accept("DELETE"):
        return When(rows, condition, "delete")
    reader.expect("UPDATE")
    reader.expect("SET")
    if reader.accept("*"):
        if rows == NOT_MATCHED_BY_SOURCE:
            raise reader.unexpected("Rows without a source row have no values to take: name the columns.")
        return When(rows, condition, "update", None)
    return When(rows, condition, "update", read_assignments(reader, "WHEN"))


def _read_insert(reader: Reader) -> tuple[Assignment, ...] | None:
    if reader.accept("*"):
        return None
    place = reader.place
    paths = reader.in_parentheses(reader.name)
    reader.expect("VALUES")
    values = reader.in_parentheses(lambda: read_value(reader, ")"))
    if len(paths) != len(values):
        raise NotAllowed(
            "merge", f"{len(paths)} columns are named and {len(values)} values given", "Give one for each.", place
        )
    return tuple(Assignment(path, value) for path, value in zip(paths, values, strict=True))


def run_merge(session: LakeSession, statement: Merge) -> Outcome:
    return again_where_others_were_faster(session, statement.target.name, lambda: _run(session, statement))


def _run(session: LakeSession, statement: Merge) -> Outcome:
    target = statement.target
    with session.spark.job(f"MERGE INTO {target.name}") as spark:
        with reading(session) as found:
            change = Change(session, found, target, "MERGE")
            given = run_query(spark, bound(found, spark, f"SELECT * FROM {statement.source.text}"))
        with kept(marked(given, _MATCHED)) as source:
            show_as(source, _VIEW)
            keys = equalities(statement.condition, target, statement.source.alias, change.table, given.columns)
            rows = _rows(statement, change.table, given, keys)
            where = () if statement.has(NOT_MATCHED_BY_SOURCE) else files_with_keys(spark, source, keys)
            planned = change.plan(spark, rows, where)
            for of_one_side in _alone(statement, change.table, given.columns):
                # Beside the other side, whose columns are NULL there, a name of it would pass.
                query_columns(spark, bound(found, spark, *of_one_side))
            return change.commit(spark, planned)


def _sides(statement: Merge, table: Table, given: Sequence[str]) -> dict[str, Side]:
    """The side that the rows of a clause are of, where they are of one."""
    return {
        NOT_MATCHED: Side(statement.source.alias, given),
        NOT_MATCHED_BY_SOURCE: Side(statement.target.alias, [column.name for column in table.columns]),
    }


def _alone(statement: Merge, table: Table, given: Sequence[str]) -> Iterator[tuple[str, dict[int, str]]]:
    """For each side that has clauses of its own, their expressions as a query over nothing else."""
    for rows, side in _sides(statement, table, given).items():
        whens = [when for when in statement.whens if when.rows == rows]
        texts = [when.condition for when in whens] + [
            one.value for when in whens for one in when.assignments or () if one.value
        ]
        if shown := ", ".join(enclosed(side.own(text)) for text in texts if text):
            head = f"SELECT {shown} FROM "
            # The source's own text would be bound to nothing here: what it stands for has been made a view.
            view = _VIEW if rows == NOT_MATCHED else TARGET_VIEW
            yield f"{head}{quoted('_')} AS {quoted(side.alias)}", {len(head): view}


def _rows(statement: Merge, table: Table, source: SparkRows, keys: Sequence[Equality]) -> Rows:
    clauses, values = [], {}
    sides = _sides(statement, table, source.columns)
    for number, when in enumerate(statement.whens):
        names = []
        if when.kind != "delete":
            for place, text in enumerate(_values(statement, when, table, source.columns, sides)):
                name = f"_ducklake_{number}_{place}"
                values[name] = f"CASE WHEN {quoted(CLAUSE)} = {number} THEN {text} END"
                names.append(name)
        clauses.append(Clause(when.kind, tuple(names)))
    named = ", ', ', ".join(_named(statement.target, key.column.name) for key in keys)
    join = f"{_join(statement)} JOIN "
    behind = f"{join}{statement.source.in_from} ON {enclosed(statement.condition)}"
    return Rows(
        tuple(clauses), behind, values, _clause_case(statement, sides), f"concat({named})" if named else "'?'",
        {len(join): _VIEW},
    )  # fmt: skip


def _named(target: Target, column: str) -> str:
    return f"{string_literal(f'{column} = ')}, coalesce(CAST({target.column(column)} AS STRING), 'NULL')"


def _join(statement: Merge) -> str:
    keeps_target, keeps_source = statement.has(NOT_MATCHED_BY_SOURCE), statement.has(NOT_MATCHED)
    if keeps_target:
        return "FULL OUTER" if keeps_source else "LEFT OUTER"
    return "RIGHT OUTER" if keeps_source else "INNER"


def _clause_case(statement: Merge, sides: Mapping[str, Side]) -> str:
    """The number of the first clause that a row satisfies, NULL where there is none."""

    def first(rows: str) -> str:
        of_rows = [(number, when.condition) for number, when in enumerate(statement.whens) if when.rows == rows]
        cases = [
            f"WHEN {enclosed(_of_side(sides, rows, condition)) if condition else 'TRUE'} THEN {number}"
            for number, condition in of_rows
        ]
        return f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS INT)"

    return (
        f"CASE WHEN {quoted(FILE)} IS NULL THEN {first(NOT_MATCHED)} "
        f"WHEN {quoted(_MATCHED)} IS NULL THEN {first(NOT_MATCHED_BY_SOURCE)} ELSE {first(MATCHED)} END"
    )


def _of_side(sides: Mapping[str, Side], rows: str, text: str) -> str:
    """The text as it is meant where rows of one side alone are: a plain name is that side's column."""
    return sides[rows].own(text) if rows in sides else text


def _values(
    statement: Merge, when: When, table: Table, given: Sequence[str], sides: Mapping[str, Side]
) -> Iterator[str]:
    """The expression of each of the table's columns, in their order."""
    target, asked = statement.target, f"merge into {statement.target.name}"
    if when.assignments is None:
        set_ = _all_of_source(statement, table, given, asked)
    else:
        own = [
            replace(one, value=_of_side(sides, when.rows, one.value) if one.value else None) for one in when.assignments
        ]
        set_ = assigned_values(table, target, own, asked)
    for place, column in enumerate(table.columns):
        if place in set_:
            yield set_[place]
        else:
            yield target.column(column.name) if when.kind == "update" else default_of(column)


def _all_of_source(statement: Merge, table: Table, given: Sequence[str], asked: str) -> dict[int, str]:
    known = {fold(name): name for name in given}
    missing = [column.name for column in table.columns if fold(column.name) not in known]
    if missing:
        raise NotAllowed(
            asked, f"`*` takes every column from the source, which has no {missing[0]}", "Name the columns.",
            statement.target.name.place,
        )  # fmt: skip
    alias = quoted(statement.source.alias)
    return {place: f"{alias}.{quoted(known[fold(column.name)])}" for place, column in enumerate(table.columns)}
