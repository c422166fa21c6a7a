"""Reaches files of an object store from this process, without Spark.

Locations are known to everybody who reads a file, and how to reach it is a matter of the project that it belongs to. So
each project says once, when it is opened, what its warehouse needs, and a file is read as the warehouse that it lies
in, or else as another one in the same bucket.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from headrace.lakes.storage_settings import IMPLEMENTATION

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

SECONDS = "10"
"""Seconds that connecting to a store may take; the library tries again by itself."""

WAITS = (0.2, 1.0, 3.0)
"""Seconds between tries to read a file of a store that is overloaded."""

_PASSING = re.compile(r"HTTP status 5\d\d|INTERNAL_FAILURE|SLOW_DOWN|SERVICE_UNAVAILABLE|THROTTLING|NETWORK_CONNECTION")

_REFUSED = re.compile(r"ACCESS_DENIED|HTTP status 403")

_OPENERS: dict[str, FileIO] = {}
_KNOWN: dict[str, Mapping[str, str]] = {}
_lock = threading.Lock()


def reach_by(warehouse: str, properties: Mapping[str, str]) -> None:
    """Have a warehouse's files read with these properties from now on.

    Args:
        warehouse: A URL; a folder needs no properties.
        properties: As Iceberg names them: `s3.endpoint` and the like.
    """
    if "://" not in warehouse:
        return
    with _lock:
        _KNOWN.pop(warehouse, None)  # the one that was told last comes last
        _KNOWN[warehouse] = dict(properties)


def iceberg_access(location: str) -> Mapping[str, str] | None:
    """Return the properties by which Iceberg alone reaches a location.

    None where it goes by the file systems of Hadoop, as all others in Spark do.

    Args:
        location: A path or URL.
    """
    given = _given(location)
    return given if IMPLEMENTATION in given else None


def properties_at(location: str) -> dict[str, str]:
    """Return the properties that a location is reached by, as far as any are known."""
    # the implementation that is named there is one of Java's; Python's own follows from the location
    timeouts = {"s3.connect-timeout": SECONDS, "s3.request-timeout": "60"}
    return {**timeouts, **{name: value for name, value in _given(location).items() if name != IMPLEMENTATION}}


def _given(location: str) -> Mapping[str, str]:
    with _lock:  # projects may be opened meanwhile
        warehouses = dict(_KNOWN)
    inside = [known for known in warehouses if location.startswith(known.rstrip("/") + "/")]
    found = max(inside, key=len) if inside else _neighbour(location, warehouses)
    return warehouses[found] if found is not None else {}


def file_io(location: str) -> FileIO:
    """Return what opens the file at a location; kept, because it keeps connections.

    Args:
        location: A URL.
    """
    from pyiceberg.io import load_file_io

    url = urlsplit(location)
    properties = properties_at(location)
    key = "\n".join((url.scheme, url.netloc, *(f"{k}={v}" for k, v in sorted(properties.items()))))
    with _lock:
        if key not in _OPENERS:
            _OPENERS[key] = load_file_io(properties, location)
        return _OPENERS[key]


def file_system(location: str) -> tuple[Any, str]:
    """Return Arrow's file system that has a location, and the location's path in it.

    Args:
        location: A path, or a URL.
    """
    from pyarrow import fs

    if "://" not in location:
        return fs.LocalFileSystem(), location
    if urlsplit(location).scheme == "file":
        found: tuple[Any, str] = fs.FileSystem.from_uri(location)
        return found
    files: Any = file_io(location)  # pyiceberg's own by Arrow, for every store that Arrow knows
    scheme, host, path = files.parse_location(location)
    return files.fs_by_scheme(scheme, host), path


def read_file(location: str) -> bytes:
    """Return the contents of a file of an object store.

    A store that is overloaded is asked again: Arrow's client does not where the store's answer is longer than what was
    asked for, as an error is.

    Args:
        location: A URL.
    """
    for wait in WAITS:
        try:
            return _read(location)
        except FileNotFoundError:
            raise
        except OSError as error:
            if _REFUSED.search(str(error)):
                raise OSError(f"{error} {_refusal(location)}") from error
            if not _PASSING.search(str(error)):
                raise
        time.sleep(wait)
    return _read(location)


def _read(location: str) -> bytes:
    with file_io(location).new_input(location).open() as stream:
        return stream.read()


def _refusal(location: str) -> str:
    """Return why a store refuses.

    Reading begins with the size of a file, and an answer to that has no words.
    """
    from pyarrow.fs import FileSelector

    try:
        files, path = file_system(location)
        files.get_file_info(FileSelector(path.rpartition("/")[0]))
    except Exception as error:  # whatever the store's library is, this is only to say more
        return str(error)
    return ""


def writing_fails(warehouse: str) -> str | None:
    """Write a small file to a warehouse and delete it; return why that fails, if it does.

    Args:
        warehouse: A URL.
    """
    location = f"{warehouse.rstrip('/')}/.headrace-{uuid.uuid4().hex}"
    try:
        files = file_io(location)
        with files.new_output(location).create() as stream:
            stream.write(b"headrace")
        files.delete(location)
    except Exception as error:  # every store's library has errors of its own
        return " ".join(str(error).split()) or type(error).__name__
    return None


def _neighbour(location: str, warehouses: Iterable[str]) -> str | None:
    """Return the known warehouse in the same bucket, or else store, as a location outside."""
    url = urlsplit(location)
    alike = [known for known in warehouses if urlsplit(known).scheme == url.scheme]
    same = [known for known in alike if urlsplit(known).netloc == url.netloc]
    return next(reversed(same or alike), None)
