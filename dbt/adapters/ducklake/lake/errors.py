"""Everything this room raises. Each class keeps its facts and writes its own sentence.

LakeError
├── InvalidDescription            the description of the lake cannot be meant so
├── CannotOpen
│   ├── LakeNotFound              nothing there, and it may not be created
│   ├── DataPathMissing           a new lake needs a data path
│   ├── DataPathDiffers           the lake has stored another data path
│   ├── UnsupportedVersion        metadata of another format version
│   ├── UnsupportedLayout         metadata tables that are not DuckLake's, or another layout's
│   ├── LakeEncrypted             Spark cannot read DuckDB's encrypted Parquet
│   ├── LakeHeld                  another process holds the metadata file
│   ├── ServerUnreachable         no connection to the metadata server
│   └── TenantNotFound            no such tenant in a shared metadata database
├── NotFound                      SnapshotNotFound, SchemaNotFound, TableNotFound, ColumnNotFound, FileNotFound
├── NameTaken                     a schema, table, view or column of that name is there already
├── ReadOnlyLake                  a write to a lake opened for reading
├── ChangeRefused                 a change that DuckLake does not allow, with its reason
├── InvalidOption                 an option DuckLake does not know, or a value it does not take
├── UnreadableValue               a value in the metadata that is not of its column's type
├── InvalidMetadata               metadata rows that DuckLake's format does not allow
├── MetadataQueryFailed           the metadata database refused a query
└── CommitFailed
    ├── CommitConflict            another writer changed what this transaction depends on
    ├── CommitContended           the database was never free within the allowed attempts
    ├── StaleDeleteFile           a delete file was written for another snapshot than the one to commit
    └── CommitOutcomeUnknown      the connection broke during COMMIT
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime


class LakeError(Exception):
    """Base of every error of this room. Each can go from one process to another."""

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own way calls the class with the sentence, and these classes are called with facts.
        return _restored, (type(self), self.args, self.__dict__)


class InvalidDescription(LakeError):
    def __init__(self, asked: str, remedy: str) -> None:
        self.asked, self.remedy = asked, remedy
        super().__init__(f"{asked} {remedy}")


class CannotOpen(LakeError):
    """The lake cannot be opened."""


class LakeNotFound(CannotOpen):
    def __init__(self, metadata: str, why_not_created: str) -> None:
        self.metadata, self.why_not_created = metadata, why_not_created
        super().__init__(
            f"There is no DuckLake at {metadata}, and {why_not_created}. "
            "Correct `metadata` (and `metadata_schema`), or let the lake be created with `create_if_not_exists: true`."
        )


class DataPathMissing(CannotOpen):
    def __init__(self, metadata: str) -> None:
        self.metadata = metadata
        super().__init__(
            f"{metadata} holds no DuckLake yet, and a new one needs a place for its files. Set `data_path`."
        )


class DataPathDiffers(CannotOpen):
    def __init__(self, metadata: str, asked: str, stored: str) -> None:
        self.metadata, self.asked, self.stored = metadata, asked, stored
        super().__init__(
            f"`data_path` is {asked}, but the lake at {metadata} keeps its files in {stored}. "
            "Leave `data_path` out, or set `override_data_path: true` where the files have moved."
        )


class UnsupportedVersion(CannotOpen):
    def __init__(self, metadata: str, found: str, supported: str, remedy: str) -> None:
        self.metadata, self.found, self.supported = metadata, found, supported
        super().__init__(
            f"The lake at {metadata} has format version {found}; this client reads and writes {supported}. {remedy}"
        )


class VersionDiffers(CannotOpen):
    def __init__(self, metadata: str, found: str, asked: str, remedy: str) -> None:
        self.metadata, self.found, self.asked = metadata, found, asked
        super().__init__(
            f"The lake at {metadata} has format version {found}, and the profile asks for {asked}. {remedy}"
        )


class MigrationRefused(CannotOpen):
    def __init__(self, metadata: str, before: str, after: str, found: str, remedy: str) -> None:
        self.metadata, self.before, self.after, self.found = metadata, before, after, found
        super().__init__(
            f"Cannot bring the lake at {metadata} from format version {before} to {after}: {found}. {remedy} "
            "Nothing was changed."
        )


class MigrationFailed(CannotOpen):
    def __init__(self, metadata: str, target: str, found: str) -> None:
        self.metadata, self.target, self.found = metadata, target, found
        super().__init__(
            f"The lake at {metadata} was to be brought to format version {target}: {found.rstrip('.')}. "
            "That is done as a whole or not at all: run again."
        )


class LakeMigrated(LakeError):
    def __init__(self, metadata: str, before: str, after: str) -> None:
        self.metadata, self.before, self.after = metadata, before, after
        super().__init__(
            f"The lake at {metadata} was opened with format version {before}, and another client has brought it to "
            f"{after} since. Run again."
        )


class UnsupportedLayout(CannotOpen):
    def __init__(self, metadata: str, found: str, remedy: str) -> None:
        self.metadata, self.found = metadata, found
        super().__init__(f"The metadata tables at {metadata} are not readable: {found}. {remedy}")


class LakeEncrypted(CannotOpen):
    def __init__(self, metadata: str, found: str) -> None:
        self.metadata = metadata
        super().__init__(
            f"The lake at {metadata} {found}. Spark cannot read or write DuckDB's encrypted Parquet files: "
            "use a lake without encryption."
        )


class LakeHeld(CannotOpen):
    def __init__(self, path: str, waited: float, holder: str) -> None:
        self.path, self.waited, self.holder = path, waited, holder
        super().__init__(
            f"The metadata at {path} is held by {holder}; waited {waited:.0f} s for it. "
            "End that process's transaction or close its connection, then run again."
        )


class FileTooNew(CannotOpen):
    def __init__(self, path: str, client: str, found: str) -> None:
        self.path, self.client, self.found = path, client, found
        super().__init__(
            f"The metadata file {path} was made for a newer DuckDB than the installed {client} ({found}). "
            "Install a newer `duckdb`. Lakes made with `metadata_storage_version: v1.5.0`, the default, open in both."
        )


class ServerUnreachable(CannotOpen):
    def __init__(self, server: str, found: str) -> None:
        self.server, self.found = server, found
        super().__init__(f"Cannot connect to {server}: {found}. Check host, port, user and password, and that it runs.")


class TenantNotFound(CannotOpen):
    def __init__(self, metadata: str, tenant: str) -> None:
        self.metadata, self.tenant = metadata, tenant
        super().__init__(f"There is no tenant {tenant!r} at {metadata}. Correct `catalog`.")


class NotFound(LakeError):
    """Something that was named is not in the snapshot."""


class SnapshotNotFound(NotFound):
    def __init__(self, asked: int | datetime, oldest: int | None, latest: int | None) -> None:
        self.asked, self.oldest, self.latest = asked, oldest, latest
        what = f"Snapshot {asked}" if isinstance(asked, int) else f"A snapshot at or before {asked.isoformat()}"
        kept = "none" if latest is None else f"{oldest} to {latest}"
        super().__init__(f"{what} is not in this lake: it was never there, or it has expired. Snapshots kept: {kept}.")


class SchemaNotFound(NotFound):
    def __init__(self, name: str, snapshot: int, there: Iterable[str]) -> None:
        self.name, self.snapshot, self.there = name, snapshot, tuple(there)
        super().__init__(f"Schema {name} is not in snapshot {snapshot}. There are: {_some(self.there)}.")


class TableNotFound(NotFound):
    def __init__(self, schema: str, name: str, snapshot: int, there: Iterable[str], kind: str = "Table") -> None:
        self.schema, self.name, self.snapshot, self.there = schema, name, snapshot, tuple(there)
        super().__init__(
            f"{kind} {schema}.{name} is not in snapshot {snapshot}. Schema {schema} has: {_some(self.there)}."
        )


class ColumnNotFound(NotFound):
    def __init__(self, table: str, column: str, there: Iterable[str]) -> None:
        self.table, self.column, self.there = table, column, tuple(there)
        super().__init__(f"Column {column} is not in {table}. It has: {_some(self.there)}.")


class FileNotFound(NotFound):
    def __init__(self, table: str, file_id: int, snapshot: int) -> None:
        self.table, self.file_id, self.snapshot = table, file_id, snapshot
        super().__init__(f"Data file {file_id} of {table} is not in snapshot {snapshot}. Plan the change again.")


class NameTaken(LakeError):
    def __init__(self, kind: str, name: str, where: str) -> None:
        self.kind, self.name, self.where = kind, name, where
        super().__init__(
            f"{kind} {name} is already in {where}. Names are compared without case. Drop or rename it first."
        )


class ReadOnlyLake(LakeError):
    def __init__(self, lake: str, why: str) -> None:
        self.lake, self.why = lake, why
        super().__init__(f"The lake at {lake} was opened for reading only ({why}), so nothing can be written to it.")


class ChangeRefused(LakeError):
    def __init__(self, asked: str, found: str, remedy: str = "") -> None:
        self.asked, self.found, self.remedy = asked, found, remedy
        super().__init__(f"Cannot {asked}: {found}." + (f" {remedy}" if remedy else ""))


class InvalidOption(LakeError):
    def __init__(self, name: str, found: str, allowed: str) -> None:
        self.name, self.found, self.allowed = name, found, allowed
        super().__init__(f"Option {name}: {found}. {allowed}")


class UnreadableValue(LakeError):
    def __init__(self, type_name: str, text: str, where: str = "the metadata") -> None:
        self.type_name, self.text, self.where = type_name, text, where
        shown = text if len(text) <= 200 else text[:200] + "…"
        super().__init__(f"{where} holds {shown!r}, which is not a value of type {type_name}.")


class InvalidMetadata(LakeError):
    def __init__(self, found: str, remedy: str) -> None:
        self.found, self.remedy = found, remedy
        super().__init__(f"The metadata of this lake is not valid: {found}. {remedy}")


class MetadataQueryFailed(LakeError):
    def __init__(self, where: str, found: str) -> None:
        self.where, self.found = where, found
        super().__init__(f"The metadata database {where} refused a query: {found}")


class CommitFailed(LakeError):
    """Nothing was committed, unless the class says otherwise. The files named in the changes were not touched."""


class CommitConflict(CommitFailed):
    def __init__(self, what: str, did: str, snapshot: int, author: str | None, began: int) -> None:
        self.what, self.did, self.snapshot, self.author, self.began = what, did, snapshot, author, began
        who = f" (by {author})" if author else ""
        super().__init__(
            f"Cannot commit to {what}: snapshot {snapshot}{who} {did} after this transaction began at {began}. "
            "Nothing was written. Plan it again on the newest snapshot: run the model again."
        )


class CommitContended(CommitFailed):
    def __init__(self, lake: str, attempts: int, found: str) -> None:
        self.lake, self.attempts, self.found = lake, attempts, found
        super().__init__(
            f"Could not commit to {lake} in {attempts} attempts, each time because other writers were faster "
            f"(last: {found}). Nothing was written. Raise `retries` or `retry_wait_ms`, or run fewer writers at once."
        )


class StaleDeleteFile(CommitFailed):
    def __init__(self, table: str, written_for: int, needed: int) -> None:
        self.table, self.written_for, self.needed = table, written_for, needed
        super().__init__(
            f"A delete file of {table} was written for snapshot {written_for}, which another writer took; it must say "
            f"{needed}. Nothing was written. Commit with a function that rewrites delete files."
        )


class CommitOutcomeUnknown(CommitFailed):
    """The one failure after which the snapshot may exist."""

    def __init__(self, lake: str, snapshot: int) -> None:
        self.lake, self.snapshot = lake, snapshot
        super().__init__(
            f"The connection to {lake} broke during COMMIT of snapshot {snapshot}, so its outcome is unknown. "
            "No files were deleted. Look whether that snapshot carries this commit's message before running again."
        )


def _restored(kind: type[LakeError], args: tuple[object, ...], facts: dict[str, object]) -> LakeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


def _some(names: tuple[str, ...], most: int = 20) -> str:
    if not names:
        return "nothing"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more
