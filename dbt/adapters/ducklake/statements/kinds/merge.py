"""MERGE INTO a table: one query over the rows of both sides says which clause changes which row, and to what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.ducklake.lake import Predicate, Table, fold
from dbt.adapters.ducklake.spark.merge import CLAUSE, NAMED, Clause
from dbt.adapters.ducklake.spark.pinned import pinned
from dbt.adapters.ducklake.spark.query import Rows as SparkRows
from dbt.adapters.ducklake.spark.query import (
    Spark,
    in_none,
    marked,
    numbered,
    query_columns,
    show_as,
    together,
)
from dbt.adapters.ducklake.spark.scan import FILE, POSITION, ROW_ID
from dbt.adapters.ducklake.spark.schema import string_literal
from dbt.adapters.ducklake.statements.again import again_where_others_were_faster
from dbt.adapters.ducklake.statements.changing import (
    TARGET_VIEW,
    Assignment,
    Change,
    Planned,
    Rows,
    Target,
    assigned_values,
    enclosed,
    read_assignments,
    read_target,
    read_value,
)
from dbt.adapters.ducklake.statements.conditions import Equality, Side, comparisons, equalities, matched_by
from dbt.adapters.ducklake.statements.defaults import default_of
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import primary_in, quoted
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading, rows_of
from dbt.adapters.ducklake.statements.session import LakeSession

MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"
# Views of the source and of its rows that match none, and columns that tell whether and which row of it one is.
_VIEW, _NEW, _MATCHED, _ROW = "_ducklake_source", "_ducklake_new", "_ducklake_matched", "_ducklake_source_row"


@dataclass(frozen=True)
class Source:
    """What is merged: `text` as it stands after USING, with its alias; `name` if it is a table or view.

    `whole` is its name with lake and schema if only this tells it from the table that is changed.
    """

    text: str
    alias: str | None
    name: Name | None = None
    whole: tuple[str, ...] = ()

    @property
    def own_name(self) -> str:
        return self.alias or (self.name.parts[-1] if self.name else _VIEW)

    @property
    def qualifier(self) -> str:
        return ".".join(map(quoted, self.whole or (self.own_name,)))

    @property
    def in_from(self) -> str:
        name = ".".join(map(quoted, self.name.parts)) if self.name else quoted(_VIEW)
        return f"{name} AS {quoted(self.alias)}" if self.alias else name


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
    if source.alias and target.alias and fold(source.alias) == fold(target.alias):
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
    name: Name | None
    alias: str | None
    if reader.accept("("):
        reader.text_until(")")
        reader.expect(")")
        name, alias = None, None
    else:
        named = reader.name()
        name, alias = named, None
        if reader.accept("("):
            reader.text_until(")")
            reader.expect(")")
            name, alias = None, named.parts[-1]
        elif reader.word() in ("VERSION", "TIMESTAMP", "FOR"):
            reader.accept("FOR")
            reader.at += 3
            primary_in(reader)
            name, alias = None, named.parts[-1]
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
    statement = _told_apart(session, statement)
    with session.spark.job(f"MERGE INTO {statement.target.name}") as spark:
        with reading(session, has_one_time=True) as found:
            change = Change(session, found, statement.target, "MERGE")
            given = rows_of(found, spark, f"SELECT * FROM {statement.source.text}")
        source = pinned(numbered(marked(given, _MATCHED), _ROW))
        merging = Merging(statement, change, spark, source, given.columns)
        one_sided = statement.has(NOT_MATCHED_BY_SOURCE)
        return change.commit(spark, merging.over_all_rows() if one_sided else merging.over_pairs())


def _told_apart(session: LakeSession, statement: Merge) -> Merge:
    """The statement with the whole names of both tables if their own names are equal."""
    target, source = statement.target, statement.source
    if fold(target.own_name) != fold(source.own_name):
        return statement
    wholes = [session.parts_of(one.name) if one.name and not one.alias else () for one in (target, source)]
    if not all(wholes) or tuple(map(fold, wholes[0])) == tuple(map(fold, wholes[1])):
        raise NotAllowed(
            f"merge into {target.name}", f"the table and its source are both called {source.own_name}",
            "Give one of them an alias.", target.name.place,
        )  # fmt: skip
    return replace(statement, target=replace(target, whole=wholes[0]), source=replace(source, whole=wholes[1]))


@dataclass(frozen=True)
class Merging:
    """One run of a merge. `given` are the source's own columns."""

    statement: Merge
    change: Change
    spark: Spark
    source: SparkRows
    given: Sequence[str]

    def over_all_rows(self) -> Planned:
        """One outer join: rows of the table that no row of the source matches are changed too."""
        statement = self.statement
        self._where_matched([])
        self._check_sides()
        cases = {rows: self._first(rows) for rows in (MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE)}
        clause = (
            f"CASE WHEN {quoted(FILE)} IS NULL THEN {cases[NOT_MATCHED]} "
            f"WHEN {quoted(_MATCHED)} IS NULL THEN {cases[NOT_MATCHED_BY_SOURCE]} ELSE {cases[MATCHED]} END"
        )
        join = "FULL OUTER JOIN " if statement.has(NOT_MATCHED) else "LEFT OUTER JOIN "
        values = self._values(MATCHED) | self._values(NOT_MATCHED) | self._values(NOT_MATCHED_BY_SOURCE)
        rows = Rows(self._clauses(), f"{join}{self._joined}", values, clause, self._name, {len(join): _VIEW})
        return self.change.plan(self.spark, rows)

    def over_pairs(self) -> Planned:
        """The pairs of rows that match, by an inner join, for which Spark can hand a small source to every task; and
        of the source's rows those that are in no pair."""
        keys = self._keys()
        join = "INNER JOIN "
        values = {_ROW: f"{self.statement.source.qualifier}.{quoted(_ROW)}", **self._values(MATCHED)}
        behind = f"{join}{self._joined}"
        pairs = Rows(self._clauses(), behind, values, self._first(MATCHED), self._name, {len(join): _VIEW})
        planned = self.change.plan(self.spark, pairs, self._where_matched(keys))
        if not self.statement.has(NOT_MATCHED):
            return planned
        matched = pinned(planned.changes)
        show_as(in_none(self.source, matched, _ROW), _NEW)
        places = ", ".join(f"CAST(NULL AS BIGINT) AS {quoted(name)}" for name in (FILE, POSITION, ROW_ID))
        shown = "".join(f", {value} AS {quoted(name)}" for name, value in self._values(NOT_MATCHED).items())
        head = f"SELECT {places}, {self._first(NOT_MATCHED)} AS {quoted(CLAUSE)}, '' AS {quoted(NAMED)}{shown} FROM "
        sql = f"{head}{self.statement.source.in_from}"
        new = rows_of(self.change.found, self.spark, sql, {len(head): _NEW})
        return replace(planned, changes=together(matched, pinned(new)), is_pinned=True)

    def _where_matched(self, keys: Sequence[Equality]) -> tuple[Predicate, ...]:
        """Show the source to the queries that join it, and return what is true of the table's rows in a pair."""
        condition, table = self.statement.condition, self.change.table
        said = comparisons(self.spark, condition, self.change.side(), table, self._side(NOT_MATCHED))
        where, source = matched_by(self.spark, self.source, keys)
        show_as(source, _VIEW)
        return (*said, *where)

    def _check_sides(self) -> None:
        """The expressions of clauses of one side, over nothing else: beside the other side, whose columns are NULL
        there, a name of it would pass."""
        for rows, view in ((NOT_MATCHED, _VIEW), (NOT_MATCHED_BY_SOURCE, TARGET_VIEW)):
            whens = [when for when in self.statement.whens if when.rows == rows]
            values = [one.value for when in whens for one in when.assignments or ()]
            texts = [text for text in (*(when.condition for when in whens), *values) if text]
            if texts:
                show_as(self.change.placed(self.spark).rows, TARGET_VIEW)
                side = self._side(rows)
                head = f"SELECT {', '.join(enclosed(side.own(text)) for text in texts)} FROM "
                of_target = self.statement.target.in_from()
                sql = head + (self.statement.source.in_from if rows == NOT_MATCHED else of_target)
                query_columns(self.spark, bound(self.change.found, self.spark, sql, {len(head): view}))

    def _keys(self) -> list[Equality]:
        condition, table = self.statement.condition, self.change.table
        return equalities(condition, self.change.side(), self._side(NOT_MATCHED), table)

    @property
    def _joined(self) -> str:
        return f"{self.statement.source.in_from} ON {enclosed(self.statement.condition)}"

    @property
    def _name(self) -> str:
        """What names a row of the table in an error."""
        named = ", ', ', ".join(_named(self.statement.target, key.column.name) for key in self._keys())
        return f"concat({named})" if named else "'?'"

    def _side(self, rows: str) -> Side:
        """The side that such rows are of."""
        if rows != NOT_MATCHED:
            return self.change.side()
        source, session = self.statement.source, self.change.session
        if source.name is None or source.alias:
            return Side((source.own_name,), self.given, source.qualifier)
        return Side(session.parts_of(source.name), self.given, source.qualifier)

    def _meant(self, rows: str, text: str) -> str:
        """The text as it is meant where rows of one side alone are: a plain name is that side's column."""
        return text if rows == MATCHED else self._side(rows).own(text)

    def _first(self, rows: str) -> str:
        """The number of the first clause that a row satisfies, NULL where there is none."""
        of_rows = [(number, when.condition) for number, when in enumerate(self.statement.whens) if when.rows == rows]
        cases = [
            f"WHEN {enclosed(self._meant(rows, condition)) if condition else 'TRUE'} THEN {number}"
            for number, condition in of_rows
        ]
        return f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS INT)"

    def _clauses(self) -> tuple[Clause, ...]:
        return tuple(self._clause(number, when) for number, when in enumerate(self.statement.whens))

    def _clause(self, number: int, when: When) -> Clause:
        if when.kind == "delete":
            return Clause(when.kind)
        places = range(len(self.change.table.columns))
        unchanged = frozenset(places) - self._set(when).keys() if when.kind == "update" else frozenset[int]()
        return Clause(when.kind, tuple(f"{_value_name(place)}_{number}" for place in places), unchanged)

    def _values(self, rows: str) -> dict[str, str]:
        """The new values of every column in every clause for such rows, by the names that `_clauses` gives them."""
        return {
            f"{_value_name(place)}_{number}": f"CASE WHEN {quoted(CLAUSE)} = {number} THEN {text} END"
            for number, when in enumerate(self.statement.whens)
            if when.rows == rows and when.kind != "delete"
            for place, text in enumerate(self._new_row(when))
        }

    def _set(self, when: When) -> dict[int, str]:
        """The expressions of the columns that a clause sets, by their places."""
        target, table, asked = self.statement.target, self.change.table, f"merge into {self.statement.target.name}"
        if when.assignments is None:
            return _all_of_source(self.statement, table, self.given, asked)
        own = [replace(one, value=self._meant(when.rows, one.value) if one.value else None) for one in when.assignments]
        return assigned_values(table, target, own, asked)

    def _new_row(self, when: When) -> Iterator[str]:
        """The expression of each of the table's columns, in their order."""
        target, set_ = self.statement.target, self._set(when)
        for place, column in enumerate(self.change.table.columns):
            if place in set_:
                yield set_[place]
            else:
                yield target.column(column.name) if when.kind == "update" else default_of(column)


def _value_name(place: int) -> str:
    return f"_ducklake_{place}"


def _named(target: Target, column: str) -> str:
    return f"{string_literal(f'{column} = ')}, coalesce(CAST({target.column(column)} AS STRING), 'NULL')"


def _all_of_source(statement: Merge, table: Table, given: Sequence[str], asked: str) -> dict[int, str]:
    known = {fold(name): name for name in given}
    missing = [column.name for column in table.columns if fold(column.name) not in known]
    if missing:
        raise NotAllowed(
            asked, f"`*` takes every column from the source, which has no {missing[0]}", "Name the columns.",
            statement.target.name.place,
        )  # fmt: skip
    alias = statement.source.qualifier
    return {place: f"{alias}.{quoted(known[fold(column.name)])}" for place, column in enumerate(table.columns)}
