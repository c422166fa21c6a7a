"""Groups that few are asked for are kept, although they are asked for by key.

L ⋈_{a=k} γ_k(R) where L has only a filtered source's values of a: σ(P). Then γ_k(R) may as well be γ_k(R ⋉ σ(P)), of
few groups, so that keeping them costs little (`kept_groups`) and saves reading R for each group touched. In TPC-H
q20 these are how much of the parts with a certain name each supplier has shipped. It saves nothing where R is read near
the same change for something else, as in q17, whose line items are compared with the average of their part: so it is
done only where nothing else reads the sources of R.
Source: semi-join reduction as a rewriting of queries: Mumick, Finkelstein, Pirahesh, Ramakrishnan, Magic is Relevant,
SIGMOD 1990.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headrace.algebra.relations import Aggregate, Existence, Project, Recursive, Relation, Scan
from headrace.algebra.scalar import column, compose
from headrace.algebra.tree import transform, walk
from headrace.delta.change import Partners
from headrace.delta.partners import partners_at_any_time

_PARTNER = "__hr_partner_"
"""Prefix of the columns that have the partners' values."""


def bound(tree: Relation, types: Mapping[str, str]) -> Relation:
    """The query, in which such aggregates have only the groups that are asked for.

    Args:
        tree: The query.
        types: Types of its columns by name, as far as known.
    """
    if any(isinstance(node, Recursive) for node in walk(tree)):
        return tree
    reads = _reads(tree)
    found = partners_at_any_time(tree, types)
    few = [each for each in found if each.calls and all(reads[of] == n for of, n in _reads(each).items())]
    places: dict[Relation, Relation] = {}
    for number, aggregate in enumerate(few, 1):
        places[aggregate] = aggregate.with_inputs(_met(aggregate.input, found[aggregate], number))
    return transform(tree, lambda node: places.get(node, node) if isinstance(node, Aggregate) else node)


def is_bound(rows: Relation) -> bool:
    """Whether what is grouped are the rows of such groups only."""
    return isinstance(rows, Existence) and rows.right.columns[0].startswith(_PARTNER)


def _reads(tree: Relation) -> Counter[str]:
    """How often each source is read."""
    return Counter(str(node.source) for node in walk(tree) if isinstance(node, Scan))


def _met(rows: Relation, partners: Partners, number: int) -> Relation:
    for place, (key, values) in enumerate(partners, 1):
        name = f"{_PARTNER}{number}_{place}"
        met = Project(values, tuple((name, column(own)) for own in values.columns))
        rows = Existence(rows, met, compose("{k} = {p}", k=column(key), p=column(name)))
    return rows
