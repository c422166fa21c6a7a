"""Refresh modes as users write them."""

from __future__ import annotations

from headrace.errors import UserError
from headrace.results.refresh_results import RefreshMode


def parse_mode(text: str) -> RefreshMode:
    """Return the refresh mode of that name, in any case.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    try:
        return RefreshMode(text.upper())
    except ValueError:
        raise UserError(
            "INVALID_OPTION", f"'{text}' is no refresh mode.", hint="Use AUTO, FULL or DIFFERENTIAL."
        ) from None
