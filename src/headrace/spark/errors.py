"""PySpark's exceptions as Headrace errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import HeadraceError


@contextmanager
def translated(sql: str | None = None) -> Iterator[None]:
    """Turn what Spark raises within the block into a `HeadraceError`."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        from headrace.spark.translate import translate

        raise translate(error, sql) from error
