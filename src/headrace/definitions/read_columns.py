"""Table expressions that read only the columns known at definition."""

from __future__ import annotations

from headrace.names import quote


def held_to(expression: str, columns: tuple[str, ...] | None) -> str:
    """Return a table expression restricted to the columns of a definition.

    `SELECT *` means the columns there were when the table was defined.

    Args:
        expression: The table expression.
        columns: The columns; None: all of them.
    """
    if columns is None:
        return expression
    return f"(SELECT {', '.join(quote(c) for c in columns)} FROM {expression})"
