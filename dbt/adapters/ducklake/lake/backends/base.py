"""What a metadata database must be able to do. Only the modules beside this one import a driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

from dbt.adapters.ducklake.lake.columns import Column
from dbt.adapters.ducklake.lake.values import Value

Row = tuple[Any, ...]
Convert = Callable[[Any], Any]


class Contended(Exception):
    """Another writer was faster or holds what this one needs: roll back and try again."""


class CommitBroken(Exception):
    """The connection ended during COMMIT; whether the database has committed is unknown."""


class Connection(ABC):
    """One open transaction. Values are bound as `$1`, `$2`, … on every backend."""

    # What failed in it: then it is not committed. DuckDB 1.5 and SQLite would commit the rest of it, DuckDB 2.0 and
    # PostgreSQL say of COMMIT that it was done, and roll back.
    failed: Exception | None = None

    @contextmanager
    def noting_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # What comes after it tells of the transaction's state alone.
            self.failed = self.failed or error
            raise

    @abstractmethod
    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]: ...

    @abstractmethod
    def execute(self, sql: str, values: Sequence[object] = ()) -> None: ...

    @abstractmethod
    def insert(self, relation: str, columns: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Insert rows whose columns have the given logical types (BIGINT, VARCHAR, BOOLEAN, UUID, TIMESTAMPTZ)."""

    @abstractmethod
    def has_table(self, name: str) -> bool: ...

    def lock(self, relation: str) -> None:
        """Keep others from writing to a table until the transaction ends; nothing to do where there is one writer."""

    def keep_unique(self, relation: str, columns: Sequence[str]) -> None:
        """See to it that live rows have these columns' values once; left to us where there is one writer."""

    def next_value(self, sequence: str) -> int:
        return int(self.rows("SELECT nextval($1)", [sequence])[0][0])

    def has_function(self, name: str) -> bool:
        """Whether the metadata schema has a function of that name; a file has none."""
        return False

    def wait_little(self) -> None:
        """Be `Contended` soon where others hold a table that is to be altered: whoever comes after waits with us."""

    def retype(self, name: str, relation: str, columns: Sequence[Column]) -> list[str]:
        """Give the columns of a table of inlined rows the types of `Storage.inlined_type`, where an older client gave
        them others; the names of those changed."""
        return []

    @abstractmethod
    def columns_of(self, name: str) -> list[str]:
        """The columns of a table of the metadata schema."""

    def drop(self, relation: str) -> None:
        """Drop a table if it is there."""
        self.execute(f"DROP TABLE IF EXISTS {relation}")


class Storage(ABC):
    """How a database stores the metadata's logical types, and the values of inlined rows."""

    physical_types: ClassVar[Mapping[str, str]]
    # Conversions of logical types to and from what the driver takes and gives; a type that is not here needs none.
    encode: ClassVar[Mapping[str, Convert]] = {}
    decode: ClassVar[Mapping[str, Convert]] = {}

    def selected(self, logical_type: str, column: str) -> str:
        """The expression that reads a metadata column in a form its driver can give."""
        return column

    @abstractmethod
    def inlined_type(self, column: Column) -> str:
        """The SQL type of a column of an inlined table."""

    @abstractmethod
    def can_inline(self, column: Column) -> bool:
        """Whether DuckDB keeps values of this column in inlined tables of this database."""

    @abstractmethod
    def inlined_selected(self, column: Column, name: str) -> str:
        """The expression that reads such a column (`name` is quoted already), and what `inlined_value` turns into a
        value."""

    @abstractmethod
    def inlined_value(self, column: Column, stored: Any) -> Value: ...

    @abstractmethod
    def inlined_bound(self, column: Column, value: Value) -> object:
        """A value as it is bound in an INSERT into an inlined table; `NotAsText` if it cannot be kept there."""

    def inlined_inserted(self, column: Column, placeholder: str) -> str:
        """What stands for the bound value in the INSERT."""
        return placeholder


class Backend(ABC):
    """A metadata database. `name` is for messages and holds no password."""

    name: str
    kind: str
    schema: str = "main"
    storage: Storage
    has_sequences: bool = True

    def __init__(self) -> None:
        # What the user is told when the lake is asked the next time.
        self.warnings: list[str] = []

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the database."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that commits when its block ends and rolls back when it raises.

        Raises `Contended` where another writer was faster, and `CommitBroken` where the outcome is unknown.
        """

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a database at all; a file that is missing is not made by looking."""

    @abstractmethod
    def prepare(self) -> None:
        """Make what a new lake needs before its tables: the file's folder must be there, a schema is created."""

    @abstractmethod
    def qualified(self, table: str) -> str:
        """A table of the metadata schema, as SQL."""

    def add_index(self, name: str, table: str, columns: Sequence[str]) -> bool:
        """Add an index to a table, if it is not there; whether this kind of database needs such indexes."""
        return False

    def indexes(self) -> set[str] | None:
        """The names of the indexes that there are; None where this kind of database needs none."""
        return None

    def close(self) -> None:
        """Give up connections that are kept; the backend connects again when it is used."""


def decoder(storage: Storage, logical_types: Sequence[str]) -> Callable[[Row], Row] | None:
    """The conversion of rows with these types, or None where the driver gives them as they are wanted."""
    converts = [(index, storage.decode[name]) for index, name in enumerate(logical_types) if name in storage.decode]
    if not converts:
        return None

    def decode(row: Row) -> Row:
        values = list(row)
        for index, convert in converts:
            if values[index] is not None:
                values[index] = convert(values[index])
        return tuple(values)

    return decode


def encoded(storage: Storage, logical_types: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    converts = [storage.encode.get(name) for name in logical_types]
    for row in rows:
        yield tuple(
            value if convert is None or value is None else convert(value)
            for value, convert in zip(row, converts, strict=True)
        )
