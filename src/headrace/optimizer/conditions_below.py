"""One rule for conditions that move towards the leaves, however a filter is made of them.

σ_p(π_f(R)) = π_f(σ_{p∘f}(R)); σ_p(R ⊎ S) = σ_p(R) ⊎ σ_p(S). For other operators the rule is a list: over which columns
of which input a condition may be asked there instead of above. σ_p(L ⋈ R) = σ_p(L) ⋈ R for p over L; σ_p(γ_K(R)) =
γ_K(σ_p(R)) for p over K, and likewise for window functions and their PARTITION BY; of an outer join that keeps L, of a
semi-join and an anti-join, conditions over L filter L. Conditions that read no column stay where they are: they decide
about whole relations. So do those that would have to compute something twice below, or what is not the same twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    Union,
    Window,
)
from headrace.algebra.scalar import Scalar, as_column, column, substitute, uses

Conditions = tuple[Scalar, ...]
"""Conditions that all have to be true."""


class Filtering(ABC):
    """Moves conditions down, and makes them filters where they go no further."""

    @abstractmethod
    def above(self, node: Relation, conditions: Conditions) -> Relation:
        """Return the rows of a relation for which conditions, at least one, are true."""

    def opened(self, node: Relation) -> tuple[Relation, Conditions]:
        """Return a relation without conditions of its own that are placed anew, and these."""
        return node, ()

    def columns(self, condition: Scalar) -> Set[str]:
        """Return the columns of rows that a condition reads."""
        return condition.columns

    def below(self, node: Relation, conditions: Conditions) -> Relation:
        """Apply conditions to a relation, as low as possible."""
        if not conditions:
            return node
        node, own = self.opened(node)
        return self.placed(node, own + conditions)

    def placed(self, node: Relation, conditions: Conditions) -> Relation:
        """Apply conditions to a relation that keeps none of its own."""
        match node:
            case Project() if not self._repeats(dict(node.items), conditions):
                over = tuple(substitute(condition, dict(node.items)) for condition in conditions)
                return Project(self.below(node.input, over), node.items)
            case Union():
                branches = (self.below(each, _renamed(conditions, node, each)) for each in node.branches)
                return Union(tuple(branches))
        rest, inputs = conditions, list[Relation]()
        for each, names in zip(node.inputs, _commuting(node), strict=True):
            there = tuple(c for c in rest if self.columns(c) and self.columns(c) <= names)
            rest = tuple(c for c in rest if c not in there)
            inputs.append(self.below(each, there))
        node = node.with_inputs(*inputs) if len(rest) < len(conditions) else node
        return self.above(node, rest) if rest else node

    def _repeats(self, values: dict[str, Scalar], conditions: Conditions) -> bool:
        """Return whether conditions would compute a column more than once below, or another value."""
        read = {name for condition in conditions for name in self.columns(condition)}
        computed = [name for name, scalar in values.items() if scalar.columns and as_column(scalar) is None]
        repeated = any(sum(uses(condition, name) for condition in conditions) > 1 for name in computed)
        return repeated or not all(scalar.deterministic for name, scalar in values.items() if name in read)


def _commuting(node: Relation) -> Sequence[Set[str]]:
    """Return, for each input, the columns over which a condition may be asked there."""
    match node:
        case Join():
            return set(node.left.columns), set(node.right.columns)
        case OuterJoin(full=False) | Existence():
            return set(node.left.columns), set()
        case Filter() | Replicate() | Generate():
            return (set(node.input.columns),)
        case Window():
            return (set(node.partition),)
        case Aggregate():
            return (set(node.keys),)
    return (frozenset[str](),) * len(node.inputs)


def _renamed(conditions: Conditions, union: Union, branch: Relation) -> Conditions:
    names = {out: column(own) for out, own in zip(union.columns, branch.columns, strict=True)}
    return tuple(substitute(condition, names) for condition in conditions)
