"""ALTER TABLE and ALTER VIEW: one or several changes of a definition, in one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import Column, Snapshot, SortField, Table, Transaction, View
from dbt.adapters.ducklake.spark.query import count_where
from dbt.adapters.ducklake.statements.clauses import read_partitioning, read_properties, read_sorting
from dbt.adapters.ducklake.statements.defaults import declared_column, settled
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.evolution import differences
from dbt.adapters.ducklake.statements.names import quoted
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.resolve import bound, reading
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession
from dbt.adapters.ducklake.statements.staged import follow
from dbt.adapters.ducklake.statements.types import Asked, DeclaredColumn, read_column, read_default, read_type
from dbt.adapters.ducklake.statements.writing import table_named, writing

Path = tuple[str, ...]


@dataclass(frozen=True)
class AddColumns:
    columns: tuple[tuple[Path, DeclaredColumn], ...]


@dataclass(frozen=True)
class DropColumns:
    columns: tuple[Path, ...]
    if_exists: bool


@dataclass(frozen=True)
class RenameColumn:
    column: Path
    name: str


@dataclass(frozen=True)
class RenameTo:
    name: Name


@dataclass(frozen=True)
class ChangeType:
    column: Path
    type: Column


@dataclass(frozen=True)
class SetNullable:
    column: Path
    nullable: bool


@dataclass(frozen=True)
class SetDefault:
    column: Path
    default: Asked


@dataclass(frozen=True)
class CommentOnColumn:
    column: Path
    comment: str | None


@dataclass(frozen=True)
class SetPartitioning:
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SetSort:
    fields: tuple[SortField, ...]


@dataclass(frozen=True)
class SetOptions:
    options: tuple[tuple[str, str], ...]


Alteration = (
    AddColumns | DropColumns | RenameColumn | RenameTo | ChangeType | SetNullable | SetDefault | CommentOnColumn
    | SetPartitioning | SetSort | SetOptions
)  # fmt: skip


@dataclass(frozen=True)
class AlterTable:
    name: Name
    change: Alteration
    is_view: bool = False


def read_alter(reader: Reader) -> AlterTable:
    is_view = reader.accept("VIEW")
    if not is_view:
        reader.expect("TABLE")
    name = reader.name()
    if is_view:
        reader.expect("RENAME", "TO")
        statement = AlterTable(name, RenameTo(reader.name()), is_view=True)
    else:
        statement = AlterTable(name, _change(reader))
    reader.finish()
    return statement


def _change(reader: Reader) -> Alteration:
    for words, read in _CHANGES:
        if reader.accept(*words):
            return read(reader)
    raise reader.unexpected(f"ALTER TABLE takes {', '.join(' '.join(words) for words, _ in _CHANGES)}.")


def _add(reader: Reader) -> AddColumns:
    reader.accept("IF", "NOT", "EXISTS")

    def column() -> tuple[Path, DeclaredColumn]:
        parent: list[str] = []
        while reader.word(1) == ".":
            parent.append(reader.name_part())
            reader.expect(".")
        return tuple(parent), read_column(reader)

    return AddColumns(reader.in_parentheses(column) if reader.sees("(") else reader.many(column))


def _drop(reader: Reader) -> DropColumns:
    if_exists = reader.accept("IF", "EXISTS")

    def path() -> Path:
        return reader.name().parts

    return DropColumns(reader.in_parentheses(path) if reader.sees("(") else reader.many(path), if_exists)


def _rename_column(reader: Reader) -> RenameColumn:
    column = reader.name().parts
    reader.expect("TO")
    return RenameColumn(column, reader.name_part())


def _alter_column(reader: Reader) -> Alteration:
    column = reader.name().parts
    if reader.accept("TYPE") or reader.accept("SET", "DATA", "TYPE"):
        place = reader.place
        return ChangeType(column, read_type(reader.rest(), place))
    if reader.accept("SET", "NOT", "NULL"):
        return SetNullable(column, False)
    if reader.accept("DROP", "NOT", "NULL"):
        return SetNullable(column, True)
    if reader.accept("SET", "DEFAULT"):
        return SetDefault(column, read_default(reader, reader.rest()))
    if reader.accept("DROP", "DEFAULT"):
        return SetDefault(column, Asked("NULL"))
    if reader.accept("COMMENT"):
        return CommentOnColumn(column, reader.string())
    raise reader.unexpected("A column takes TYPE, SET and DROP NOT NULL, SET and DROP DEFAULT, COMMENT.")


_CHANGES: Sequence[tuple[tuple[str, ...], Callable[[Reader], Alteration]]] = (
    (("ADD", "COLUMNS"), _add),
    (("ADD", "COLUMN"), _add),
    (("DROP", "COLUMNS"), _drop),
    (("DROP", "COLUMN"), _drop),
    (("RENAME", "COLUMN"), _rename_column),
    (("RENAME", "TO"), lambda reader: RenameTo(reader.name())),
    (("ALTER", "COLUMN"), _alter_column),
    (("CHANGE", "COLUMN"), _alter_column),
    (("SET", "PARTITIONED", "BY"), lambda reader: SetPartitioning(read_partitioning(reader))),
    (("RESET", "PARTITIONED", "BY"), lambda reader: SetPartitioning(())),
    (("SET", "SORTED", "BY"), lambda reader: SetSort(read_sorting(reader))),
    (("RESET", "SORTED", "BY"), lambda reader: SetSort(())),
    (("SET", "TBLPROPERTIES"), lambda reader: SetOptions(tuple(read_properties(reader).items()))),
)


def run_alter(session: LakeSession, statement: AlterTable) -> Outcome:
    name = session.whole(statement.name)
    lake = session.lake(name.lake)
    code = "ALTER VIEW" if statement.is_view else "ALTER TABLE"
    if isinstance(statement.change, SetOptions):
        table = table_named(lake.transaction(), name, "alter", statement.name)
        for key, value in statement.change.options:
            lake.set_option(key, value, table.schema.name, table.name)
        return Outcome(code)
    base, has_nulls = _has_nulls(session, statement)
    # NULLs that come after the look at them are a conflict with this.
    with writing(session, lake, base) as found:
        if isinstance(statement.change, RenameTo):
            _rename(session, found.transaction, statement, statement.change, name)
        else:
            table_named(found.transaction, name, f"alter {statement.name}", statement.name)
            _apply(session, found.transaction, name, statement.change, has_nulls)
    return Outcome(code, snapshot=found.snapshot)


def _has_nulls(session: LakeSession, statement: AlterTable) -> tuple[Snapshot | None, bool]:
    """Whether a column that shall be NOT NULL has NULLs, and at which snapshot Spark looked."""
    change = statement.change
    if not isinstance(change, SetNullable) or change.nullable or len(change.column) > 1:
        return None, False
    query = f"SELECT {quoted(change.column[0])} FROM {'.'.join(map(quoted, statement.name.parts))}"
    with session.spark.job(f"NULLs of {statement.name}") as spark:
        with reading(session) as found:
            sql = bound(found, spark, query)
            base = found.of(session.whole(statement.name).lake)
        return base, count_where(spark, sql, f"{quoted(change.column[0])} IS NULL") > 0


def _rename(
    session: LakeSession, transaction: Transaction, statement: AlterTable, change: RenameTo, name: LakeName
) -> None:
    parts = change.name.parts
    new = session.whole(change.name) if len(parts) > 1 else LakeName(name.lake, name.schema, parts[0])
    if (new.lake, new.schema.lower()) != (name.lake, name.schema.lower()):
        raise NotAllowed(
            f"rename {name}", f"{new} is in another schema", "DuckLake renames within a schema: create it there anew.",
            change.name.place,
        )  # fmt: skip
    there = transaction.find(name.schema, name.name)
    if statement.is_view and isinstance(there, Table):
        raise NotAllowed("alter view", f"{name} is a table", "Use ALTER TABLE.", statement.name.place)
    if isinstance(there, View):
        transaction.rename_view(name.schema, name.name, new.name)
    else:
        transaction.rename_table(name.schema, name.name, new.name)


def _apply(session: LakeSession, transaction: Transaction, name: LakeName, change: Alteration, has_nulls: bool) -> None:
    at = name.schema, name.name
    match change:
        case AddColumns(columns):
            for parent, declared in columns:
                transaction.add_column(*at, declared_column(session, str(name), declared), parent)
        case DropColumns(columns, if_exists):
            for path in columns:
                if not (if_exists and _column_at(transaction.table(*at), path) is None):
                    transaction.drop_column(*at, path)
        case RenameColumn(path, new):
            transaction.rename_column(*at, path, new)
        case ChangeType(path, column):
            for difference in differences(transaction.table(*at).at(path), column, path):
                follow(transaction, at, difference)
        case SetNullable(path, nullable):
            transaction.set_nullable(*at, path, nullable, has_nulls)
        case SetDefault(path, default):
            column = transaction.table(*at).at(path)
            transaction.set_default(*at, path, settled(session, str(name), column, default))
        case CommentOnColumn(path, comment):
            transaction.comment_on_column(*at, path, comment)
        case SetPartitioning(fields):
            transaction.set_partitioning(*at, fields)
        case SetSort(sort):
            transaction.set_sort(*at, sort)


def _column_at(table: Table, path: Path) -> Column | None:
    columns: Sequence[Column] = table.columns
    found = None
    for part in path:
        found = next((column for column in columns if column.name.lower() == part.lower()), None)
        if found is None:
            return None
        columns = found.children
    return found
