"""Table expressions that read only the columns known at definition."""

from __future__ import annotations

from headrace.names import quote


def held_to(expression: str, columns: tuple[str, ...] | None) -> str:
    """Return a table expression restricted to some columns.

    `SELECT *` means the columns there were at definition.
    """
    if columns is None:
        return expression
    return f"(SELECT {', '.join(quote(c) for c in columns)} FROM {expression})"
