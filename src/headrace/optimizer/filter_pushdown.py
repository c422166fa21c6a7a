"""Move conditions towards the leaves.

σ_p(L ⋈_q R) = L ⋈_{q∧p} R, and a conjunct over one side filters that side, so that a comma join with its equalities in
WHERE becomes an equi-join. Of an outer join that keeps L, of a semi-join and an anti-join conjuncts of their own
condition over the other side filter that side. Else conditions move as `conditions_below` says.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.relations import Existence, Filter, Join, OuterJoin, Relation
from headrace.algebra.scalar import TRUE, Scalar, all_of, conjuncts
from headrace.algebra.tree import transform
from headrace.optimizer.conditions_below import Conditions, Filtering


def push_filters(relation: Relation) -> Relation:
    """Push conditions below projections, unions, joins and aggregates."""
    return transform(relation, _rule)


def _rule(node: Relation) -> Relation:
    match node:
        case Filter() | Join(condition=Scalar()):
            filters = _Filters()
            return filters.placed(*filters.opened(node))
        case OuterJoin(full=False) | Existence():
            return _own_condition(node)
    return node


def _own_condition(node: OuterJoin | Existence) -> Relation:
    """Push conjuncts over the right side alone below an existence test."""
    names = set(node.right.columns)
    right = tuple(c for c in conjuncts(node.condition) if c.columns and c.columns <= names)
    if not right:
        return node
    rest = all_of(c for c in conjuncts(node.condition) if c not in right) or TRUE
    return replace(node, right=_Filters().below(node.right, right), condition=rest)


class _Filters(Filtering):
    """Makes filters of conditions, and joins by them."""

    def above(self, node: Relation, conditions: Conditions) -> Relation:
        condition = all_of(conditions)
        assert condition is not None
        return replace(node, condition=condition) if isinstance(node, Join) else Filter(node, condition)

    def opened(self, node: Relation) -> tuple[Relation, Conditions]:
        match node:
            case Filter():
                below, own = self.opened(node.input)
                return below, own + conjuncts(node.condition)
            case Join(condition=Scalar() as condition):
                return replace(node, condition=None), conjuncts(condition)
        return node, ()
