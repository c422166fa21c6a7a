"""A graph for people and programs: text tree, Mermaid, Graphviz, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from headrace.graph.critical import critical_path
from headrace.graph.dag import Dag, Name

Label = Callable[[Name], str]
"""Returns what is shown beside a name, such as its mode and lag; may be empty."""


def as_text(dag: Dag[Name], label: Label[Name] | None = None) -> str:
    """Return a tree from the sources down to their consumers.

    A name with several producers is drawn whole below the first of them; elsewhere it is a line that ends in `…`. So a
    cycle ends where it comes back.

    Args:
        dag: The graph.
        label: Text shown after each name, where it is drawn whole.
    """
    lines: list[str] = []
    drawn: set[Name] = set()
    # a stack of what is still to be drawn (name, what stands before it, what stands before its consumers), as pipelines
    # may be deeper than Python recurses
    waiting = [(name, "", "") for name in reversed(dag.roots)]
    while waiting:
        name, head, tail = waiting.pop()
        if name in drawn:
            lines.append(f"{head}{name}{' …' if dag.consumers(name) else ''}")
            continue
        drawn.add(name)
        lines.append(head + _labelled(name, label))
        readers = dag.consumers(name)
        branches = [(reader, f"{tail}├─ ", f"{tail}│  ") for reader in readers[:-1]]
        branches += [(reader, f"{tail}└─ ", f"{tail}   ") for reader in readers[-1:]]
        waiting += reversed(branches)
    return "\n".join(lines)


def as_levels(dag: Dag[Name], seconds: Mapping[Name, float]) -> str:
    """Render names by their distance from the sources, and the critical path.

    The members of a cyclic component stand together, joined by `⇄`.

    Args:
        dag: The graph.
        seconds: How long each name takes, where that is known.
    """
    if not dag.names:
        return ""
    lines = [f"level {i}: {', '.join(_together(dag, names))}" for i, names in enumerate(dag.levels())]
    path = critical_path(dag, seconds)
    steps = " → ".join(f"{name} {seconds[name]:.2f} s" if name in seconds else str(name) for name in path)
    return "\n".join([*lines, f"critical path, {sum(seconds.get(n, 0.0) for n in path):.2f} s: {steps}"])


def as_mermaid(dag: Dag[Name], label: Label[Name] | None = None) -> str:
    """Return a Mermaid flowchart; sources are cylinders."""
    ids = _ids(dag)
    lines = ["flowchart LR"]
    for name in dag.names:
        text = _labelled(name, label, "<br/>").replace('"', "&quot;")
        lines.append(f'    {ids[name]}["{text}"]' if dag.producers(name) else f'    {ids[name]}[("{text}")]')
    lines += [f"    {ids[producer]} --> {ids[consumer]}" for producer, consumer in dag.edges]
    return "\n".join(lines)


def as_dot(dag: Dag[Name], label: Label[Name] | None = None) -> str:
    """Return a Graphviz digraph; sources are cylinders."""
    ids = _ids(dag)
    lines = ["digraph headrace {", "    rankdir=LR;", "    node [shape=box];"]
    for name in dag.names:
        text = json.dumps(_labelled(name, label, "\n"), ensure_ascii=False)
        shape = "" if dag.producers(name) else ", shape=cylinder"
        lines.append(f"    {ids[name]} [label={text}{shape}];")
    lines += [f"    {ids[producer]} -> {ids[consumer]};" for producer, consumer in dag.edges]
    return "\n".join([*lines, "}"])


def as_dict(
    dag: Dag[Name], label: Label[Name] | None = None, seconds: Mapping[Name, float] | None = None
) -> dict[str, object]:
    """Return plain JSON values: nodes in topological order with their level, and edges.

    Args:
        dag: The graph.
        label: What else to say of a name.
        seconds: How long names take, where that is known; then the critical path is told, too.
    """
    path = critical_path(dag, seconds) if seconds is not None else ()
    times = seconds or {}
    critical = {
        "names": [str(name) for name in path],
        "seconds": round(sum(times.get(name, 0.0) for name in path), 4),
    }
    level = {name: i for i, names in enumerate(dag.levels()) for name in names}
    return {
        "nodes": [
            {
                "name": str(name),
                "level": level[name],
                "source": not dag.producers(name),
                "cycle": [str(member) for member in dag.component(name)],
                "label": label(name) if label else "",
            }
            for name in dag.order()
        ],
        "edges": [{"from": str(producer), "to": str(consumer)} for producer, consumer in dag.edges],
        **({} if seconds is None else {"critical_path": critical}),
    }


def _together(dag: Dag[Name], names: tuple[Name, ...]) -> Iterator[str]:
    """Yield the names as text, those of a cyclic component in one."""
    for name in names:
        part = dag.component(name)
        if not part:
            yield str(name)
        elif name == part[0]:
            yield " ⇄ ".join(map(str, part if len(part) > 1 else part * 2))


def _ids(dag: Dag[Name]) -> dict[Name, str]:
    return {name: f"n{i}" for i, name in enumerate(dag.names, 1)}


def _labelled(name: Name, label: Label[Name] | None, separator: str = "  ") -> str:
    text = label(name) if label else ""
    return f"{name}{separator}{text}" if text else str(name)
