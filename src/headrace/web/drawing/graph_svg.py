"""Draws a graph: boxes that are links, lines that tell which columns are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from headrace.web.drawing.graph_layout import HEIGHT, WIDTH, Layout
from headrace.web.drawing.svg import element, picture, shortened

MARGIN = 12.0
LETTERS = 28
"""Letters of a name that fit into a box."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A box.

    Args:
        title: What it is called.
        state: A class of the style sheet, and a word that says the same.
        line: Below its name.
        href: Where it leads; None for nowhere.
        hint: Shown to who points at it.
        focus: Whether the picture is about it.
    """

    title: str
    state: str
    line: str
    href: str | None
    hint: str
    focus: bool = False


def graph_svg(
    places: Layout[str],
    nodes: Mapping[str, GraphNode],
    columns: Mapping[tuple[str, str], str],
    groups: Mapping[str, tuple[str, ...]],
) -> Markup:
    """Return the picture.

    Args:
        places: Where everything is.
        nodes: The boxes.
        columns: For edges, which columns are read, in words.
        groups: Names that are published together, by group.
    """
    content = [
        element("g", _parts(places, nodes, columns, groups), transform=f"translate({MARGIN:.0f} {MARGIN + 14:.0f})")
    ]
    label = f"Graph of {len(nodes)} tables; each leads to its page"
    return picture(places.width + 2 * MARGIN, places.height + 2 * MARGIN + 20, label, content, "graph", whole=False)


def _parts(
    places: Layout[str],
    nodes: Mapping[str, GraphNode],
    columns: Mapping[tuple[str, str], str],
    groups: Mapping[str, tuple[str, ...]],
) -> Iterator[Markup]:
    for group, members in groups.items():
        inside = [places.places[name] for name in members if name in places.places]
        if len(inside) > 1:
            yield _group(group, inside)
    for (producer, consumer), points in places.edges.items():
        words = columns.get((producer, consumer), "")
        hint = f"{consumer} reads {producer}" + (f": {words}" if words else "")
        yield element(
            "g",
            [element("title", hint), element("path", d=_curve(points), class_="edge"), _wide(points)],
            class_="edge-group",
            data_from=producer,
            data_to=consumer,
        )
    for name, (x, y) in places.places.items():
        yield _box(name, nodes[name], x, y)


def _box(name: str, node: GraphNode, x: float, y: float) -> Markup:
    parts = [
        element("title", node.hint),
        element("rect", width=WIDTH, height=HEIGHT, rx=8, class_=f"box state-{node.state}"),
        element("rect", width=6.0, height=HEIGHT, rx=3, class_=f"mark mark-{node.state}"),
        element("text", shortened(node.title, LETTERS), x=16, y=22, class_="node-title"),
        element("text", shortened(node.line, LETTERS + 6), x=16, y=40, class_="node-line"),
    ]
    classes = "node focus" if node.focus else "node"
    inside = element("g", parts, transform=f"translate({x:.1f} {y:.1f})", class_=classes, data_name=name)
    return inside if node.href is None else element("a", [inside], href=node.href, aria_label=node.hint)


def _group(name: str, inside: list[tuple[float, float]]) -> Markup:
    left, top = min(x for x, _ in inside) - 8, min(y for _, y in inside) - 8
    right, bottom = max(x for x, _ in inside) + WIDTH + 8, max(y for _, y in inside) + HEIGHT + 8
    return element(
        "g",
        [
            element("title", f"Published together: group {name}"),
            element("rect", x=left, y=top, width=right - left, height=bottom - top, rx=12, class_="together"),
            element("text", f"group {shortened(name, LETTERS)}", x=left + 8, y=top - 3, class_="group-title"),
        ],
    )


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return a smooth line through points, which leaves and arrives horizontally."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in points[1:]:
        if y == to_y:
            parts.append(f"L{to_x:.1f} {to_y:.1f}")
        else:
            middle = (x + to_x) / 2
            parts.append(f"C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return " ".join(parts)


def _wide(points: Sequence[tuple[float, float]]) -> Markup:
    """Return an invisible line that is easy to point at."""
    return element("path", d=_curve(points), class_="edge-reach")
