"""Where files lie. A stored path is put together by plain concatenation, each piece only while the next is relative."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote


class StoredPath(NamedTuple):
    """A path as the metadata holds it: relative to what contains it, or complete."""

    text: str
    is_relative: bool

    def under(self, parent: str) -> str:
        return parent + self.text if self.is_relative else self.text


def stored_path(text: str | None, is_relative: bool | None) -> StoredPath:
    """NULL is the path of the parent itself. A query that does not decode its columns has 0 and 1 from SQLite."""
    return StoredPath("", True) if text is None else StoredPath(text, is_relative is None or bool(is_relative))


def path_below(folder: str, full: str) -> StoredPath:
    """How a file is stored: relative where it lies below the folder that contains it."""
    return StoredPath(full[len(folder) :], True) if full.startswith(folder) else StoredPath(full, False)


def plain(path: str) -> str:
    """One spelling for the paths of one file: whoever asks whether a file is in use must not be misled by `//`, `/./`,
    links between folders or the scheme's name."""
    scheme, separator, rest = path.partition("://")
    if not separator or scheme.lower() == "file":
        is_uri = bool(separator) or path[:5].lower() == "file:"
        local = unquote(rest if separator else path[5:]) if is_uri else path
        folder, name = os.path.split(local)
        return os.path.join(_real(folder), name) if name else _real(folder)
    scheme = scheme.lower()
    name = "s3" if scheme in ("s3a", "s3n") else scheme
    return f"{name}://{os.path.normpath(rest)}"


@lru_cache(10_000)
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def is_remote(path: str) -> bool:
    return "://" in path


def as_data_path(path: str) -> str:
    """A data path as a new lake stores it: complete, with `/` at the end."""
    full = path if is_remote(path) else os.path.abspath(os.path.expanduser(path)).replace(os.sep, "/")
    return full if full.endswith("/") else full + "/"


def same_data_path(asked: str, stored: str) -> bool:
    """Whether a data path given by the user is the stored one, which another client may have stored as it was typed."""
    return as_data_path(asked) == as_data_path(stored)
