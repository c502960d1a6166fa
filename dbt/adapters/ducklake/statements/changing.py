"""What UPDATE, DELETE and MERGE share: their table with an alias, the new values of its columns, and their run.

Each becomes one query over the table's rows with their places. The user's expressions stand in it letter for letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dbt.adapters.ducklake.lake import Predicate, Table, TableFiles, fold
from dbt.adapters.ducklake.spark.merge import CLAUSE, NAMED, Clause
from dbt.adapters.ducklake.spark.query import Rows as SparkRows
from dbt.adapters.ducklake.spark.query import Spark, show_as
from dbt.adapters.ducklake.spark.scan import FILE, POSITION, ROW_ID, Placed, scan_placed
from dbt.adapters.ducklake.spark.write import WriteSettings
from dbt.adapters.ducklake.statements.again import again_where_others_were_faster
from dbt.adapters.ducklake.statements.conditions import Side, comparisons
from dbt.adapters.ducklake.statements.defaults import default_of
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.names import quoted
from dbt.adapters.ducklake.statements.outcome import Outcome, changed_rows
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import Reading, reading, rows_of
from dbt.adapters.ducklake.statements.session import LakeSession
from dbt.adapters.ducklake.statements.staged import table_as_staged
from dbt.adapters.ducklake.statements.writing import Writing, table_named, writing

TARGET_VIEW = "_ducklake_target"
PLACES = ", ".join(quoted(name) for name in (FILE, POSITION, ROW_ID))


@dataclass(frozen=True)
class Target:
    """The table that is changed. `text` is its name as it was written, `whole` the name with lake and schema if only
    this tells the table from another one in the statement."""

    name: Name
    text: str
    alias: str | None = None
    whole: tuple[str, ...] = ()

    @property
    def own_name(self) -> str:
        return self.alias or self.name.parts[-1]

    @property
    def qualifier(self) -> str:
        return ".".join(map(quoted, self.whole or (self.own_name,)))

    def in_from(self) -> str:
        return f"{self.text} AS {quoted(self.alias)}" if self.alias else self.text

    def column(self, name: str) -> str:
        return f"{self.qualifier}.{quoted(name)}"


@dataclass(frozen=True)
class Assignment:
    """`path` is a column, and the fields in it; `value` is Spark's SQL, None for DEFAULT."""

    path: Name
    value: str | None


def read_target(reader: Reader, *before: str) -> Target:
    """A table's name and alias; `before` are the words that may come next and are no alias."""
    start = reader.at
    name = reader.name()
    text = reader.between(start, reader.at)
    if reader.accept("AS"):
        return Target(name, text, reader.name_part())
    has_alias = not reader.is_done and reader.word() not in before
    return Target(name, text, reader.name_part() if has_alias else None)


def read_assignments(reader: Reader, *before: str) -> tuple[Assignment, ...]:
    """`column = value, ...` up to one of the words."""

    def one() -> Assignment:
        path = reader.name()
        reader.expect("=")
        return Assignment(path, read_value(reader, *before))

    return reader.many(one)


def read_where(reader: Reader) -> str | None:
    """The condition up to the end of the statement; None where there is none."""
    if not reader.accept("WHERE"):
        reader.finish()
        return None
    condition = reader.rest()
    if not condition:
        raise reader.unexpected("After WHERE a condition should stand.")
    return condition


def read_value(reader: Reader, *before: str) -> str | None:
    text = reader.text_until(",", *before)
    if not text:
        raise reader.unexpected("Here a value should stand.")
    return None if text.upper() == "DEFAULT" else text


def enclosed(text: str) -> str:
    """The user's text as one operand; it may end in a comment."""
    return f"({text}\n)"


def column_of(table: Table, target: Target, path: Name, asked: str) -> int:
    """The place of the column that an assignment names, with the table's name or alias before it or not."""
    parts = [fold(part) for part in path.parts]
    whole = [fold(part) for part in target.name.parts]
    places = {fold(column.name): place for place, column in enumerate(table.columns)}
    for lead in (*(whole[at:] for at in range(len(whole))), [fold(target.own_name)]):
        if parts[: len(lead)] == lead and parts[len(lead) : len(lead) + 1] and parts[len(lead)] in places:
            parts = parts[len(lead) :]
            break
    if parts[0] not in places:
        there = ", ".join(column.name for column in table.columns)
        raise NotAllowed(asked, f"there is no column {path}", f"Its columns are: {there}.", path.place)
    if len(parts) > 1:
        raise NotAllowed(
            asked, f"{path} is a field of column {table.columns[places[parts[0]]].name}",
            "Set the whole column, such as with named_struct(...).", path.place,
        )  # fmt: skip
    return places[parts[0]]


def assigned_values(table: Table, target: Target, assignments: Sequence[Assignment], asked: str) -> dict[int, str]:
    """The expressions of the columns that are set, by their places."""
    found: dict[int, str] = {}
    for one in assignments:
        place = column_of(table, target, one.path, asked)
        if place in found:
            raise NotAllowed(asked, f"column {one.path} is set twice", "Set it once.", one.path.place)
        found[place] = enclosed(one.value) if one.value is not None else default_of(table.columns[place])
    return found


