"""One statement's transaction: rows become files, and files with all other changes one snapshot, or nothing is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dbt.adapters.ducklake.lake import (
    CommitOutcomeUnknown,
    DeletesToAdd,
    FileToAdd,
    Lake,
    LakeError,
    Snapshot,
    SnapshotId,
    SortField,
    Table,
    TableFiles,
    Transaction,
    View,
)
from dbt.adapters.ducklake.spark.delete import Removed, for_snapshot, remove_delete_files
from dbt.adapters.ducklake.spark.merge import Changed, Clause, change_rows, remove_placed
from dbt.adapters.ducklake.spark.query import Rows, Spark, sort_keys
from dbt.adapters.ducklake.spark.scan import Placed
from dbt.adapters.ducklake.spark.write import WriteSettings, remove_files, write_rows
from dbt.adapters.ducklake.statements.errors import NotAllowed
from dbt.adapters.ducklake.statements.reader import Name
from dbt.adapters.ducklake.statements.session import LakeName, LakeSession
from dbt.adapters.ducklake.statements.staged import change_columns, staged_for
from dbt.adapters.ducklake.statements.translation.from_duckdb import sort_key_for_spark


class Writing:
    """A transaction on one lake, and the files that were written for it."""

    def __init__(self, session: LakeSession, lake: Lake, base: Snapshot | None = None) -> None:
        self.session, self.lake = session, lake
        self.transaction: Transaction = lake.transaction(base)
        self.transaction.check_writable()
        self.files: list[FileToAdd] = []
        self.deletes: list[DeletesToAdd] = []
        # Delete files that were written anew during the commit, in their order.
        self._rewritten: list[DeletesToAdd] = []
        self.snapshot: SnapshotId | None = None
        self._staged: list[LakeName] = []

    def table(self, name: LakeName, asked: str, written: Name) -> Table:
        """The table of that name, with what is staged for it, which the commit brings with it."""
        table_named(self.transaction, name, asked, written)
        if changes := staged_for(self.session, name):
            change_columns(self.transaction, (name.schema, name.name), changes)
            self._staged.append(name)
        return self.transaction.table(name.schema, name.name)

    def add_rows(self, spark: Spark, rows: Rows, table: Table, settings: WriteSettings) -> None:
        """Write rows, which `as_table` made, and record them as new."""
        storage = self.session.storage(self.lake)
        keys = sort_keys(sorted_by(table.sort))
        files = write_rows(spark, storage, rows, table, settings, keys)
        self.files += files
        self.transaction.append(table, files)

    def change_rows(
        self, spark: Spark, changes: Rows, clauses: Sequence[Clause], placed: Placed, table: Table,
        settings: WriteSettings, is_pinned: bool, has_valid_text: bool,
    ) -> Changed:  # fmt: skip
        """Write what the clauses make of the changed rows, and record that the rows as they were are gone."""
        storage = self.session.storage(self.lake)
        keys = sort_keys(sorted_by(table.sort))
        done = change_rows(spark, storage, table, placed, changes, clauses, settings, keys, is_pinned,
                           has_valid_text)  # fmt: skip
        # First what has to be removed if the lake refuses the rest.
        self.files += done.added
        self.deletes += done.removed.deletes
        self.transaction.append(table, done.added)
        self._record(table, done.removed)
        return done

    def remove_rows(self, spark: Spark, gone: Rows, placed: Placed, table: Table) -> int:
        """Record that the rows whose places `gone` has are gone; how many they are."""
        removed = remove_placed(spark, self.session.storage(self.lake), table, placed, gone)
        self.deletes += removed.deletes
        self._record(table, removed)
        return removed.count

    def remove_all(self, table: Table) -> int:
        """Record that all rows that a table has are gone; how many they are. Not for files that `can_end` refuses."""
        files = self.transaction.base.files(table)
        self.transaction.delete(table, [], [file.id for file in files.data_files])
        self.transaction.end_inlined(table, files.inlined_rows)
        return row_count(files)

    def _record(self, table: Table, removed: Removed) -> None:
        self.transaction.delete(table, removed.deletes, removed.ended)
        self.transaction.end_inlined(table, removed.inlined)

    def remove_files(self) -> None:
        """Remove what was written: no commit will register it."""
        storage = self.session.storage(self.lake)
        remove_files(storage, self.files)
        remove_delete_files(storage, [*self.deletes, *self._rewritten])

    def commit(self) -> SnapshotId:
        snapshot = self.transaction.commit(self._for_snapshot)
        last = {delete.data_file_id: delete for delete in self._rewritten}
        old = [delete for delete in self.deletes if delete.data_file_id in last]
        old += [delete for delete in self._rewritten if delete is not last[delete.data_file_id]]
        try:
            remove_delete_files(self.session.storage(self.lake), old)
        except OSError as error:
            # The commit is done: whoever took this for its failure would run it twice.
            self.session.warn(f"A delete file that nothing needs could not be removed, and waits for cleaning: {error}")
        for name in self._staged:
            self.session.staged.pop(name.folded, None)
        return snapshot

    def _for_snapshot(self, snapshot: SnapshotId, delete: DeletesToAdd) -> DeletesToAdd:
        """A delete file for another snapshot than it was written for."""
        made = for_snapshot(self.session.storage(self.lake), snapshot, delete)
        self._rewritten.append(made)
        return made


@contextmanager
def writing(session: LakeSession, lake: Lake, base: Snapshot | None = None) -> Iterator[Writing]:
    """A transaction that commits at the end of the block.

    After an error nothing is left of it; only where the outcome of the commit is unknown, its files stay.
    """
    found = Writing(session, lake, base)
    try:
        yield found
        if found.transaction.changes:
            rows = sum(file.record_count for file in found.files)
            said = session.message(rows=rows if found.files else None, files=len(found.files) or None)
            found.transaction.say(said.author, said.message, said.extra_info)
    except BaseException:
        found.remove_files()
        raise
    try:
        found.snapshot = found.commit()
        for text in lake.take_warnings():
            session.warn(text)
    except CommitOutcomeUnknown:
        raise
    except LakeError:
        # Of anything else, such as an interrupt, it is not known whether it came before the commit or after.
        found.remove_files()
        raise


def commit_staged(session: LakeSession, name: LakeName) -> None:
    """Commit what is staged for a table by itself."""
    if staged_for(session, name):
        with writing(session, session.lake(name.lake)) as work:
            work.table(name, f"alter {name}", Name(name.parts))


def table_named(transaction: Transaction, name: LakeName, asked: str, written: Name) -> Table:
    """The table of that name; of a view it is said that it is one."""
    if isinstance(transaction.find(name.schema, name.name), View):
        raise NotAllowed(asked, f"{name} is a view", "Name a table.", written.place)
    return transaction.table(name.schema, name.name)


def sorted_by(fields: Sequence[SortField]) -> list[tuple[str, bool, bool]]:
    """Sort keys as (Spark expression, descending, NULLs first)."""
    return [(sort_key_for_spark(field.expression), field.descending, field.nulls_first) for field in fields]


def can_end(files: TableFiles) -> bool:
    """Whether files may end as a whole: DuckDB's change feed would tell once more of rows whose deletion the metadata
    tables hold."""
    return not any(files.inlined_deletes.values())


def row_count(files: TableFiles) -> int:
    """The rows of a table that are not deleted, by the counts that the metadata keep."""
    deleted = sum(file.delete_file.delete_count for file in files.data_files if file.delete_file is not None)
    inlined = sum(map(len, files.inlined_deletes.values()))
    return sum(file.record_count for file in files.data_files) - deleted - inlined + len(files.inlined_rows)
