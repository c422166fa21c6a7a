"""Draws the curves of `bench growth` as SVG.

`python -m bench.growth_picture POINTS.json LINES seconds|processor > PICTURE.svg`
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WALL, PROCESSOR = "seconds", "processor"
MEASURES = {WALL: "seconds", PROCESSOR: "seconds of processor time"}
LEFT, RIGHT, TOP, BOTTOM = 92, 570, 76, 300
CURVES = (
    ("recomputed", "w", "plain Spark overwrites"),
    ("everywhere", "v", "refresh, keys everywhere"),
    ("close", "t", "refresh, keys close together"),
)
"""Each curve: the field of its points, its class, its name."""
APART = 34
"""Pixels between the names of two curves, at least."""
STYLE = """\
  svg { --paper: #ffffff; --ink: #1f2933; --soft: #5b6b7b; --line: #d5dde3; --t: #00796b; --v: #5b4bc4; --w: #b4540a; }
  @media (prefers-color-scheme: dark) { svg { --paper: #1b2129; --ink: #e6edf3; --soft: #a3b1c0; --line: #38434f;
    --t: #4fc3b4; --v: #a99cf5; --w: #f0a35e; } }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); } .s { font-size: 12px; fill: var(--soft); }
  .b { font-size: 15px; font-weight: 600; } .c { text-anchor: middle; } .e { text-anchor: end; }
  .paper { fill: var(--paper); stroke: var(--line); } .grid { stroke: var(--line); }
  .t { --own: var(--t); } .v { --own: var(--v); } .w { --own: var(--w); }
  .curve { fill: none; stroke: var(--own); stroke-width: 2.5; stroke-linejoin: round; }
  .dot { fill: var(--own); stroke: var(--paper); stroke-width: 1.5; } .name { fill: var(--own); font-weight: 600; }
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One scale, and the seconds of all refreshes of each kind, and of recomputing."""

    scale: float
    close: float
    everywhere: float
    recomputed: float


def draw(points: Sequence[Point], lines: int, measure: str = WALL) -> str:
    """Draw seconds over scale, both from nothing, so that a straight line means what it looks like.

    Args:
        points: By scale, upwards.
        lines: How many line items changed each time.
        measure: What the points are.
    """
    highest = max(float(getattr(point, field)) for point in points for field, *_ in CURVES)
    step = _step(highest)
    most = step * math.ceil(highest / step)
    widest = points[-1].scale

    def x(scale: float) -> float:
        return LEFT + (RIGHT - LEFT) * scale / widest

    def y(seconds: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * seconds / most

    told = "; ".join(
        f"scale {p.scale:g}: " + ", ".join(f"{name} {getattr(p, field):.0f} s" for field, _, name in CURVES)
        for p in points
    )
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 360" width="800" height="360" role="img" '
        'aria-labelledby="t d">',
        '<title id="t">Cost follows the change, not the data</title>',
        f'<desc id="d">{MEASURES[measure].capitalize()} of all queries that read what changed, {lines:,} line items '
        f"each time. {told}.</desc>",
        f"<style>\n{STYLE}</style>",
        '<rect class="paper" x=".5" y=".5" width="799" height="359" rx="10"/>',
        f'<text class="b" x="24" y="34">The same {lines:,} changed line items, over ever more data</text>',
        f'<text class="s" x="24" y="54">{MEASURES[measure]} for all of TPC-H’s queries that read them</text>',
    ]
    for at in range(round(most / step) + 1):
        height = y(at * step)
        parts.append(f'<path class="grid" d="M{LEFT} {height:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="s e" x="{LEFT - 8}" y="{height + 4:.1f}">{at * step:g}</text>')
    for point in points:
        where, items = x(point.scale), f"{round(point.scale * 6)} M" if point.scale * 6 >= 1 else "few"
        parts.append(f'<path class="grid" d="M{where:.1f} {BOTTOM}v5"/>')
        parts.append(f'<text class="c" x="{where:.1f}" y="{BOTTOM + 22}">{point.scale:g}</text>')
        parts.append(f'<text class="s c" x="{where:.1f}" y="{BOTTOM + 38}">{items}</text>')
    parts.append(f'<text class="s e" x="{LEFT - 8}" y="{BOTTOM + 22}">scale</text>')
    parts.append(f'<text class="s e" x="{LEFT - 8}" y="{BOTTOM + 38}">line items</text>')
    below = BOTTOM + APART / 2
    for field, shade, name in reversed(CURVES):
        places = [(x(point.scale), y(getattr(point, field))) for point in points]
        parts.append(f'<path class="curve {shade}" d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in places)}"/>')
        parts += [f'<circle class="dot {shade}" cx="{a:.1f}" cy="{b:.1f}" r="4.5"/>' for a, b in places]
        below = min(below - APART, places[-1][1] - 2)
        parts.append(f'<text class="name {shade}" x="{RIGHT + 14}" y="{below:.1f}">{name}</text>')
        seconds = f"{getattr(points[-1], field):.0f} s"
        if len(points) > 1:
            seconds += f", {getattr(points[-1], field) / getattr(points[0], field):.1f} × scale {points[0].scale:g}"
        parts.append(f'<text class="s" x="{RIGHT + 14}" y="{below + 15:.1f}">{seconds}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _step(most: float) -> float:
    """A round distance between lines of the grid, for about five of them."""
    power = 10.0 ** math.floor(math.log10(most / 5))
    return power * next(factor for factor in (1, 2, 5, 10) if power * factor * 5 >= most)


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text())[sys.argv[3]]
    print(draw([Point(**point) for point in found], int(sys.argv[2]), sys.argv[3]), end="")
