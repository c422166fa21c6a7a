"""Looks at the slots of several nodes: each is remembered and judged apart. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.source_kind import ImpendingLoss, Json, Outlook

Judge = Callable[[tuple[Json, ...], Json], Outlook]
"""Compares a new look at a node with those that are remembered of it."""


def looks_on(looks: Sequence[Json], node: str | None) -> tuple[Json, ...]:
    """Return the looks at one node, oldest first; at the only server where it is None."""
    if node is None:
        return tuple(look for look in looks if NODES not in look)
    return tuple(look[NODES][node] for look in looks if node in look.get(NODES, {}))


def outlook_of_nodes(
    looks: Sequence[Json], now: Json, judges: Iterable[tuple[str, Judge]], word: Callable[[str], str]
) -> Outlook:
    """Compare a new look at all nodes with remembered ones; return the loss that comes first.

    Args:
        looks: Those that are remembered, oldest first.
        now: The new one; nodes that it lacks could not be looked at.
        judges: The nodes, and what judges each.
        word: Says which node it is.
    """
    losses: list[ImpendingLoss] = []
    remembered: dict[str, tuple[Json, ...]] = {}
    for node, judge in judges:
        before = looks_on(looks, node)
        if node not in now[NODES]:
            remembered[node] = before
            continue
        found = judge(before, now[NODES][node])
        remembered[node] = found.remembered
        if (loss := found.loss) is not None:
            of = word(node)
            losses.append(ImpendingLoss(f"{loss.what} of {of}", loss.left, loss.seconds, f"{of}: {loss.reason}"))
    longest = max(map(len, remembered.values()), default=0)
    rows = [
        {NODES: {node: of[at - longest] for node, of in remembered.items() if longest - at <= len(of)}}
        for at in range(longest)
    ]
    soonest = min(losses, key=lambda loss: loss.seconds if loss.seconds is not None else float("inf"), default=None)
    return Outlook(tuple(rows), soonest)
