"""Sends several requests at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

AT_ONCE = 8
"""Requests at a time."""

Asked = TypeVar("Asked")
Told = TypeVar("Told")


def side_by_side(ask: Callable[[Asked], Told], each: Sequence[Asked]) -> dict[Asked, Told]:
    """Ask for each of several things; the first error is raised once all have ended."""
    if len(each) < 2:
        return {one: ask(one) for one in each}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="headrace-lake") as pool:
        return dict(zip(each, pool.map(ask, each), strict=True))
