"""Where files lie: listing, reading ends of, moving and removing them, on local disks and in object stores.

Spark reads and writes the rows. This is for what the driver does with files as such.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from dbt.adapters.ducklake.spark.errors import DataPathNotWritable

# What java.net.URI leaves as it is in a path. Other ASCII is percent-encoded, as are spaces of any script.
_PLAIN_IN_URI = frozenset("/-_.!~*'():@&=+$,;")
# For Spark's readers: paths are no patterns, and a file that is missing or broken is an error whatever the settings.
WHOLE_FILES = {"__globPaths__": "false", "ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}


class FoundFile(NamedTuple):
    path: str
    size: int
    modified: datetime


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/?|\*|\?)", path)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(known.get(part) or re.escape(part) for part in parts))


def _moment(info: fs.FileInfo) -> datetime:
    """A file whose age nobody tells counts as new."""
    return datetime.fromtimestamp(info.mtime_ns / 1e9, UTC) if info.mtime_ns is not None else datetime.now(UTC)


@dataclass(frozen=True)
class Storage:
    """The file system of a data path. `settings` are Spark's, where those of an object store are found."""

    root: str
    settings: Mapping[str, str]

    @property
    def is_local(self) -> bool:
        return _scheme(self.root) in ("", "file")

    def files_below(self, folder: str) -> list[tuple[str, int]]:
        """Path and size of every file below a folder; nothing where there is no such folder."""
        return [(file.path, file.size) for file in self.found_below(folder)]

    def found_below(self, folder: str) -> list[FoundFile]:
        """Every file below a folder, with when it was written."""
        system, inner = self._opened(folder)
        found = system.get_file_info(fs.FileSelector(inner, allow_not_found=True, recursive=True))
        start = folder[: len(folder) - len(inner)] if folder.endswith(inner) else ""
        return [FoundFile(start + info.path, info.size, _moment(info)) for info in found if info.is_file]

    def matching(self, path: str) -> list[FoundFile]:
        """The file at a path, or those that a pattern names: `*` and `?` within a folder, `**` across folders."""
        if not _scheme(path):
            path = os.path.abspath(path)
        folder = path.split("*", 1)[0].split("?", 1)[0].rpartition("/")[0]
        wanted = _pattern(path)
        if folder == path.rpartition("/")[0] and not set("*?") & set(path):
            system, inner = self._opened(path)
            info = system.get_file_info(inner)
            return [FoundFile(path, info.size, _moment(info))] if info.is_file else []
        return sorted(file for file in self.found_below(folder) if wanted.fullmatch(file.path))

    def open(self, path: str) -> fs.NativeFile:
        system, inner = self._opened(path)
        return system.open_input_file(inner)

    def read(self, path: str) -> bytes:
        with self.open(path) as file:
            return bytes(file.read())

    def write(self, path: str, content: pa.Buffer) -> int:
        """Write a small file; its size."""
        system, inner = self._opened(path)
        with system.open_output_stream(inner) as file:
            file.write(content)
        return int(content.size)

    def create(self, path: str) -> fs.NativeFile:
        """A new file to write to, and the folders on its way."""
        system, inner = self._opened(path)
        if self.is_local:
            system.create_dir(str(PurePosixPath(inner).parent), recursive=True)
        return system.open_output_stream(inner)

    def move(self, source: str, target: str) -> None:
        """Move a file within a local disk; object stores cannot."""
        system, inner = self._opened(source)
        _, inner_target = self._opened(target)
        system.create_dir(str(PurePosixPath(inner_target).parent), recursive=True)
        system.move(inner, inner_target)

    def remove(self, path: str) -> None:
        """Remove a file; that it is gone already is fine."""
        system, inner = self._opened(path)
        if system.get_file_info(inner).type is not fs.FileType.NotFound:
            system.delete_file(inner)

    def try_remove(self, path: str) -> str | None:
        """Remove a file; why it cannot be, where it cannot."""
        try:
            self.remove(path)
        except (OSError, pa.ArrowException) as error:
            return str(error).splitlines()[0]
        return None

    def make_folder(self, path: str) -> None:
        system, inner = self._opened(path)
        system.create_dir(inner, recursive=True)

    def remove_folder(self, path: str) -> None:
        system, inner = self._opened(path)
        if system.get_file_info(inner).type is not fs.FileType.NotFound:
            system.delete_dir(inner)

    def check_writable(self, folder: str) -> None:
        """Write an empty file and remove it. OSError says what hinders."""
        system, inner = self._opened(folder)
        probe = f"{inner.rstrip('/')}/.dbt-ducklake-probe"
        system.create_dir(inner, recursive=True)
        with system.open_output_stream(probe) as file:
            file.write(b"")
        system.delete_file(probe)

    def _opened(self, path: str) -> tuple[fs.FileSystem, str]:
        scheme = _scheme(path)
        if scheme in ("", "file"):
            return fs.LocalFileSystem(), unquote(urlsplit(path).path) if scheme else path
        if scheme in ("s3", "s3a", "s3n"):
            return _s3(self.settings), path.split("://", 1)[1]
        system, inner = fs.FileSystem.from_uri(path)
        return system, inner


def check_data_path(lake: str, storage: Storage) -> None:
    """DataPathNotWritable where the lake's files cannot be written."""
    try:
        storage.check_writable(storage.root)
    except (OSError, pa.ArrowException) as error:
        raise DataPathNotWritable(lake, storage.root, str(error).splitlines()[0].rstrip(".")) from error


def spark_path(path: str) -> str:
    """The path as Spark's Hadoop file systems want it."""
    return f"s3a://{path.split('://', 1)[1]}" if _scheme(path) in ("s3", "s3n") else path


def file_uri(path: str) -> str:
    """The path as Spark's `_metadata.file_path` spells it."""
    scheme = _scheme(path)
    if scheme == "file":
        return path.replace("file:///", "file:/", 1)
    if not scheme:
        return "file:" + _encoded(path)
    scheme, rest = spark_path(path).split("://", 1)
    return f"{scheme}://{_encoded(rest)}"


def _encoded(path: str) -> str:
    return "".join(char if _is_plain(char) else quote(char, safe="") for char in path)


def _is_plain(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in _PLAIN_IN_URI
    category = unicodedata.category(char)
    return category[0] != "Z" and category != "Cc"


def _scheme(path: str) -> str:
    return path.split(":", 1)[0].lower() if "://" in path or path.startswith("file:") else ""


def _s3(settings: Mapping[str, str]) -> fs.S3FileSystem:
    """S3 as Spark's own settings describe it; what they leave out, the environment says."""
    prefix = "spark.hadoop.fs.s3a."
    found = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
    endpoint = found.get("endpoint")
    is_plain = found.get("connection.ssl.enabled", "true") == "false" or (endpoint or "").startswith("http://")
    given = {
        "access_key": found.get("access.key"),
        "secret_key": found.get("secret.key"),
        "session_token": found.get("session.token"),
        "region": found.get("endpoint.region"),
        "endpoint_override": endpoint,
        "scheme": "http" if is_plain else None,
    }
    return fs.S3FileSystem(**{key: value for key, value in given.items() if value is not None})
