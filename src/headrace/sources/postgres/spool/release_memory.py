"""Gives memory back to the system.

A landing takes what its rows need, and the next one mostly needs less. The allocators keep what was free for a moment,
in pieces between what was not: a process that lands all day would hold a little more every hour.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Return unused memory to the operating system."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if (trim := _trimmer()) is not None:
        trim(0)


@cache
def _trimmer() -> Callable[[int], int] | None:
    """Return glibc's `malloc_trim`; None under another allocator."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found
