"""Pages: templates and their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.web.site import Site


@dataclass(frozen=True, slots=True)
class Page:
    """An answer for people.

    Args:
        template: Of the folder of templates.
        values: What it shows.
        status: HTTP's.
    """

    template: str
    values: dict[str, Any] = field(default_factory=dict)
    status: int = 200


Given = Mapping[str, str]
"""Parameters of the path and of the query."""

View = Callable[[Site, Given], Page]


def number(given: Given, name: str, default: int, most: int) -> int:
    """Return a parameter as a number from 1 to `most`; the default for what is none."""
    text = given.get(name, "")
    return min(max(1, int(text)), most) if text.isdecimal() and len(text) < 10 else default


def not_found(what: str) -> Page:
    """Return the page for what there is not."""
    return Page("message.html", {"title": "Not found", "message": what, "remedy": None}, 404)
