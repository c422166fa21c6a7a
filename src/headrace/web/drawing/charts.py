"""Bar charts of past refreshes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headrace.web.drawing.svg import element, picture

WIDTH, HEIGHT = 640.0, 150.0
LEFT, BOTTOM, TOP = 62.0, 18.0, 10.0
FAR_APART = 60.0
"""Ratio of the largest value to the median from which on heights are logarithms."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A refresh.

    Args:
        value: How high.
        kind: A class of the style sheet.
        hint: Shown to who points at it.
        tick: Another value, drawn as a line across, such as an estimate; None for none.
    """

    value: float
    kind: str
    hint: str
    tick: float | None = None


def bar_chart(label: str, bars: Sequence[Bar], words: Callable[[float], str]) -> Markup:
    """Return a chart, oldest bar first.

    Args:
        label: What it shows.
        bars: The bars.
        words: Writes a value, for the axis.
    """
    if not bars:
        text = element("text", "Nothing yet.", x=LEFT, y=HEIGHT / 2, class_="axis")
        return picture(WIDTH, HEIGHT, f"{label}: nothing yet", [text], "chart")
    values = sorted([b.value for b in bars] + [b.tick for b in bars if b.tick is not None])
    most = values[-1] if values[-1] > 0 else 1.0
    middle = values[len(values) // 2]
    scale = _logarithmic(most, values) if middle > 0 and most / middle > FAR_APART else (lambda v: v / most)
    content = [*_axis(most, scale, words), *_bars(bars, scale)]
    return picture(WIDTH, HEIGHT, f"{label}: {len(bars)} refreshes, the largest {words(most)}", content, "chart")


def _logarithmic(most: float, values: Sequence[float]) -> Callable[[float], float]:
    least = next((v for v in values if v > 0), most) / 2
    span = math.log(most / least) or 1.0
    return lambda v: max(0.0, math.log(max(v, least) / least) / span)


def _axis(most: float, scale: Callable[[float], float], words: Callable[[float], str]) -> Iterator[Markup]:
    shown: set[str] = set()
    for share in (1.0, 0.1, 0.5):
        y, text = _height(scale(most * share)), words(most * share)
        if text in shown or any(abs(y - other) < 16 for other in (_height(scale(most)),) if share < 1):
            continue
        shown.add(text)
        yield element("line", x1=LEFT, x2=WIDTH, y1=y, y2=y, class_="gridline")
        yield element("text", text, x=LEFT - 6, y=y + 4, text_anchor="end", class_="axis")
    yield element("line", x1=LEFT, x2=WIDTH, y1=_height(0), y2=_height(0), class_="baseline")


def _bars(bars: Sequence[Bar], scale: Callable[[float], float]) -> Iterator[Markup]:
    step = (WIDTH - LEFT) / max(len(bars), 20)
    for number, bar in enumerate(bars):
        x, top = LEFT + number * step, _height(scale(bar.value))
        parts = [
            element("title", bar.hint),
            element("rect", x=x, y=TOP, width=step, height=HEIGHT - TOP - BOTTOM, class_="reach"),
            element(
                "rect",
                x=x + step * 0.12,
                y=min(top, _height(0) - 1),
                width=step * 0.76,
                height=max(1.0, _height(0) - top),
                class_=f"bar bar-{bar.kind}",
            ),
        ]
        if bar.tick is not None:
            y = _height(scale(bar.tick))
            parts.append(element("line", x1=x, x2=x + step, y1=y, y2=y, class_="tick"))
        yield element("g", parts)


def _height(share: float) -> float:
    return TOP + (1 - min(1.0, max(0.0, share))) * (HEIGHT - TOP - BOTTOM)
