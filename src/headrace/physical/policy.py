"""Policies by which the rows of a stage reach the stages that read it."""

from __future__ import annotations

from enum import StrEnum


class Policy(StrEnum):
    """How the rows of a stage reach the stages that read it."""

    MATERIALIZE = "MATERIALIZE"
    """Computed once, and kept in Spark's memory."""
    LOCAL = "LOCAL"
    """Materialised, and few: held by the driver as literal rows of the plans that read it. Decided at run time."""
    INLINE = "INLINE"
    """A subquery of each statement that reads it."""
    IF_NONEMPTY = "IF_NONEMPTY"
    """A subquery of the one statement that reads it, and of that only where its condition has rows."""
    STORED = "STORED"
    """Written to a stored table."""
