"""Whether the long tests are meant: repetition that `make test` has no time for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")

LONG = bool(os.environ.get("HEADRACE_TEST_LONG"))


def every_second(cases: Sequence[Case], first: int = 0) -> Sequence[Case]:
    """Return half of many cases that prove much the same; all where the long tests are meant.

    Args:
        cases: The cases.
        first: 0 for one half, 1 for the other.
    """
    return cases if LONG else cases[first::2]


def begin_with(files: Sequence[str], items: list[pytest.Item], last: str | None = None) -> None:
    """Order tests: a long one left for the end keeps one process busy while the other has nothing to do.

    Args:
        files: Names of files with long tests, which are begun first.
        items: All tests.
        last: The file to leave for the end.
    """
    order = {**{name: at for at, name in enumerate(files)}, last: len(files) + 1}
    items.sort(key=lambda item: order.get(item.path.name, len(files)))
