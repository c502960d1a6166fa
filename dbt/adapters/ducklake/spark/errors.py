"""Everything this room raises.

SparkRoomError
├── JavaMissing            Spark needs a Java to run on, and there is none
├── SparkUnavailable       Spark did not start, or its Connect server cannot be reached
├── OtherSparkRunning      one process has one Spark application, and it was started with other settings
├── DataPathNotWritable    the place of a lake's files does not take any
├── UnsupportedType        a type that DuckLake or Spark does not have
├── UnreadableFile         a Parquet file that is not what the metadata say
├── NullsRefused           NULLs for NOT NULL columns
├── FilesNotFound          files that Spark wrote are not to be seen from here
├── FileNotAdded           a file that is not what its table takes
├── RowsDiffer             files hold other rows than the metadata say
├── MatchedTwice           one row of a table is changed by several rows of a source
├── FrameRefused           a Python model returned a table that Spark cannot take
├── WriteRefused           rows that cannot be written as the table wants them
├── JobFailed              Spark refused a query, or a job of it failed
├── RowsLost               rows that a statement had computed were lost with an executor
└── JobCancelled           the user stopped it
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


class SparkRoomError(Exception):
    """Base of every error of this room."""


class JavaMissing(SparkRoomError):
    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"Spark needs Java 17 or newer, and {found}. Install one (Debian and Ubuntu: apt-get install "
            "openjdk-17-jre-headless) or set JAVA_HOME; with `spark: {remote: sc://…}` none is needed here."
        )


class SparkUnavailable(SparkRoomError):
    def __init__(self, where: str, found: str) -> None:
        self.where, self.found = where, found
        super().__init__(f"Spark at {where} cannot be used: {found}. Check `spark` in the profile.")


class OtherSparkRunning(SparkRoomError):
    def __init__(self, asked: str, running: str) -> None:
        self.asked, self.running = asked, running
        super().__init__(
            f"A Spark application at {running} runs in this process, and {asked} was asked for. "
            "One process has one: run the targets one after the other."
        )


class DataPathNotWritable(SparkRoomError):
    def __init__(self, lake: str, path: str, found: str) -> None:
        self.lake, self.path, self.found = lake, path, found
        super().__init__(
            f"The data path of lake {lake}, {path}, cannot be written: {found}. Correct `data_path`, or its rights."
        )


class UnsupportedType(SparkRoomError):
    def __init__(self, column: str, type_name: str, remedy: str) -> None:
        self.column, self.type_name = column, type_name
        super().__init__(f"Column {column} has type {type_name}, which {remedy}")


class UnreadableFile(SparkRoomError):
    def __init__(self, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(f"The Parquet file {path} cannot be read: {found}.")


class NullsRefused(SparkRoomError):
    def __init__(self, table: str, nulls: Mapping[str, int], rows: int) -> None:
        self.table, self.nulls, self.rows = table, dict(nulls), rows
        found = ", ".join(f"{column} is NULL in {count:,}" for column, count in nulls.items())
        super().__init__(
            f"Cannot write to {table}: of {rows:,} rows {found}, and may not be (NOT NULL). Nothing was written."
        )


class FilesNotFound(SparkRoomError):
    def __init__(self, table: str, folder: str) -> None:
        self.table, self.folder = table, folder
        super().__init__(
            f"Cannot write to {table}: Spark wrote its files to {folder}, and from here there are none. Executors and "
            "this process must see the same storage: use an object store or a shared folder as `data_path`."
        )


class FileNotAdded(SparkRoomError):
    def __init__(self, table: str, path: str, found: str, remedy: str) -> None:
        self.table, self.path, self.found = table, path, found
        super().__init__(f"Cannot add {path} to {table}: {found}. {remedy}")


class RowsDiffer(SparkRoomError):
    def __init__(self, table: str, expected: str, found: str) -> None:
        self.table = table
        super().__init__(
            f"Cannot compact {table}: {expected}, and {found}. Nothing was changed. See what ducklake_doctor says."
        )


class WriteRefused(SparkRoomError):
    def __init__(self, table: str, found: str, remedy: str) -> None:
        self.table, self.found = table, found
        super().__init__(f"Cannot write to {table}: {found}. {remedy}")


class FrameRefused(SparkRoomError):
    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(f"The table that the model returned cannot be taken: {found}.")


class MatchedTwice(SparkRoomError):
    """`shown` are some of the rows, by what names them, with the number of source rows that match each."""

    def __init__(self, table: str, rows: int, shown: Sequence[tuple[str, int]]) -> None:
        self.table, self.rows, self.shown = table, rows, tuple(shown)
        named = "; ".join(f"{count} for {name}" for name, count in shown)
        which = "1 row" if rows == 1 else f"{rows:,} rows"
        super().__init__(
            f"Cannot merge into {table}: several rows of the source match the same row of the table, for {which} "
            f"({named}). Make the keys of the source unique. Nothing was written."
        )


class JobFailed(SparkRoomError):
    """What Spark said, in one line; its stack is the cause of this error. `line` is that of the query. Columns are
    left out: names of tables in it were longer for Spark."""

    def __init__(self, said: str, condition: str | None, line: int | None) -> None:
        self.said, self.condition, self.line = said, condition, line
        super().__init__(f"Line {line}: {said}" if line else said)

    @classmethod
    def from_error(cls, error: BaseException) -> JobFailed:
        condition = getattr(error, "getCondition", lambda: None)()
        return cls(_said(error), condition, _line(error))


class RowsLost(SparkRoomError):
    def __init__(self) -> None:
        super().__init__(
            "An executor was lost with rows that this statement had computed and must not compute a second time. "
            "Nothing was written."
        )


class JobCancelled(SparkRoomError):
    def __init__(self) -> None:
        super().__init__("The Spark job was cancelled. Nothing was written.")


# Spark's name for the error, in its own message or in that of a cause.
_LOST = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND]"


def failure(error: BaseException) -> JobFailed | RowsLost:
    """What an error of Spark's means for the statement that ran."""
    return RowsLost() if _LOST in str(error) else JobFailed.from_error(error)


