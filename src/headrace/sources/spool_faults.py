"""Tells that files of captured rows cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import EnvironmentFault
from headrace.lakes.store_errors import store_error


@contextmanager
def writing(folder: str) -> Iterator[None]:
    """Have what fails inside told as a fault.

    Args:
        folder: Where files are written, a path or URL.

    Raises:
        EnvironmentFault: `SPOOL_NOT_WRITABLE`, or how an object store refuses (`STORE_DENIED` and the like).
    """
    try:
        yield
    except OSError as error:
        raise store_error(error) or EnvironmentFault(
            "SPOOL_NOT_WRITABLE",
            f"Captured rows could not be written to {folder}.",
            detail=str(error),
            hint="Make room there and allow this user to write.",
        ) from error
