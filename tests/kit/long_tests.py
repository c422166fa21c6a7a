"""Whether the long tests are meant: repetition that `make test` has no time for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")

LONG = bool(os.environ.get("HEADRACE_TEST_LONG"))


def one_in(number: int, cases: Sequence[Case], first: int = 0) -> Sequence[Case]:
    """Return some of many cases that prove much the same; all where the long tests are meant.

    Args:
        number: One in so many.
        cases: The cases.
        first: The first one, by number, so that another test can take others.
    """
    return cases if LONG else cases[first::number]


def begin_with(files: Sequence[str], items: list[pytest.Item], last: str | None = None) -> None:
    """Order tests: a long one left for the end keeps one process busy while the other has nothing to do.

    Args:
        files: Names of files with long tests, which are begun first.
        items: All tests.
        last: The file to leave for the end.
    """
    order = {**{name: at for at, name in enumerate(files)}, last: len(files) + 1}
    items.sort(key=lambda item: order.get(item.path.name, len(files)))
