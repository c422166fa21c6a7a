"""Whether the long tests are meant: repetition that `make test` has no time for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")

LONG = bool(os.environ.get("HEADRACE_TEST_LONG"))


def every_second(cases: Sequence[Case], first: int = 0) -> Sequence[Case]:
    """Return half of many cases that prove much the same; all where the long tests are meant.

    Args:
        cases: The cases.
        first: 0 for one half, 1 for the other.
    """
    return cases if LONG else cases[first::2]
