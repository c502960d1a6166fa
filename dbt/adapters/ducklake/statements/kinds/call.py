"""CALL ducklake_…: DuckLake's procedures by their own names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbt.adapters.ducklake.lake import CommitMessage, Lake
from dbt.adapters.ducklake.statements.arguments import Arguments, Literal, read_arguments
from dbt.adapters.ducklake.statements.errors import NotUnderstood
from dbt.adapters.ducklake.statements.outcome import Outcome
from dbt.adapters.ducklake.statements.reader import Reader
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


def run_call(session: LakeSession, statement: Call) -> Outcome:
    _PROCEDURES[statement.arguments.function](session, statement.arguments)
    return Outcome("CALL")


def _set_option(session: LakeSession, arguments: Arguments) -> None:
    given = arguments.taken("catalog", "option_name", "value", "table_name", "schema", required=3)
    lake, table, schema = _lake(session, given), _text(given.get("table_name")), _text(given.get("schema"))
    lake.set_option(str(given["option_name"]).lower(), given["value"], schema or (table and session.schema), table)


def _set_commit_message(session: LakeSession, arguments: Arguments) -> None:
    given = arguments.taken("catalog", "author", "commit_message", "extra_info", required=3)
    _lake(session, given)
    session.said = CommitMessage(_text(given["author"]), _text(given["commit_message"]), _text(given.get("extra_info")))


_PROCEDURES: dict[str, Callable[[LakeSession, Arguments], None]] = {
    "ducklake_set_option": _set_option,
    "ducklake_set_commit_message": _set_commit_message,
}


def _lake(session: LakeSession, given: dict[str, Literal]) -> Lake:
    return session.lake(str(given["catalog"]))


def _text(value: Literal) -> str | None:
    return None if value is None else str(value)
