"""Has files seem to be another user's, which only root could make them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STRANGER = 65534


def belongs_to_another_user(path: Path, monkeypatch: pytest.MonkeyPatch, owner: int = STRANGER) -> None:
    """Have a path itself, not what it leads to, be somebody else's while a test runs."""
    known = os.lstat(path)

    def changed(look: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def answer(*args: Any, **named: Any) -> os.stat_result:
            found = look(*args, **named)
            if not os.path.samestat(found, known):
                return found
            _, (numbers, others) = found.__reduce__()  # type: ignore[misc]
            return os.stat_result((*numbers[:4], owner, *numbers[5:]), others)

        return answer

    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, changed(getattr(os, name)))
