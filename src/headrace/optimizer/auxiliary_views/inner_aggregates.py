"""Keep the groups of aggregates below other operators in the companion.

γ(R) with accumulators for each of its groups in the companion C: as it was it is shown(C), as it is shown(C ⊎ ΔC), and
Δγ(R) is what the touched groups were, taken back, and what they are, as at the root. Wherever the rules ask for γ(R)
as it was or as it is, they are given that, and R is read for its own change only.

That is done for an aggregate of which all groups would be computed otherwise, before and after, over all rows of R
(`whole_reads`): the values of subqueries, and groups that others are compared with as a whole; for one of which few
groups are ever asked for (`bounded_groups`); and for one that is joined before it is grouped again
(`eager_aggregation`). Others, asked for by their keys, are computed from their rows; keeping them would write and read
a table that may be as large as what it sums up. Types whose values are not in a table as they are in a query (floats,
collated strings) are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from headrace.algebra.relations import Aggregate, Relation, Stored, Union
from headrace.algebra.tree import over
from headrace.ivm.aggregates import root_aggregate
from headrace.ivm.change import Change, arrange, empty, union_all
from headrace.ivm.program import COMPANION, DeltaProgram, FullProgram, TableChange
from headrace.ivm.query_root import Root, root_of
from headrace.optimizer.auxiliary_views.bounded_groups import is_bound
from headrace.optimizer.auxiliary_views.companion_parts import PART, Part, columns_of, companion_of, parts_of
from headrace.optimizer.auxiliary_views.eager_aggregation import grouped_again
from headrace.optimizer.auxiliary_views.keepable_groups import keepable, recurses
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.auxiliary_views.top_groups import companion_after, grouped
from headrace.optimizer.auxiliary_views.whole_reads import read_whole

Types = Mapping[str, str]


def keep_aggregates(views: AuxiliaryViews, tree: Relation, types: Types) -> AuxiliaryViews:
    """Keep groups of inner aggregates that would otherwise be computed as a whole.

    Args:
        views: What else the companion keeps.
        tree: The query.
        types: Types of its columns by name, as far as known.
    """
    if recurses(tree):
        return views
    asked_for = read_whole(tree, types, first_rows_kept=views.buffer or views.groups is not None)
    asked_for |= grouped_again(tree)
    top = root_of(tree) or grouped(tree)
    found: dict[Aggregate, Root] = {}
    for node in _inputs_first(tree):
        if (
            isinstance(node, Aggregate)
            and (node in asked_for or is_bound(node.input))
            and (top is None or node != top.aggregate)
        ):
            root = keepable(node, types)
            if root is not None:
                found.setdefault(node, root)
    placed = tuple(replace(root, place=f"{COMPANION}.{i}") for i, root in enumerate(found.values(), 1))
    return replace(views, aggregates=placed)


def _inputs_first(tree: Relation) -> list[Relation]:
    return [*(node for each in tree.inputs for node in _inputs_first(each)), tree]


# programs


def full(tree: Relation, base: FullProgram, below: tuple[Root, ...], types: Types) -> FullProgram:
    """Compute the companion from the sources, and the state from the companion.

    Args:
        tree: The query.
        base: How it is computed without aggregates that are kept.
        below: These.
        types: Types of columns by name.
    """
    parts = parts_of(base, below)
    columns = columns_of(parts)
    rows = [*([base.companion] if base.companion is not None else []), *map(companion_of, below)]
    written = [part.written(each, columns, types) for part, each in zip(parts, rows, strict=True)]
    companion = written[0] if len(written) == 1 else Union(tuple(written))
    shown: dict[Relation, Relation] = {root.aggregate: _was(root) for root in below}
    state = _Instead(shown, parts).within(base.state if base.state is not None else tree)
    return FullProgram(companion, state)


def follow(
    tree: Relation,
    own: FullProgram,
    below: tuple[Root, ...],
    change: Change,
    program: Callable[[Relation, Change], DeltaProgram | None],
) -> DeltaProgram | None:
    """Return the program for a change of the query's sources.

    Args:
        tree: The query.
        own: What the root keeps, computed from nothing.
        below: The aggregates that are kept.
        change: The change.
        program: Gives the program of a query without such.
    """
    parts = parts_of(own, below)
    places: dict[Relation, Relation] = {}
    moved: dict[str, TableChange] = {}
    for root in below:
        _follow_one(root, change, places, moved)
    found = program(tree, change)
    if found is None and not moved:
        return None
    nothing = TableChange(empty(tree), None)
    found = found or DeltaProgram(tuple(change.steps), nothing)
    instead = _Instead(places, parts)
    if found.companion is not None:
        moved[COMPANION] = found.companion
    changes = [(part, moved[part.place]) for part in parts if part.place in moved]
    change.repeated = {instead.within(each) for each in change.repeated}
    steps = tuple(each.rewritten(instead.within) for each in found.steps)
    return DeltaProgram(steps, found.state.rewritten(instead.within), _together(changes, parts, change.types, instead))


def _follow_one(root: Root, change: Change, places: dict[Relation, Relation], moved: dict[str, TableChange]) -> None:
    aggregate, was = root.aggregate, _was(root)
    places[change.before(aggregate)] = was
    places.setdefault(change.after(aggregate), was)
    if not change.moves(aggregate.input):
        change.found[aggregate] = empty(aggregate)
        return
    kept = root_aggregate.moved(root, change)
    rows = root_aggregate.state_change(root, kept).change
    change.found[aggregate] = arrange(rows, aggregate.columns)
    places[change.after(aggregate)] = root_aggregate.shown(root, companion_after(root, kept))
    moved[root.place] = root_aggregate.companion_change(root, kept)


def _was(root: Root) -> Relation:
    return root_aggregate.shown(root, Stored(root.place, root.companion))


def _together(
    changes: list[tuple[Part, TableChange]], parts: tuple[Part, ...], types: Types, instead: _Instead
) -> TableChange | None:
    if not changes:
        return None
    part, only = changes[0]
    if part.number is None:
        return only.rewritten(instead.within)
    columns = columns_of(parts)
    rows = union_all(*(p.written(instead.within(each.change), columns, types) for p, each in changes))
    keys = [part.key for part in parts if part.key is not None]
    if len(keys) < len(parts):  # by the key of the parts that change alone, rows of the others would be taken for one
        return TableChange(rows, None)
    counted = all(each.counts for _, each in changes)
    counts = tuple(counts for _, each in changes for counts in each.counts) if counted else ()
    return TableChange(rows, (PART, *(name for key in keys for name in key)), counts)


@dataclass(frozen=True, slots=True)
class _Instead:
    """Answers the delta rules from the companion where it has the rows that they ask for.

    Args:
        places: What is read instead of an aggregate.
        parts: The parts of the companion.
    """

    places: Mapping[Relation, Relation]
    parts: tuple[Part, ...]

    def within(self, relation: Relation) -> Relation:
        """Return a relation in which kept parts are read from the companion, outermost first."""
        if isinstance(relation, Aggregate) and relation in self.places:
            relation = self.places[relation]
        if isinstance(relation, Stored):
            part = next((each for each in self.parts if each.place == relation.name), None)
            return relation if part is None else part.read(columns_of(self.parts))
        return over(relation, *map(self.within, relation.inputs))