_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_PLACE = re.compile(r"\(line (\d+), pos(?:ition)? \d+\)|line (\d+) pos \d+")
# An error of Java's with its stack, in the text of one that PySpark does not know: itself, then each of its causes.
_UNKNOWN = "An error occurred while calling"
_CAUSE = re.compile(r"^(?:Caused by)?: ([\w.$]+)(?:: (.*?))?(?=\n\tat |\nCaused by: |\Z)", re.DOTALL | re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"


def _said(error: BaseException) -> str:
    """What failed, in one sentence: no plan, no SQL state, no stack."""
    text = str(getattr(error, "getMessage", lambda: None)() or error).strip()
    if _TRACEBACK in text:
        return _said_by_python(text)
    return _said_by_java(text) if text.startswith(_UNKNOWN) else _sentence(text)


def _sentence(text: str) -> str:
    text = text.removeprefix("(").split("\n\tat ")[0]
    sentence = _STATE.sub("", text) if "SQLSTATE" in text else (text.splitlines() or [""])[0]
    sentence = " ".join(line.strip() for line in sentence.splitlines())
    condition = _CLASS.match(sentence)
    if condition and condition[1] == "USER_RAISED_EXCEPTION":
        return _CLASS.sub("", sentence)
    return sentence


def _said_by_java(text: str) -> str:
    """The innermost error that Spark has a name for, and the innermost of all."""
    causes = [(name.rsplit(".", 1)[-1], _sentence(said or "")) for name, said in _CAUSE.findall(text)]
    if not causes:
        return _sentence(text)
    name, said = causes[-1]
    innermost = f"{name}: {said}" if said else name
    named = next((sentence for _, sentence in reversed(causes) if _CLASS.match(sentence)), None)
    return innermost if named in (None, said) else f"{named} ({innermost})"


def _said_by_python(text: str) -> str:
    """The last line of a traceback of Python's: its error, which may go on."""
    lines = text.rsplit(_TRACEBACK, 1)[1].split("\n\tat ")[0].splitlines()
    own = [place for place, line in enumerate(lines) if line.strip() and not line.startswith(" ")]
    said = " ".join(line.strip() for line in lines[own[0] :]) if own else text
    return f"A Python function failed: {said.strip()}"


def _line(error: BaseException) -> int | None:
    found = _PLACE.search(str(error))
    return int(found[1] or found[2]) if found else None
