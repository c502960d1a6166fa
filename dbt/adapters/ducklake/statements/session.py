"""A thread's way to its lakes and to Spark: which names mean what, and what a statement may use while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from dbt.adapters.ducklake.lake import CommitMessage, Lake, fold
from dbt.adapters.ducklake.spark.query import forget
from dbt.adapters.ducklake.spark.session import SparkHandle
from dbt.adapters.ducklake.spark.storage import Storage
from dbt.adapters.ducklake.statements.errors import NameNotFound, Place
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
        """A name of one to three parts with the session's own lake and schema for those that it leaves out."""
        if len(name.parts) > 3:
            raise NameNotFound(f"{name} has {len(name.parts)} parts; a table has lake, schema and name.", name.place)
        lake, schema, table = name.within(self.lake_name, self.schema)
        self.lake(lake, name.place)
        return LakeName(lake, schema, table)

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
