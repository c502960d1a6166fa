"""The Spark application of this process, and a session of it for each thread. Nothing else starts Spark."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.spark.errors import JobCancelled, OtherSparkRunning, SparkUnavailable, failure
from dbt.adapters.ducklake.spark.java import OPTIONS, check_java, class_archive, options_with

# What a lake is read and written by, whatever the user sets: field ids find columns, timestamps are microseconds, and
# no date is moved to the Julian calendar.
_REQUIRED = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Names in backticks are names.
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
_DEFAULTS = {"spark.sql.session.timeZone": "UTC", "spark.sql.caseSensitive": "false"}
# One task per path lists many files on a local disk 30 times slower than one thread does.
_LOCAL_DEFAULTS = {
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    # Without a .crc beside each file: it costs a fork for its permissions, and the sums of every byte.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
}
# The doors that a strict session closes, by the names that the profile has for them.
FILES, JAVA, SCRIPTS, SETTINGS, CATALOGS, PYTHON = "files", "java", "scripts", "settings", "catalogs", "python_models"
DOORS = (FILES, JAVA, SCRIPTS, SETTINGS, CATALOGS, PYTHON)
JAVA_FUNCTIONS = ("reflect", "try_reflect", "java_method")
# Those that Spark closes itself: `parquet.`/path`` in FROM, and `${env:HOME}` in any text.
_CLOSED_BY = {FILES: {"spark.sql.runSQLOnFiles": "false"}, SETTINGS: {"spark.sql.variable.substitute": "false"}}
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True)
class SparkSettings:
    """Where Spark runs: in this process (`master`) or at a Connect server (`remote`). `log_file` takes Spark's log."""

    master: str | None = None
    remote: str | None = None
    app_name: str = "dbt-ducklake"
    config: Mapping[str, str] = field(default_factory=dict)
    # The doors that are closed to a session; others of the same process may have them open.
    closed: frozenset[str] = field(default=frozenset(), compare=False)
    # Where the first of a process writes, all do.
    log_file: str | None = field(default=None, compare=False)

    @property
    def where(self) -> str:
        """For people: without the token that a Connect URL may hold."""
        return (self.remote or self.master or "local[*]").split(";", 1)[0]

    @property
    def is_local(self) -> bool:
        return self.remote is None and self.where.startswith("local")


# Seconds between two attempts to stop what runs.
_CANCEL_AGAIN = 0.2
_lock = threading.Lock()
_application: SparkSession | None = None
_settings: SparkSettings | None = None
# Every session at a Connect server, so that none is ever collected: PySpark's destructor waits for the threads that all
# sessions share, and one of them may wait for the lock under which the collection began. Then the process hangs.
_at_servers: list[SparkSession] = []


def new_session(settings: SparkSettings) -> SparkSession:
    """A session of its own for the calling thread: temporary views and settings do not cross threads.

    Starts Spark if this process has not. JavaMissing, SparkUnavailable.
    """
    # PySpark writes a page of JSON to stderr for an error that it also raises.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    session = _connected(settings) if settings.remote else _application_for(settings).newSession()
    settle(session, settings)
    if JAVA in settings.closed and not settings.remote:
        _forget_java(session)
    return session


def run_command(session: SparkSession, sql: str) -> None:
    # The class's own: in a Python model the session's `sql` is another.
    type(session).sql(session, sql)


def settle(session: SparkSession, settings: SparkSettings) -> None:
    """Give a session the settings of the profile; it keeps those that the profile does not have."""
    for key, value in {**_DEFAULTS, **_runtime(session, settings)}.items():
        session.conf.set(key, value)
    require(session, settings)


def require(session: SparkSession, settings: SparkSettings) -> None:
    """Set what a lake is read and written by, and close what a strict session may not use."""
    closing = {key: value for door in settings.closed for key, value in _CLOSED_BY.get(door, {}).items()}
    for key, value in {**_REQUIRED, **closing}.items():
        session.conf.set(key, value)


def _forget_java(session: SparkSession) -> None:
    """Take the functions that call Java out of a session, by whatever way a query may name them."""
    jvm: Any = session._jvm
    registry = session._jsparkSession.sessionState().functionRegistry()
    for name in JAVA_FUNCTIONS:
        registry.dropFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))


def is_required(key: str) -> bool:
    """Whether a lake is read and written by this setting, so that nobody may change it."""
    return key in _REQUIRED or encrypts(key)


def encrypts(key: str) -> bool:
    """Whether a setting makes Spark encrypt Parquet files: the metadata have no place for their keys."""
    return key.removeprefix("spark.hadoop.") == "parquet.crypto.factory.class"


