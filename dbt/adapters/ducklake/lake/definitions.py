"""What a snapshot says of schemas, tables and views."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from dbt.adapters.ducklake.lake.columns import Column, find, walk
from dbt.adapters.ducklake.lake.errors import ColumnNotFound
from dbt.adapters.ducklake.lake.names import ColumnId, SchemaId, SnapshotId, TableId, fold
from dbt.adapters.ducklake.lake.paths import StoredPath


@dataclass(frozen=True, slots=True)
class Schema:
    """`name` is what it is found by: of one within others, the names of all of them with dots between. `parts` are
    these names, and `parent` the schema that it lies in."""

    id: SchemaId
    uuid: UUID
    name: str
    path: StoredPath
    since: SnapshotId
    parts: tuple[str, ...]
    parent: SchemaId | None = None

    @property
    def own_name(self) -> str:
        return self.parts[-1]


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro of DuckDB's, of values or of tables. Only DuckDB calls it."""

    id: int
    name: str
    is_of_tables: bool


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A partition key: a top-level column through `identity`, `year`, `month`, `day`, `hour`, one of these since 1970
    (`epoch_day`), or `bucket(N)`."""

    column_id: ColumnId
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class SortField:
    """A sort key, in DuckDB's SQL. Advisory: it says how writers order rows, and nothing of what a reader will find."""

    expression: str
    descending: bool = False
    nulls_first: bool = False
    dialect: str = "duckdb"


@dataclass(frozen=True, slots=True)
class Partitioning:
    id: int
    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class TableName:
    """A table without its columns: what listing a schema gives."""

    id: TableId
    uuid: UUID
    schema: Schema
    name: str
    path: StoredPath
    since: SnapshotId

    def __str__(self) -> str:
        return f"{self.schema.name}.{self.name}"


@dataclass(frozen=True, slots=True)
class Table:
    named: TableName
    columns: tuple[Column, ...]
    location: str
    partitioning: Partitioning | None = None
    sort: tuple[SortField, ...] = ()
    comment: str | None = None
    next_column_id: int = 1

    @property
    def id(self) -> TableId:
        return self.named.id

    @property
    def name(self) -> str:
        return self.named.name

    @property
    def schema(self) -> Schema:
        return self.named.schema

    def __str__(self) -> str:
        return str(self.named)

    def column(self, name: str) -> Column:
        if (column := find(self.columns, name)) is None:
            raise ColumnNotFound(str(self), name, [column.name for column in self.columns])
        return column

    def at(self, path: tuple[str, ...]) -> Column:
        """The column or nested field at a path of names."""
        column = self.column(path[0])
        for name in path[1:]:
            child = column.child(name)
            if child is None:
                raise ColumnNotFound(f"{self}.{column.name}", name, [child.name for child in column.children])
            column = child
        return column

    def by_id(self) -> dict[ColumnId, Column]:
        return {column.id: column for column in walk(self.columns)}


@dataclass(frozen=True, slots=True)
class View:
    """A view. Its SQL names tables of its own lake with `{DUCKLAKE_CATALOG}` where DuckDB wrote the lake's name.

    `tags` are further texts kept with it. DuckDB shows them and ends them with the view.
    """

    id: TableId
    uuid: UUID
    schema: Schema
    name: str
    sql: str
    dialect: str
    column_aliases: tuple[str, ...] = ()
    comment: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    # By the names that the view gives its columns.
    column_comments: tuple[tuple[str, str], ...] = ()

    def comment_on(self, column: str) -> str | None:
        return next((text for name, text in self.column_comments if fold(name) == fold(column)), None)

    def tag(self, key: str) -> str | None:
        return dict(self.tags).get(key)

    def __str__(self) -> str:
        return f"{self.schema.name}.{self.name}"
