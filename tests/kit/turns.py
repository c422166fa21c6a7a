"""Tests that take turns: `make test` plays a third of the slow ones, and three commits in a row play all of them.

Which third a test belongs to is decided by its name, so that another test that comes or goes moves none.
"""

from __future__ import annotations

import os
import zlib

TURNS = 3
"""So many commits in a row play every test."""

TURN = os.environ.get("HEADRACE_TEST_TURN", "")
"""The number of the commit whose turn it is (`scripts/commit-number`); `all`, or nothing, plays all tests."""


def is_played(name: str, turn: str = TURN) -> bool:
    """Return whether it is a test's turn.

    Args:
        name: The test's name, as pytest gives it.
        turn: As of `TURN`.

    Raises:
        ValueError: The turn is neither a number nor `all`.
    """
    return turn in ("", "all") or zlib.crc32(name.encode()) % TURNS == int(turn) % TURNS
