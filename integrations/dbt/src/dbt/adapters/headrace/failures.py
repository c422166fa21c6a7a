"""Headrace's errors as dbt's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError

from headrace.errors import HeadraceError

logger = AdapterLogger("Headrace")


@contextmanager
def as_dbt_error(kind: type[Exception] = DbtDatabaseError) -> Iterator[None]:
    """Turn Headrace's errors into dbt's; the text stays Headrace's: code, place, reason, remedy.

    Args:
        kind: Which of dbt's.
    """
    try:
        yield
    except HeadraceError as error:
        logger.debug(f"{type(error).__name__}: {error}")
        raise kind(str(error)) from None
