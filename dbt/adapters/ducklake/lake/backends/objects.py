"""One object in a store that fsspec knows: read whole, and written only over the version that the writer knows.

On S3 the store itself refuses to write over another version, and so does a local folder here. Of other stores fsspec
tells the version alone: between looking and writing there only the lock keeps others out.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dbt.adapters.ducklake.lake.errors import InvalidDescription, MetadataQueryFailed

_S3 = ("s3", "s3a", "r2")
# A condition on what is not there is answered with 404.
_REFUSED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404")


class Outdated(Exception):
    """The object is not at the version that it was to be written over: someone else wrote it."""


class Content(NamedTuple):
    data: bytes
    version: str


class StoredObject(ABC):
    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def version(self) -> str | None:
        """None where it is not there."""

    @abstractmethod
    def read(self) -> Content | None: ...

    @abstractmethod
    def _write(self, data: bytes, expected: str | None) -> str: ...

    @abstractmethod
    def remove(self) -> None: ...

    def write(self, data: bytes, expected: str | None) -> str:
        """Write over a version, None where there is to be none; the new version. Outdated."""
        try:
            return self._write(data, expected)
        except (Outdated, MetadataQueryFailed):
            # An answer that was lost on its way is asked for again by the store's client, and then refused.
            found = self.read()
            if found is not None and found.data == data:
                return found.version
            raise


def object_at(url: str, options: Mapping[str, Any]) -> StoredObject:
    scheme, _, path = url.partition("://")
    if scheme == "file":
        return LocalObject(url, Path(path))
    try:
        import fsspec

        # What a store's client keeps of listings is what was, and one retry of ours is enough.
        found = fsspec.filesystem("s3" if scheme in _S3 else scheme, **{"use_listings_cache": False, **options})
    except ImportError as error:
        raise InvalidDescription(
            f"`metadata` lies at {scheme}://, for which a package is missing: {error}.",
            "Install it: pip install 'dbt-ducklake[remote]' for S3, gcsfs for gs://, adlfs for abfs://.",
        ) from error
    except (ValueError, TypeError) as error:
        raise InvalidDescription(f"`metadata` lies at {scheme}://: {error}.", "Correct it, or `metadata_options`."
                                 ) from error  # fmt: skip
    return S3Object(url, found, path) if scheme in _S3 else FsspecObject(url, found, path)


class LocalObject(StoredObject):
    """A file. Who writes it holds a lock beside it, so that none comes between looking and writing."""

    def __init__(self, url: str, path: Path) -> None:
        super().__init__(url)
        self._path = path

    def version(self) -> str | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return f"{found.st_ino}-{found.st_mtime_ns}-{found.st_size}"

    def read(self) -> Content | None:
        with _told(self.url, "read"):
            # A file is replaced, never written over, so what is open stays what it was.
            try:
                with open(self._path, "rb") as file:
                    found = os.fstat(file.fileno())
                    return Content(file.read(), f"{found.st_ino}-{found.st_mtime_ns}-{found.st_size}")
            except FileNotFoundError:
                return None

    def _write(self, data: bytes, expected: str | None) -> str:
        import fcntl

        with _told(self.url, "written"), open(f"{self._path}.writing", "ab") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if self.version() != expected:
                raise Outdated(self.url)
            beside = f"{self._path}.{os.getpid()}"
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
            return str(self.version())

    def remove(self) -> None:
        with _told(self.url, "removed"):
            self._path.unlink(missing_ok=True)


class FsspecObject(StoredObject):
    def __init__(self, url: str, store: Any, path: str) -> None:
        super().__init__(url)
        self._store, self._path = store, path

    def version(self) -> str | None:
        with _told(self.url, "found"):
            return self._version()

    def _version(self) -> str | None:
        self._store.invalidate_cache()
        try:
            found = self._store.info(self._path)
        except FileNotFoundError:
            return None
        for name in ("ETag", "etag", "generation", "md5Hash", "content_md5"):
            if found.get(name):
                return str(found[name])
        return hashlib.sha256(self._store.cat_file(self._path)).hexdigest()

    def read(self) -> Content | None:
        with _told(self.url, "read"):
            while (version := self._version()) is not None:
                try:
                    data = self._store.cat_file(self._path)
                except FileNotFoundError:
                    continue
                if self._version() == version:
                    return Content(data, version)
            return None

    def _write(self, data: bytes, expected: str | None) -> str:
        with _told(self.url, "written"):
            if self._version() != expected:
                raise Outdated(self.url)
            self._store.pipe_file(self._path, data)
            return str(self._version())

    def remove(self) -> None:
        with _told(self.url, "removed"):
            try:
                self._store.rm_file(self._path)
            except FileNotFoundError:
                return


class S3Object(FsspecObject):
    def _write(self, data: bytes, expected: str | None) -> str:
        bucket, _, key = self._path.partition("/")
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        with _told(self.url, "written", _is_refusal):
            answer = self._store.call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)
            return str(answer["ETag"])


def _is_refusal(error: BaseException) -> bool:
    answer = getattr(error.__cause__ or error, "response", None) or {}
    return answer.get("Error", {}).get("Code") in _REFUSED


@contextmanager
def _told(url: str, what: str, is_refusal: Callable[[BaseException], bool] = lambda error: False) -> Iterator[None]:
    try:
        yield
    except (Outdated, MetadataQueryFailed):
        raise
    except Exception as error:
        # Each store's client raises errors of its own.
        if is_refusal(error):
            raise Outdated(url) from error
        raise MetadataQueryFailed(url, f"it could not be {what}: {error or type(error).__name__}") from error