class SparkHandle:
    """Spark for one thread: started when it is first asked for, and never for what needs no rows."""

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        self._session: SparkSession | None = None
        # What the thread's jobs are called, for `cancel`.
        self._name = f"dbt-ducklake-{uuid4()}"
        self._cancelled = threading.Event()
        self._depth = 0
        # The thread that runs a user's Python code, which no job of Spark's can end.
        self._own_code: int | None = None

    def session(self) -> SparkSession:
        if self._session is None:
            self._session = new_session(self.settings)
        return self._session

    def setting(self, key: str) -> str | None:
        """What a setting is in the running Spark, or else in the profile; this starts none."""
        return self.settings.config.get(key) if self._session is None else self._session.conf.get(key, None)

    @contextmanager
    def job(self, name: str) -> Iterator[SparkSession]:
        """Spark, with what it does in the block under a name, and stopped by `cancel`. JobCancelled, JobFailed."""
        self._refuse_cancelled()
        spark = self.session()
        # To start Spark takes seconds, in which the user may have given up.
        self._refuse_cancelled()
        self._depth += 1
        if self.settings.remote is None:
            spark.sparkContext.setJobGroup(self._name, name, interruptOnCancel=True)
        else:
            spark.addTag(self._name)
        try:
            yield spark
        except (PySparkException, Py4JError) as error:
            if self._cancelled.is_set():
                raise JobCancelled from error
            raise failure(error) from error
        finally:
            self._depth -= 1
            if self._depth == 0 and self.settings.remote is not None:
                spark.removeTag(self._name)

    @contextmanager
    def own_code(self) -> Iterator[None]:
        """Let `cancel` raise JobCancelled in what Python code the block runs."""
        self._own_code = threading.get_ident()
        try:
            yield
        finally:
            self._own_code = None

    def _refuse_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise JobCancelled

    def settle(self) -> None:
        """Bring the session's settings back to the profile's, after RESET or what a user's code may have set."""
        if self._session is not None:
            run_command(self._session, "RESET")
            settle(self._session, self.settings)

    def require(self) -> None:
        """Set again what a lake is read and written by, after a user's code may have set it."""
        if self._session is not None:
            require(self._session, self.settings)

    def close(self) -> None:
        """Leave a Connect server. A session of this process' own Spark ends with it."""
        if self._session is not None and self.settings.remote is not None:
            # Else its threads would keep the process from ending.
            self._session.stop()
        self._session = None

    def cancel(self) -> None:
        """Stop the running block, and let no other one begin; called by another thread."""
        if not self._cancelled.is_set():
            self._cancelled.set()
            threading.Thread(target=self._stop_jobs, daemon=True).start()

    def _stop_jobs(self) -> None:
        # Again and again: a block has several jobs, and may be between two of them.
        while self._depth:
            if self._own_code is not None:
                thread = ctypes.c_ulong(self._own_code)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(JobCancelled))
            spark = self._session
            if spark is not None and self.settings.remote is None:
                spark.sparkContext.cancelJobGroup(self._name)
            elif spark is not None:
                # The tags of a classic session belong to the thread that set them; those of a server's do not.
                spark.interruptTag(self._name)
            time.sleep(_CANCEL_AGAIN)


def stop() -> None:
    """End the application, and with it every session."""
    global _application, _settings
    with _lock:
        if _application is not None:
            _application.stop()
        _application = _settings = None


def _application_for(settings: SparkSettings) -> SparkSession:
    global _application, _settings
    with _lock:
        if _application is None:
            _application, _settings = _started(settings), settings
        elif _settings != settings:
            assert _settings is not None
            raise OtherSparkRunning(settings.where, _settings.where)
        return _application


def _started(settings: SparkSettings) -> SparkSession:
    check_java()
    # Without it pandas-on-Spark, which a Python model may use, refuses to work in a process where Spark runs already.
    os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
    given = dict(settings.config)
    if settings.is_local:
        # Else the tasks of Python run on whatever python3 comes first on the PATH, with other packages than these.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        given = {**_LOCAL_DEFAULTS, **given}
        # Shuffles of a small machine: Spark's own 200 partitions cost more than the work in them.
        given.setdefault("spark.sql.shuffle.partitions", str(max(4, 2 * (os.cpu_count() or 2))))
    given[OPTIONS] = f"{_java_options(settings)} {given.get(OPTIONS, '')}".strip()
    builder = SparkSession.builder.master(settings.master or "local[*]").appName(settings.app_name)
    for key, value in {**given, **_REQUIRED}.items():
        builder = builder.config(key, value)
    try:
        with _stderr_to(settings.log_file or os.devnull):
            return builder.getOrCreate()
    except Exception as error:
        # py4j and PySpark raise what they like when the JVM does not come up.
        more = f"; its output is in {settings.log_file}" if settings.log_file else ""
        raise SparkUnavailable(settings.where, first_line(error) + more) from error


@contextmanager
def _stderr_to(path: str) -> Iterator[None]:
    """Let the JVM, which is started in the block, have a file for its stderr: it writes warnings there that say
    nothing to a user."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    own = os.dup(2)
    try:
        with open(path, "ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _java_options(settings: SparkSettings) -> str:
    log = settings.log_file or os.devnull
    options = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} -Ddbt.ducklake.log={log}"
    makes_one = "-XX:ArchiveClassesAtExit" in settings.config.get(OPTIONS, "")
    if settings.is_local and not makes_one and (archive := class_archive()).exists():
        options += f" {options_with(archive)}"
    return options


def _connected(settings: SparkSettings) -> SparkSession:
    assert settings.remote is not None
    try:
        session = SparkSession.builder.remote(settings.remote).create()
        session.version  # noqa: B018  the first question opens the connection
    except Exception as error:
        raise SparkUnavailable(settings.where, first_line(error)) from error
    _at_servers.append(session)
    return session  # type: ignore[no-any-return]


def _runtime(session: SparkSession, settings: SparkSettings) -> dict[str, str]:
    """The settings of the profile that a session may change; the others were given to the application."""
    found = {}
    for key, value in settings.config.items():
        try:
            if session.conf.isModifiable(key):
                found[key] = value
        except PySparkException:
            continue
    return found


def first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")
