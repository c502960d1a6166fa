"""Changes of a table's columns that become part of the next statement that writes to it, or of nothing if it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import Column, Snapshot, Table, Transaction, find
from dbt.adapters.ducklake.statements.evolution import Difference, GoneField, NewField, OtherType, differences
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession

Path = tuple[str, ...]


@dataclass(frozen=True)
class ColumnChanges:
    """`added` are columns and fields, with the path of what they are added to; `retyped` are columns with the type that
    they shall have, of which fields that the type lacks stay."""

    added: tuple[tuple[Path, Column], ...] = ()
    removed: tuple[Path, ...] = ()
    retyped: tuple[tuple[Path, Column], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.retyped)

    def __add__(self, more: ColumnChanges) -> ColumnChanges:
        return ColumnChanges(self.added + more.added, self.removed + more.removed, self.retyped + more.retyped)


def stage(session: LakeSession, name: LakeName, changes: ColumnChanges) -> None:
    """Have the table seen with these changes by all statements of this session, and by nobody else until one of them
    writes to it."""
    if changes:
        session.staged[name.folded] = staged_for(session, name) + changes
        session.forget_plans()


def staged_for(session: LakeSession, name: LakeName) -> ColumnChanges:
    found = session.staged.get(name.folded)
    return found if isinstance(found, ColumnChanges) else ColumnChanges()


def table_as_staged(session: LakeSession, name: LakeName, snapshot: Snapshot, table: Table) -> Table:
    """The table with what is staged for it."""
    changes = staged_for(session, name)
    if not changes:
        return table
    draft = session.lake(name.lake).transaction(snapshot)
    change_columns(draft, (name.schema, name.name), changes)
    return draft.table(name.schema, name.name)


def change_columns(transaction: Transaction, at: tuple[str, str], changes: ColumnChanges) -> None:
    """Record the changes; what another commit has brought about already needs nothing."""
    for parent, column in changes.added:
        there = _at(transaction.table(*at), (*parent, column.name))
        if there is None:
            transaction.add_column(*at, column, parent)
        else:
            _retype(transaction, at, (*parent, there.name), there, column)
    for path, wanted in changes.retyped:
        there = _at(transaction.table(*at), path)
        if there is not None:
            _retype(transaction, at, path, there, wanted)
    for path in changes.removed:
        if _at(transaction.table(*at), path) is not None:
            transaction.drop_column(*at, path)


def _retype(transaction: Transaction, at: tuple[str, str], path: Path, there: Column, wanted: Column) -> None:
    for difference in differences(there, wanted, path):
        if not isinstance(difference, GoneField):
            follow(transaction, at, difference)


def follow(transaction: Transaction, at: tuple[str, str], difference: Difference) -> None:
    match difference:
        case NewField(path, field):
            transaction.add_column(*at, field, path[:-1])
        case GoneField(path):
            transaction.drop_column(*at, path)
        case OtherType(path, _, wanted):
            transaction.change_type(*at, path, wanted)


def _at(table: Table, path: Path) -> Column | None:
    columns: Sequence[Column] = table.columns
    found = None
    for name in path:
        found = find(columns, name)
        if found is None:
            return None
        columns = found.children
    return found
