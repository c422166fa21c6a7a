"""Templates, escaped throughout, with words for numbers and moments."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from headrace import units
from headrace.web.drawing.svg import element


@cache
def environment() -> Environment:
    """Return what makes pages of templates."""
    made = Environment(
        loader=PackageLoader("headrace.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "count": units.count,
        "seconds": units.seconds,
        "span": _span,
        "size": lambda value: units.NOTHING if value is None else units.size(int(value)),
        "moment": moment,
        "ago": ago,
        "table_url": table_url,
        "percent": lambda value: units.NOTHING if value is None else f"{100 * value:.1f} %",
    }
    return made


def render(template: str, values: dict[str, Any]) -> str:
    """Return a page."""
    return environment().get_template(template).render(values)


def table_url(name: object) -> str:
    """Return where the page of a stream table is."""
    return f"/tables/{quote(str(name), safe='')}"


def moment(value: dt.datetime | None) -> Markup | str:
    """Return a moment in UTC, as browsers elsewhere look at this, too."""
    if value is None:
        return units.NOTHING
    at = value.astimezone(dt.UTC)
    return element("time", f"{at:%Y-%m-%d %H:%M:%S}", datetime=at.isoformat(timespec="seconds"))


def ago(value: dt.datetime | None) -> Markup | str:
    """Return how long ago a moment was, with the moment for who points at it."""
    if value is None:
        return "never"
    at = value.astimezone(dt.UTC)
    words = units.ago(at, dt.datetime.now(dt.UTC))
    return element("time", words, datetime=at.isoformat(timespec="seconds"), title=f"{at:%Y-%m-%d %H:%M:%S} UTC")


def _span(value: float | None) -> str:
    return units.NOTHING if value is None else units.span(value)
