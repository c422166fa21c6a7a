"""Operation ids: one sequence per source, over all its mirrors, nodes and snapshots.

Every row that a landing adds to a change log has a number that is larger than those of all earlier landings, and that
no other row of the source ever has. The highest one is kept with the source's position. Numbers are not dense: mirrors
are written side by side, each with every n-th number, and so are the tasks of a large change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OP = "op"
"""In a source's position: the highest operation id so far."""

TASKS = 1 << 16
"""A large change is written by fewer tasks; each numbers its rows with a stride of so many."""

_SHIFT = 33
"""Spark's `monotonically_increasing_id` has the task above so many bits, the row below."""


def last_of(position: Mapping[str, Any] | None) -> int:
    """Return the highest operation id that a source has given; 0 before the first one."""
    return int((position or {}).get(OP, 0))


@dataclass(slots=True)
class OperationIds:
    """The numbers of one mirror in one landing.

    Args:
        first: The first number that it may give.
        stride: The next one is so much larger.
        last: The highest number given; smaller than `first` when there is none.
    """

    first: int
    stride: int = 1
    last: int = 0

    @property
    def _next(self) -> int:
        return self.first if self.last < self.first else self.last + self.stride

    def few(self) -> str:
        """Return SQL for the ids of rows that one task has."""
        return f"CAST({self._next} + {self.stride} * monotonically_increasing_id() AS BIGINT)"

    def gave(self, rows: int) -> None:
        """Note that so many rows were numbered by `few`, or that so many numbers are passed over."""
        if rows:
            self.last = self._next + self.stride * (rows - 1)

    def many(self) -> str:
        """Return SQL for the ids of rows that many tasks have."""
        number = "monotonically_increasing_id()"
        row, task = f"({number} & {(1 << _SHIFT) - 1})", f"shiftright({number}, {_SHIFT})"
        within = f"CASE WHEN {task} < {TASKS} THEN {row} * {TASKS} + {task} ELSE raise_error('too many tasks') END"
        return f"CAST({self._next} + {self.stride} * ({within}) AS BIGINT)"

    def gave_up_to(self, highest: int | None) -> None:
        """Note the highest number that `many` gave; None where there were no rows."""
        if highest is not None:
            self.last = max(self.last, highest)
