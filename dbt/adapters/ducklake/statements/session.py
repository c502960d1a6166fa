"""A thread's way to its lakes and to Spark: which names mean what, and what a statement may use while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from dbt.adapters.ducklake.lake import CommitMessage, Lake, Snapshot, exact_path, fold, path_in
from dbt.adapters.ducklake.spark.query import forget
from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.statements.errors import NameNotFound, NotAllowed, Place
from dbt.adapters.ducklake.statements.moment import now
from dbt.adapters.ducklake.statements.reader import Name


@dataclass(frozen=True)
class LakeName:
    """A name of a table or view, whole: in which lake, in which schema."""

    lake: str
    schema: str
    name: str

    @property
    def parts(self) -> tuple[str, str, str]:
        return self.lake, self.schema, self.name

    @property
    def folded(self) -> tuple[str, str, str]:
        return fold(self.lake), fold(self.schema), fold(self.name)

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass
class LakeSession:
    """What a connection has: its lakes by name, Spark once it is asked for, and the message of its next commit.

    It belongs to one thread, as its temporary views do.
    """

    lakes: Mapping[str, Lake]
    lake_name: str
    schema: str
    spark: SparkHandle
    # What commits say of where they come from, unless a statement says otherwise.
    author: str | None = None
    origin: Mapping[str, object] = field(default_factory=dict)
    warn: Callable[[str], None] = lambda text: None
    # The doors past its lakes that it may not take.
    closed: frozenset[str] = frozenset()
    said: CommitMessage | None = None
    # Temporary views that statements made: names of one part mean them before a lake's tables. Their queries are bound
    # anew by each statement that reads them, or it would read two snapshots; None of those whose rows are fixed.
    temporary: dict[str, str | None] = field(default_factory=dict)
    # The lake views of this thread's Spark session, each with the snapshot that it shows.
    shown: dict[str, object] = field(default_factory=dict)
    changed_settings: bool = False
    # Whether there are functions of the user's own.
    has_functions: bool = False
    # Changes of columns that the next write to a table brings with it, and whether those of a model are to wait for it.
    staged: dict[tuple[str, str, str], object] = field(default_factory=dict)
    stages_changes: bool = False
    # What stands for the inputs of a Python model, by their names: a query of those of its batch's time.
    inputs: Mapping[str, str] = field(default_factory=dict)
    # Temporary views that Python models made.
    python_views: set[str] = field(default_factory=set)
    # How to pin the temporary views again whose rows were lost.
    pinned: dict[str, Callable[[], object]] = field(default_factory=dict)
    # The one time of all statements of a node that ask for it by `time_of_node`.
    _time: int | None = None
    # The tables, by their UUIDs, of whose lost nanoseconds was told.
    warned: set[UUID] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._home = self.lake_name, self.schema

    def renew(self) -> None:
        """As it was at first: what one node set, used or made for itself does not reach the next."""
        self.lake_name, self.schema = self._home
        self.said, self._time = None, None
        self.pinned.clear()
        if self.staged:
            self.staged.clear()
            self.forget_plans()
        self.stages_changes = False
        self.inputs = {}
        for view in self.python_views:
            forget(self.spark.session(), view)
        self.python_views.clear()
        if self.temporary:
            for view in self.temporary:
                forget(self.spark.session(), view)
            self.temporary.clear()
        if self.changed_settings:
            self.settle()
            self.changed_settings = False

    def settle(self) -> None:
        """Bring Spark's settings back to those of the profile."""
        self.spark.settle()
        self.forget_plans()

    def forget_plans(self) -> None:
        """Have every table planned again when it is read: a plan keeps the settings that it was made with."""
        self.shown.clear()

    def time_of_node(self) -> int:
        """The microseconds since 1970 of the moment at which this was first asked for since the session was renewed."""
        if self._time is None:
            self._time = now()
        return self._time

    def lake(self, name: str, place: Place | None = None) -> Lake:
        found = self.find_lake(name)
        if found is None:
            there = ", ".join(self.lakes)
            raise NameNotFound(f"There is no lake {name} in this profile. Attached are: {there}.", place)
        return found

    def find_lake(self, name: str) -> Lake | None:
        return next((lake for known, lake in self.lakes.items() if fold(known) == fold(name)), None)

    def whole(self, name: Name) -> LakeName:
        """A name with the session's own lake and schema for those that it leaves out."""
        nests = self.lake(self.lake_name).nests_schemas
        if len(name.parts) > 2 and nests and not self.begins_with_lake(name):
            if self.is_catalog(name.parts[0]):
                asked, found = f"take {name} for a table of a lake", f"{name.parts[0]} is a catalog of Spark's"
                raise NotAllowed(asked, found, "Write the lake's name in front.", name.place)
            self._refuse_no_schema(name, self.lake_name)
        return self.whole_at(name, LakeName(self.lake_name, self.schema, ""))

    def whole_at(self, name: Name, home: LakeName, at: Callable[[str], Snapshot] | None = None) -> LakeName:
        """The same with another lake and schema; `at` gives the snapshot of a lake by which schemas are told, where
        that is not the newest."""
        lake, schema, table = self._split(name, home.lake, home.schema)
        return LakeName(lake, self.exact_schema(lake, schema, at), table)

    def is_catalog(self, name: str) -> bool:
        """Whether Spark has a catalog of that name, as far as the profile or a running Spark tells."""
        return fold(name) == "spark_catalog" or bool(self.spark.setting(f"spark.sql.catalog.{name}"))

    def parts_of(self, name: Name, home: LakeName | None = None) -> tuple[str, ...]:
        """Lake, schema and table, part by part, by the last of which a column can be named. A name that is no lake's
        keeps its parts."""
        lake_name, schema_name = (home.lake, home.schema) if home else (self.lake_name, self.schema)
        is_lakes = len(name.parts) < 3 or self.begins_with_lake(name)
        if not is_lakes and (not self.lake(lake_name).nests_schemas or self.is_catalog(name.parts[0])):
            return name.parts
        lake, schema, own = self._split(name, lake_name, schema_name)
        return (lake, *self._components(lake, schema), own)

    def _split(self, name: Name, lake: str, schema: str) -> tuple[str, tuple[str, ...], str]:
        """Lake, schema and own name, with this lake and schema for those that it leaves out. A schema that lies in
        others has several parts. As in DuckDB, a lake goes before a schema of its name."""
        *parts, own = name.parts
        if len(parts) < 2:
            return lake, tuple(parts) or (schema,), own
        if not self.begins_with_lake(name) and self.lake(lake).nests_schemas:
            return lake, tuple(parts), own
        if len(parts) > 2 and not self.lake(parts[0], name.place).nests_schemas:
            raise NameNotFound(f"{name} has {len(name.parts)} parts; a table has lake, schema and name.", name.place)
        self.lake(parts[0], name.place)
        return parts[0], tuple(parts[1:]), own

    def begins_with_lake(self, name: Name) -> bool:
        return len(name.parts) > 2 and self.find_lake(name.parts[0]) is not None

    def schema_named(self, name: Name) -> tuple[str, str]:
        """The lake and the schema that the name of a schema says."""
        lake, parts = self.lake_name, name.parts
        if len(parts) > 1 and (self.find_lake(parts[0]) is not None or not self.lake(lake).nests_schemas):
            lake, parts = parts[0], parts[1:]
        elif len(parts) > 1:
            self._refuse_no_schema(name, lake)
        if len(parts) > 1 and not self.lake(lake, name.place).nests_schemas:
            found = f"{name} has {len(name.parts)} parts"
            raise NotAllowed("name a schema", found, "Give lake and schema.", name.place)
        self.lake(lake, name.place)
        return lake, self.exact_schema(lake, parts)

    def _refuse_no_schema(self, name: Name, lake: str) -> None:
        """The name of a lake that is written wrongly is not taken for a schema's."""
        first = name.parts[0]
        if self.lake(lake).snapshot().schema_at((first,)) is None:
            raise NameNotFound(f"There is no lake {first} in this profile, nor a schema in lake {lake}.", name.place)

    def exact_schema(self, lake: str, parts: Sequence[str], at: Callable[[str], Snapshot] | None = None) -> str:
        """The name of a schema as no other schema that comes or goes can be called."""
        return exact_path(self._components(lake, parts, at)) if self.lake(lake).nests_schemas else parts[0]

    def _components(
        self, lake: str, parts: Sequence[str], at: Callable[[str], Snapshot] | None = None
    ) -> tuple[str, ...]:
        """The schema part by part. Dots within one part lead to a schema of that whole name, or else within others."""
        if len(parts) > 1 or exact_path(parts) == parts[0] or not self.lake(lake).nests_schemas:
            return tuple(parts)
        found = (at(lake) if at else self.lake(lake).snapshot()).find_schema(parts[0])
        return path_in(parts[0]) if found is None else found.parts

    def storage(self, lake: Lake) -> Storage:
        return Storage(lake.data_path, self.spark.settings.config)

    def message(self, **facts: object) -> CommitMessage:
        """What the next commit says: what CALL ducklake_set_commit_message gave, or where it comes from."""
        if self.said is not None:
            said, self.said = self.said, None
            return said
        extra = {key: value for key, value in {**self.origin, **facts}.items() if value is not None}
        node = self.origin.get("node")
        return CommitMessage(self.author, f"dbt: {node}" if node else None, json.dumps(extra) if extra else None)
