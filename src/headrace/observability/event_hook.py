"""Calls a function of the user's with what happens."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.errors import UserError
from headrace.events import Events, Notice
from headrace.observability.event_delivery import Document, EventDelivery

Call = Callable[[Document], Any]
"""Receives an event as `run --json` prints it; what it returns is ignored."""


class Hook(EventDelivery):
    """Calls a function with events while open.

    A function that raises is reported once, until it takes an event of that kind, and called again with the next event.

    Args:
        call: The function.
        events: What is listened to.
    """

    def __init__(self, call: Call, events: Events) -> None:
        self._name = getattr(call, "__qualname__", repr(call))
        super().__init__(events, "headrace-hook", f"The event hook {self._name}")
        self._call = call
        self._told: object = None

    def deliver(self, document: Document) -> None:
        """Call the function."""
        try:
            self._call(document)
            if self._told == document["event"]:
                self._told = None
        except Exception as error:
            if self._told is None:
                self._told = document["event"]
                self._events.emit(Notice(f"The event hook {self._name} failed; it is called again. {error!r}"))


def load_hook(text: str, folder: Path) -> Call:
    """Return the function that a setting names.

    Args:
        text: `module:function`; the function may be an attribute of something in the module (`module:object.method`).
        folder: Modules are looked for here, too, after all other places.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    module, _, path = text.partition(":")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:  # a module of the user's own may fail in any way
        raise _unusable(text, f"{type(error).__name__}: {error}") from error
    if not callable(found):
        raise _unusable(text, "It cannot be called.")
    return found  # type: ignore[no-any-return]


def _unusable(text: str, detail: str) -> UserError:
    return UserError(
        "CONFIG_INVALID",
        f"on_event is {text!r}, which is no function that can be called.",
        detail=detail,
        hint="Write module:function, of a module in the project folder or one that is installed.",
    )
