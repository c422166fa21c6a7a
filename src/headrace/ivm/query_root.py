"""The root of a query: the aggregate with accumulators, and the operators above it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.algebra.relations import Aggregate, Filter, Project, Relation, Replicate
from headrace.algebra.scalar import Scalar, all_of, as_column, column, compose, substitute
from headrace.ivm.aggregates.accumulators import Plan, plan
from headrace.ivm.program import COMPANION


@dataclass(frozen=True, slots=True)
class Root:
    """An aggregate under nothing but projections and filters.

    Args:
        aggregate: The aggregate.
        items: The output columns as expressions over the aggregate's columns.
        condition: What a group must satisfy to be shown (HAVING), over the same columns.
        plan: Its accumulators.
        keys: Pairs (key column of the aggregate, its column in the companion).
        copies: How often each row is there, over the same columns; None for once.
        place: Name of the `Stored` leaf that has its groups.
    """

    aggregate: Aggregate
    items: tuple[tuple[str, Scalar], ...]
    condition: Scalar | None
    plan: Plan
    keys: tuple[tuple[str, str], ...]
    copies: Scalar | None = None
    place: str = COMPANION

    @property
    def companion(self) -> tuple[str, ...]:
        """Return the companion's columns."""
        return (*(name for _, name in self.keys), *(a.name for a in self.plan.accumulators))

    @property
    def output_key(self) -> tuple[str, ...] | None:
        """Return output columns that are the group key.

        None when a part of it is not shown, or rows repeat.
        """
        if self.copies is not None:
            return None
        shown = {as_column(scalar): name for name, scalar in reversed(self.items)}
        if any(key not in shown for key, _ in self.keys):
            return None
        return tuple(shown[key] for key, _ in self.keys)

    def over_companion(self, scalar: Scalar) -> Scalar:
        """Return an expression over the aggregate's columns as one over the companion's."""
        return substitute(scalar, {key: column(name) for key, name in self.keys} | self.plan.outputs)


def root_of(tree: Relation) -> Root | None:
    """Find the aggregate at a query's root; None for any other query."""
    if isinstance(tree, Aggregate):
        return Root(tree, tuple((n, column(n)) for n in tree.columns), None, plan(tree), _companion_keys(tree.keys))
    if not isinstance(tree, (Project, Filter, Replicate)):
        return None
    below = root_of(tree.input)
    if below is None:
        return None
    values = dict(below.items)
    if isinstance(tree, Replicate):
        return _repeated(below, tree.copies)
    if isinstance(tree, Project):
        items = tuple((name, substitute(scalar, values)) for name, scalar in tree.items)
        return replace(below, items=items)
    condition = all_of(c for c in (below.condition, substitute(tree.condition, values)) if c is not None)
    return replace(below, condition=condition)


def _repeated(below: Root, copies: str) -> Root:
    values = dict(below.items)
    items = tuple(item for item in below.items if item[0] != copies)
    times = values[copies] if below.copies is None else compose("{a} * {b}", a=below.copies, b=values[copies])
    return replace(below, items=items, copies=times)


def _companion_keys(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Name each key as any table format allows: letters, digits, underscores, no clash."""
    taken = set[str]()
    pairs = list[tuple[str, str]]()
    for key in keys:
        base = "".join(c if c.isalnum() and c.isascii() else "_" for c in key.rsplit(".", 1)[-1].lower()) or "key"
        base = f"key{base}" if base.startswith(("_", *"0123456789")) else base
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        pairs.append((key, name))
    return tuple(pairs)