@dataclass(frozen=True)
class Rows:
    """The query of the rows that a statement changes, in parts: which clause changes a row, what names the row in an
    error, the expressions by the names of their columns, and what comes behind the table's name. `views` are those of
    the caller's own making, by where in it the names stand that they replace."""

    clauses: tuple[Clause, ...]
    behind: str
    values: Mapping[str, str]
    clause: str = "0"
    named: str = "''"
    views: Mapping[int, str] = field(default_factory=dict)

    def query(self, target: Target) -> tuple[str, dict[int, str]]:
        """Its text, and the views in it by where the names stand."""
        shown = "".join(f", {value} AS {quoted(name)}" for name, value in self.values.items())
        head = f"SELECT {PLACES}, {self.clause} AS {quoted(CLAUSE)}, {self.named} AS {quoted(NAMED)}{shown} FROM "
        before = f"{head}{target.in_from()} "
        own = {len(before) + at: view for at, view in self.views.items()}
        return before + self.behind, {len(head): TARGET_VIEW, **own}


def changed(
    session: LakeSession,
    code: str,
    target: Target,
    condition: str | None,
    kind: str,
    values: Callable[[Table], Mapping[int, str]],
) -> Outcome:
    """Run a statement with one clause for all rows that its condition finds; `values` are those of columns that it
    sets, by their places."""
    behind = f"WHERE {enclosed(condition)}" if condition else ""

    def once() -> Outcome:
        with session.spark.job(f"{code} {target.name}") as spark:
            with reading(session) as found:
                change = Change(session, found, target, code)
                where = comparisons(spark, condition, change.side(), change.table)
                change.files(where)
            # Behind the block: a metadata file is not held while Spark plans.
            planned = change.plan(spark, of_one_clause(target, change.table, kind, behind, values(change.table)), where)
            return change.commit(spark, planned)

    return again_where_others_were_faster(session, target.name, once)


def of_one_clause(target: Target, table: Table, kind: str, behind: str, values: Mapping[int, str]) -> Rows:
    if kind == "delete":
        return Rows((Clause(kind),), behind, {})
    names = tuple(f"_ducklake_0_{place}" for place in range(len(table.columns)))
    shown = [values.get(place, target.column(column.name)) for place, column in enumerate(table.columns)]
    unchanged = frozenset(range(len(table.columns))) - values.keys()
    return Rows((Clause(kind, names, unchanged),), behind, dict(zip(names, shown, strict=True)))


@dataclass(frozen=True)
class Planned:
    clauses: tuple[Clause, ...]
    placed: Placed
    changes: SparkRows
    settings: WriteSettings
    # What is true of all rows of the table that matter here.
    where: tuple[Predicate, ...] = ()
    is_pinned: bool = False


class Change:
    """One run of a statement that changes rows, on the snapshot that its lake has now."""

    def __init__(self, session: LakeSession, found: Reading, target: Target, code: str) -> None:
        self.session, self.found, self.target, self.code = session, found, target, code
        self.name = name = session.whole(target.name)
        self.lake = session.lake(name.lake)
        self.base = found.of(name.lake)
        transaction = self.lake.transaction(self.base)
        transaction.check_writable()
        self.asked = f"{code.lower()} {target.name}"
        # As it is at the snapshot, and with what is staged for it.
        self._committed = table_named(transaction, name, self.asked, target.name)
        self.table = table_as_staged(session, name, self.base, self._committed)

    def plan(self, spark: Spark, rows: Rows, where: Sequence[Predicate] = ()) -> Planned:
        """`where` says in which files rows can be that the statement changes. No row is computed yet."""
        placed = self.placed(spark, where)
        show_as(placed.rows, TARGET_VIEW)
        sql, own = rows.query(self.target)
        changes = rows_of(self.found, spark, sql, own)
        return Planned(rows.clauses, placed, changes, WriteSettings.of(self.lake.options(), self.table), tuple(where))

    def side(self) -> Side:
        """The table as a condition names it."""
        name = (self.target.alias,) if self.target.alias else self.session.parts_of(self.target.name)
        return Side(name, [column.name for column in self.table.columns], self.target.qualifier)

    def placed(self, spark: Spark, where: Sequence[Predicate] = ()) -> Placed:
        storage = self.session.storage(self.lake)
        return scan_placed(spark, storage, self.table, self.files(where), self.base.id)

    def files(self, where: Sequence[Predicate] = ()) -> TableFiles:
        """The files that can hold rows for which `where` is true."""
        before, after = self._committed.by_id(), self.table.by_id()
        # Bounds are values of the type that a column has in the metadata.
        alike = {known for known in before.keys() & after.keys() if before[known].type == after[known].type}
        files = self.base.files(self._committed, [one for one in where if one.column_id in alike])
        return files if self.table == self._committed else files.under(self._committed, self.table, self.base.id)

    def look_in(self, work: Writing, where: Sequence[Predicate]) -> None:
        """A row that is new or changed here must not have come meanwhile from elsewhere too. Where the statement's
        query reads the table, any row of it may matter."""
        reads_it = self.found.may_have_read(self.name.lake, self.table)
        work.transaction.look_in(self.table, () if reads_it else where)

    def commit(self, spark: Spark, planned: Planned) -> Outcome:
        """Compute the changed rows, write them and commit."""
        with writing(self.session, self.lake, self.base) as work:
            work.table(self.name, self.asked, self.target.name)
            self.look_in(work, planned.where)
            done = work.change_rows(
                spark, planned.changes, planned.clauses, planned.placed, self.table, planned.settings,
                planned.is_pinned, self.found.has_valid_text,
            )  # fmt: skip
        return changed_rows(self.code, done, work.snapshot)
