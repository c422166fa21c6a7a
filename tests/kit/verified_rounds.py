"""Compares stream tables with their queries, over several rounds of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kit.long_tests import LONG

if TYPE_CHECKING:
    from headrace.api.facade import Headrace


def require_equal(hr: Headrace, names: Sequence[str], said: object, *, due: bool) -> None:
    """Require that stream tables equal their queries.

    Comparing takes as long as refreshing, and a table that differs is followed from there, and so differs on: `make
    test` looks where it is due, such as after the last of several changes, `make test-long` after each.

    Args:
        hr: The project.
        names: The stream tables.
        said: What was done to their sources, for the message.
        due: Whether `make test` looks, too.
    """
    if due or LONG:
        assert [found for found in hr.verify(names) if not found.ok] == [], said
