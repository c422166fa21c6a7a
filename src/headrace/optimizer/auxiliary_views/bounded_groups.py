"""Restricts kept groups to those with a key of a filtered source.

L ⋈_{a=k} γ_k(R) where L has only a filtered source's values of a: σ(P). Then γ_k(R) may as well be γ_k(R ⋉ σ(P)), of
few groups, so that keeping them costs little (`inner_aggregates`) and saves reading R for each group touched. In TPC-H
q20 these are how much of the parts with a certain name each supplier has shipped. It saves nothing where R is joined
with the same change for something else, as in q17, whose line items are compared with the average of their part: so it
is done only where nothing else reads the sources of R.

Where the partners are those of one source because of a semi-join, L ⋉ σ(P) with the same column, the groups have been
asked for by then, and the semi-join says nothing more:
(L ⋉_{a=p} σ(P)) ⋈_{a=k} γ_k(R ⋉ σ(P)) = L ⋈_{a=k} γ_k(R ⋉ σ(P)).
Source: semi-join reduction as a rewriting of queries: Mumick, Finkelstein, Pirahesh, Ramakrishnan, Magic is Relevant,
SIGMOD 1990.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headrace.algebra.properties.equalities import equal_alike, equalities
from headrace.algebra.relations import Aggregate, Existence, Filter, Join, Project, Relation, Scan
from headrace.algebra.scalar import as_column, column, conjuncts, equals
from headrace.algebra.tree import over, transform, walk
from headrace.ivm.change import Partners
from headrace.optimizer.auxiliary_views.keepable_groups import recurses
from headrace.optimizer.semijoin_reduction import partners_at_any_time

_PARTNER = "__hr_partner_"
"""Prefix of the columns that have the partners' values."""


def bound(tree: Relation, types: Mapping[str, str]) -> Relation:
    """Restrict aggregates to the groups with partners in a filtered source.

    Args:
        tree: The query.
        types: Types of its columns by name, as far as known.
    """
    if recurses(tree):
        return tree
    reads = _reads(tree)
    found = partners_at_any_time(tree, types)
    bounded = [each for each in found if each.calls and all(reads[of] == n for of, n in _reads(each).items())]
    places: dict[Relation, Relation] = {}
    for number, aggregate in enumerate(bounded, 1):
        places[aggregate] = aggregate.with_inputs(_met(aggregate.input, found[aggregate], number))
    rewritten = transform(tree, lambda node: places.get(node, node) if isinstance(node, Aggregate) else node)
    return transform(rewritten, lambda node: _asked_once(node, types)) if places else tree


def is_bound(rows: Relation) -> bool:
    """Return whether rows are restricted to groups with partners."""
    return isinstance(rows, Existence) and rows.bounding


def _reads(tree: Relation) -> Counter[str]:
    """Return how often each source is read."""
    return Counter(str(node.source) for node in walk(tree) if isinstance(node, Scan))


def _met(rows: Relation, partners: Partners, number: int) -> Relation:
    for place, (key, values) in enumerate(partners, 1):
        name = f"{_PARTNER}{number}_{place}"
        met = Project(values, tuple((name, column(own)) for own in values.columns))
        rows = Existence(rows, met, equals(column(key), column(name)), bounding=True)
    return rows


# semi-joins that say what groups say already


def _asked_once(node: Relation, types: Mapping[str, str]) -> Relation:
    """Return a join with bounded groups, without semi-joins that say the same."""
    if not isinstance(node, Join):
        return node
    left, right = node.inputs
    for a, b, _ in equal_alike(node.condition, left.columns, right.columns, types):
        left, right = _unasked(left, a, _partner_of(right, b), types), _unasked(right, b, _partner_of(left, a), types)
    return over(node, left, right)


def _partner_of(side: Relation, name: str) -> tuple[Relation, str] | None:
    """Return the relation and column that have all values of a column of bounded groups."""
    while isinstance(side, Project | Filter):
        if isinstance(side, Project):
            read = as_column(dict(side.items)[name])
            if read is None:
                return None
            name = read
        side = side.input
    rows = side.input if isinstance(side, Aggregate) and name in side.keys else None
    while isinstance(rows, Existence) and is_bound(rows):
        pairs = equalities(rows.condition, rows.left.columns, rows.right.columns)
        if any(a == name for a, _, _ in pairs):
            return _origin(rows.right, pairs[0][1])
        rows = rows.left
    return None


def _origin(relation: Relation, name: str) -> tuple[Relation, str]:
    """Return where a column is read under its first name."""
    while isinstance(relation, Project) and (own := as_column(dict(relation.items)[name])) is not None:
        relation, name = relation.input, own
    return relation, name


def _unasked(side: Relation, name: str, partner: tuple[Relation, str] | None, types: Mapping[str, str]) -> Relation:
    """Return a side without semi-joins of a column with its partner."""
    match side:
        case _ if partner is None:
            return side
        case Existence(anti=False):
            below = _unasked(side.left, name, partner, types)
            pairs = equalities(side.condition, side.left.columns, side.right.columns)
            whole = len(conjuncts(side.condition)) == 1 and len(side.right.columns) == 1
            if whole and pairs and pairs[0][0] == name and types.get(name) == types.get(pairs[0][1]):
                return below if _origin(side.right, pairs[0][1]) == partner else over(side, below, side.right)
            return over(side, below, side.right)
        case Existence():
            return over(side, _unasked(side.left, name, partner, types), side.right)
        case Filter():
            return over(side, _unasked(side.input, name, partner, types))
        case Join():
            return over(
                side, *(_unasked(each, name, partner, types) if name in each.columns else each for each in side.inputs)
            )
    return side
