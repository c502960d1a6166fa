"""CALL ducklake_…: DuckLake's procedures by their own names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import CommitMessage, Lake
from dbt.adapters.ducklake.statements.arguments import Arguments, Literal, read_arguments
from dbt.adapters.ducklake.statements.errors import NotUnderstood
from dbt.adapters.ducklake.statements.maintenance import procedures
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Name, Reader
from dbt.adapters.ducklake.statements.session import LakeSession


@dataclass(frozen=True)
class Call:
    arguments: Arguments


def read_call(reader: Reader) -> Call:
    place = reader.place
    name = reader.name().parts[-1].lower()
    if name not in _PROCEDURES:
        raise NotUnderstood(f"CALL {name}", f"There are: {', '.join(sorted(_PROCEDURES))}.", place)
    reader.expect("(")
    text = reader.text_until(")")
    reader.expect(")")
    reader.finish()
    return Call(read_arguments(name, text, place))


@dataclass(frozen=True)
class Checkpoint:
    """All of a lake's maintenance by its own options, in the order in which DuckDB does it."""

    lake: Name | None


def read_checkpoint(reader: Reader) -> Checkpoint:
    lake = None if reader.is_done else reader.name()
    reader.finish()
    return Checkpoint(lake)


def run_checkpoint(session: LakeSession, statement: Checkpoint) -> Outcome:
    place = statement.lake.place if statement.lake else None
    lake = str(statement.lake) if statement.lake else session.lake_name
    for name in _CHECKPOINT:
        _PROCEDURES[name](session, Arguments(name, place, (lake,), {}))
    return Outcome("CHECKPOINT")


def run_call(session: LakeSession, statement: Call) -> Outcome:
    return _PROCEDURES[statement.arguments.function](session, statement.arguments) or Outcome("CALL")


def _set_option(session: LakeSession, arguments: Arguments) -> None:
    given = arguments.taken("catalog", "option_name", "value", "table_name", "schema", required=3)
    lake, table, schema = _lake(session, given), _text(given.get("table_name")), _text(given.get("schema"))
    lake.set_option(str(given["option_name"]).lower(), given["value"], schema or (table and session.schema), table)


def _set_commit_message(session: LakeSession, arguments: Arguments) -> None:
    given = arguments.taken("catalog", "author", "commit_message", "extra_info", required=3)
    _lake(session, given)
    session.said = CommitMessage(_text(given["author"]), _text(given["commit_message"]), _text(given.get("extra_info")))


_PROCEDURES: dict[str, Callable[[LakeSession, Arguments], Outcome | None]] = {
    "ducklake_set_option": _set_option,
    "ducklake_set_commit_message": _set_commit_message,
    "ducklake_merge_adjacent_files": procedures.merge_adjacent_files,
    "ducklake_rewrite_data_files": procedures.rewrite_files,
    "ducklake_flush_inlined_data": procedures.flush_inlined_data,
    "ducklake_add_data_files": procedures.add_data_files,
    "ducklake_compact": procedures.compact_table,
    "ducklake_expire_snapshots": procedures.expire_snapshots,
    "ducklake_cleanup_old_files": procedures.cleanup_old_files,
    "ducklake_delete_orphaned_files": procedures.delete_orphaned_files,
}

_CHECKPOINT = (
    "ducklake_flush_inlined_data",
    "ducklake_expire_snapshots",
    "ducklake_merge_adjacent_files",
    "ducklake_rewrite_data_files",
    "ducklake_cleanup_old_files",
    "ducklake_delete_orphaned_files",
)


def _lake(session: LakeSession, given: dict[str, Literal]) -> Lake:
    return session.lake(str(given["catalog"]))


def _text(value: Literal) -> str | None:
    return None if value is None else str(value)
