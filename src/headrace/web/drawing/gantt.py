"""Draws a run: what was refreshed when, and the way that decided how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headrace.units import seconds as in_seconds
from headrace.web.drawing.svg import element, picture, shortened

LEFT, WIDTH, ROW = 230.0, 760.0, 26.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A refresh in a run.

    Args:
        name: The stream table.
        begin: Seconds from the begin of the run.
        end: Likewise.
        kind: A class of the style sheet.
        hint: Shown to who points at it.
        href: Where it leads.
        stages: Name and seconds of its stages, in order.
        critical: Whether the run would have been shorter without it.
    """

    name: str
    begin: float
    end: float
    kind: str
    hint: str
    href: str
    stages: tuple[tuple[str, float], ...] = ()
    critical: bool = False


def gantt(rows: Sequence[Stretch], total: float) -> Markup:
    """Return the picture of a run that took `total` seconds."""
    scale = (WIDTH - LEFT - 60) / max(total, 1e-3)
    height = ROW * len(rows) + 24
    content = [*_axis(total, scale, height), *(_row(row, number, scale) for number, row in enumerate(rows))]
    label = f"{len(rows)} refreshes in {in_seconds(total)}"
    return picture(WIDTH, height, label, content, "gantt", whole=False)


def _axis(total: float, scale: float, height: float) -> Iterator[Markup]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = LEFT + total * share * scale
        yield element("line", x1=x, x2=x, y1=0, y2=height - 18, class_="gridline")
        yield element("text", in_seconds(total * share) if share else "0", x=x, y=height - 5, class_="axis centred")


def _row(row: Stretch, number: int, scale: float) -> Markup:
    y, x, width = number * ROW, LEFT + row.begin * scale, max(2.0, (row.end - row.begin) * scale)
    critical = " critical" if row.critical else ""
    parts = [
        element("title", row.hint),
        element("text", shortened(row.name, 32), x=LEFT - 8, y=y + 17, text_anchor="end", class_=f"row-name{critical}"),
        element("rect", x=x, y=y + 4, width=width, height=ROW - 8, rx=3, class_=f"bar bar-{row.kind}{critical}"),
        *_stages(row, x, y, scale),
        element("text", in_seconds(row.end - row.begin), x=x + width + 5, y=y + 17, class_="axis"),
    ]
    return element("a", [element("g", parts)], href=row.href, aria_label=row.hint)


def _stages(row: Stretch, x: float, y: float, scale: float) -> Iterator[Markup]:
    """Yield the borders between stages."""
    passed = 0.0
    for _, took in row.stages[:-1]:
        passed += took
        if row.begin + passed < row.end and took * scale > 3:
            yield element(
                "line", x1=x + passed * scale, x2=x + passed * scale, y1=y + 4, y2=y + ROW - 4, class_="stage"
            )
