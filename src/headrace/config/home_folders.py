"""Folders written with a tilde."""

from __future__ import annotations

from pathlib import Path

from headrace.errors import UserError


def expanded(path: str | Path) -> Path:
    """Return a path with the home folder of a user in place of `~` or `~user`.

    Raises:
        UserError: `CONFIG_INVALID` where there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        message = f"There is no home folder for {str(path).partition('/')[0]} in {path}."
        raise UserError("CONFIG_INVALID", message, hint="Write the whole path.") from None
