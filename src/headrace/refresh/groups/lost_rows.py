"""Computes a refresh again whose rows an executor of Spark's has taken along.

The rows of a refresh's steps are kept without what they were computed from, on the executors of a cluster. One that is
killed, or that leaves, takes its part along, and whoever reads it fails. Nothing was published by then, and what was
written to `staging` can be put back, so that the refresh is computed anew with the executors that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.errors import HeadraceError

T = TypeVar("T")

LOST = "EXECUTOR_LOST"
"""Code of the error."""

ATTEMPTS = 3
"""Whoever loses executors as often as that, loses them because of what they are asked to do."""


def computed_again(compute: Callable[[], T], put_back: Callable[[HeadraceError], object]) -> T:
    """Compute something, and again where an executor was lost.

    Args:
        compute: Computes it, each time from what is published.
        put_back: Undoes what was written, and forgets what was kept; called before each new attempt.

    Raises:
        HeadraceError: Of the last attempt, or any other error than that of a lost executor.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return compute()
        except HeadraceError as error:
            if error.code != LOST:
                raise
            put_back(error)
    return compute()
