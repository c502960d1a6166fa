"""Opening, committing and cancelling connections, and the one place where errors become dbt's."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig, AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.ducklake.credentials import DuckLakeCredentials
from dbt.adapters.ducklake.errors import OURS, as_dbt
from dbt.adapters.ducklake.handle import Cursor, Handle, Lakes
from dbt.adapters.ducklake.statements.outcome import Outcome

if TYPE_CHECKING:
    import agate

_logger = AdapterLogger("DuckLake")
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass
class DuckLakeResponse(AdapterResponse):
    """What a write came to; it stands so in run_results.json."""

    files: int | None = None
    bytes: int | None = None
    snapshot: int | None = None


class DuckLakeConnectionManager(SQLConnectionManager):
    TYPE = "ducklake"

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        assert isinstance(config.credentials, DuckLakeCredentials)
        self.credentials = config.credentials
        self.lakes = Lakes(self.credentials)
        log = Path(getattr(config, "log_path", None) or "logs") / "spark.log"
        self.settings = self.credentials.spark_settings(str(log.absolute()))
        self._handles: dict[Hashable, Handle] = {}

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        """Open a thread's connection: the lakes, and Spark only when a statement needs it.

        dbt closes the connection after each node. What it opened stays with the thread for the next one.
        """
        if connection.state == ConnectionState.OPEN:
            return connection
        thread = self.get_thread_identifier()
        try:
            if thread in self._handles:
                self._handles[thread].session.renew()
            else:
                self._handles[thread] = Handle(self.credentials, self.lakes, self.settings, _logger.warning)
        except OURS as error:
            connection.handle, connection.state = None, ConnectionState.FAIL
            raise as_dbt(error) from error
        connection.handle, connection.state = self._handles[thread], ConnectionState.OPEN
        return connection

    def add_query(self, sql: str, *arguments: Any, **named: Any) -> tuple[Connection, Any]:
        self.handle_for_node()
        return super().add_query(sql, *arguments, **named)

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """As dbt's own, but that a query's job fails as dbt's error too, and that a query nobody fetches is run: a
        hook may be one that shall fail."""
        from dbt_common.clients.agate_helper import empty_table

        sql = self._add_query_comment(sql)
        _, cursor = self.add_query(sql, auto_begin)
        with self.exception_handler(sql):
            if fetch:
                return self.get_response(cursor), self.get_result_from_cursor(cursor, limit)
            cursor.exhaust()
        return self.get_response(cursor), empty_table()  # type: ignore[no-untyped-call]

    def handle_for_node(self) -> Handle:
        """This thread's connection, opened if it is not, with what its commits say of the node that runs."""
        connection = self.get_thread_connection()
        handle = connection.handle
        assert isinstance(handle, Handle)
        handle.session.origin = self._origin()
        return handle

    def _origin(self) -> dict[str, object]:
        """What commits say of where they come from."""
        return {
            "invocation_id": get_invocation_id(),
            "node": get_node_info().get("unique_id") or self.get_thread_connection().name,
            "target": getattr(self.profile, "target_name", None),
        }

    def cleanup_all(self) -> None:
        super().cleanup_all()
        try:
            for handle in self._handles.values():
                handle.session.spark.close()
            self._handles.clear()
        finally:
            try:
                self.lakes.close()
            except OURS as error:
                raise as_dbt(error) from error

    def cancel(self, connection: Connection) -> None:
        handle = connection.handle
        if isinstance(handle, Handle):
            handle.cancel()

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        try:
            yield
        except DbtRuntimeError:
            raise
        except OURS as error:
            _logger.debug(f"{type(error).__name__}: {error}; its cause: {error.__cause__}")
            raise as_dbt(error) from error

    @classmethod
    def get_response(cls, cursor: Cursor) -> AdapterResponse:
        return cls.response_of(cursor.outcome)

    @classmethod
    def response_of(cls, found: Outcome) -> AdapterResponse:
        if found.files:
            text = f"{found.code} ({found.rows_affected:,} rows, {_files(found.files)}, {_size(found.size)}"
        elif found.rows_affected is not None:
            text = f"{found.code} ({found.rows_affected:,} rows"
        else:
            return DuckLakeResponse(_message=found.code, code=found.code, snapshot=found.snapshot)
        return DuckLakeResponse(
            _message=f"{text}, {'no snapshot' if found.snapshot is None else f'snapshot {found.snapshot}'})",
            code=found.code,
            rows_affected=found.rows_affected,
            files=found.files,
            bytes=found.size,
            snapshot=found.snapshot,
        )

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        return str(type_code)

    # Every statement is a transaction of its own: dbt's BEGIN and COMMIT have nothing to do.

    def add_begin_query(self) -> Any:
        return None

    def add_commit_query(self) -> Any:
        return None

    def clear_transaction(self) -> None:
        connection = self.get_thread_connection()
        connection.transaction_open = False


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"
