"""Aggregates below other operators: the companion keeps their groups, so that they are read as those of a table are.

γ(R) with accumulators for each of its groups in the companion C: as it was it is shown(C), as it is shown(C ⊎ ΔC), and
Δγ(R) is what the touched groups were, taken back, and what they are, as at the root. Wherever the rules ask for γ(R)
as it was or as it is, they are given that, and R is read for its own change only.

That is done for an aggregate of which all groups would be computed otherwise, before and after, over all rows of R
(`whole_reads`): the values of subqueries, and groups that others are compared with as a whole; for one of which few
groups are ever asked for (`few_groups`); and for one that is joined before it is grouped again (`regrouped`). Others,
asked for by their keys, are computed from their rows; keeping them would write and read a table that may be as large as
what it sums up. Types whose values are not in a table as they are in a query (floats, collated strings) are not kept.

A stream table has one companion. Where several aggregates are kept, among them perhaps the root's, each is a part of
it: its rows have the part's number and, in the columns of other parts, NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from headrace.algebra.relations import Aggregate, Filter, Project, Recursive, Relation, Stored, Union
from headrace.algebra.scalar import Scalar, column, compose, literal
from headrace.algebra.tree import over, sources, walk
from headrace.ivm.aggregates import root_aggregate
from headrace.ivm.change import Change, arrange, empty, union_all
from headrace.ivm.program import COMPANION, DeltaProgram, FullProgram, Step, TableChange
from headrace.ivm.query_root import Root, root_of
from headrace.names import WEIGHT
from headrace.optimizer.auxiliary_views.bounded_groups import bound, is_bound
from headrace.optimizer.auxiliary_views.eager_aggregation import grouped_again, grouped_before_joined
from headrace.optimizer.auxiliary_views.top_groups import companion_after, grouped
from headrace.optimizer.auxiliary_views.whole_reads import read_whole

PART = "__hr_part"
"""The column of a companion of several parts that says whose a row is."""

_SAFE = re.compile(r"(?:tinyint|smallint|int|bigint|boolean|date|timestamp|timestamp_ntz|string|decimal\(\d+,\s*\d+\))")
_NARROW = frozenset({"tinyint", "smallint"})

Types = Mapping[str, str]


def with_groups_to_keep(tree: Relation, types: Types) -> Relation:
    """The query, written so that groups can be kept which its own words do not have.

    Args:
        tree: The query.
        types: Types of its columns by name, as far as known.
    """
    if _recurses(tree):
        return tree
    joined = grouped_before_joined(tree)
    if all(_kept(each, types) is not None for each in grouped_again(joined)):
        tree = joined
    return bound(tree, types)


def kept_below(tree: Relation, types: Types) -> tuple[Root, ...]:
    """The aggregates below other operators that are kept, inner ones first.

    Args:
        tree: The query.
        types: Types of its columns by name, as far as known.
    """
    if _recurses(tree):
        return ()
    asked_for = read_whole(tree, types) | grouped_again(tree)
    top = root_of(tree) or grouped(tree)
    found: dict[Aggregate, Root] = {}
    for node in _inputs_first(tree):
        if (
            isinstance(node, Aggregate)
            and (node in asked_for or is_bound(node.input))
            and (top is None or node != top.aggregate)
        ):
            root = _kept(node, types)
            if root is not None:
                found.setdefault(node, root)
    return tuple(replace(root, place=f"{COMPANION}.{i}") for i, root in enumerate(found.values(), 1))


def _recurses(tree: Relation) -> bool:
    """Whether the companion has a recursion's rows, and nothing beside them."""
    return any(isinstance(node, Recursive) for node in walk(tree))


def _inputs_first(tree: Relation) -> list[Relation]:
    return [*(node for each in tree.inputs for node in _inputs_first(each)), tree]


def _kept(node: Aggregate, types: Types) -> Root | None:
    """How an aggregate is kept; None where it cannot be."""
    root = root_of(node)
    assert root is not None
    own = {key: types.get(key, "") for key in node.keys} | {call.name: call.type or "" for call in node.calls}
    averages = {call.name for call in node.calls if call.function == "avg"}  # doubles, but of exact sums
    exact = all(name in averages or _SAFE.fullmatch(each.strip().lower()) for name, each in own.items())
    if not node.calls or not sources(node) or root.plan.recomputed or not exact:
        return None
    # a table keeps small integers as larger ones, which calculate otherwise
    return replace(root, items=tuple((name, _as_is(name, own[name])) for name in node.columns))


def _as_is(name: str, type_: str) -> Scalar:
    return compose(f"CAST({{x}} AS {type_})", x=column(name)) if type_ in _NARROW else column(name)


# parts of one table


@dataclass(frozen=True, slots=True)
class Part:
    """What one aggregate, or the root, keeps in the companion.

    Args:
        place: Name of the `Stored` leaf that programs read it by.
        names: Its columns under that name.
        stored: These columns in the table.
        number: What its rows are told by; None where it has the table for itself.
        key: Columns of the table that identify a row of the part; None: a bag.
    """

    place: str
    names: tuple[str, ...]
    stored: tuple[str, ...]
    number: int | None
    key: tuple[str, ...] | None

    def read(self, columns: tuple[str, ...]) -> Relation:
        """Its rows.

        Args:
            columns: All columns of the table.
        """
        if self.number is None:
            return Stored(COMPANION, self.names)
        rows = Filter(Stored(COMPANION, columns), compose(f"{{p}} = {self.number}", p=column(PART)))
        return Project(rows, tuple((n, column(s)) for n, s in zip(self.names, self.stored, strict=True)))

    def written(self, rows: Relation, columns: tuple[str, ...], types: Types) -> Relation:
        """Rows of it, or their change, as rows of the table.

        Args:
            rows: With its columns.
            columns: All columns of the table.
            types: Their types by name.
        """
        if self.number is None:
            return rows
        values: dict[str, Scalar] = {s: column(n) for n, s in zip(self.names, self.stored, strict=True)}
        values[PART] = literal(self.number)
        nothing = {name: Scalar(f"CAST(NULL AS {types[name]})") for name in columns if name not in values}
        weight = ((WEIGHT, column(WEIGHT)),) if rows.weighted else ()
        return Project(rows, (*((name, (values | nothing)[name]) for name in columns), *weight))


def parts_of(own: FullProgram, below: tuple[Root, ...]) -> tuple[Part, ...]:
    """The parts of a companion.

    Args:
        own: What the root keeps, computed from nothing.
        below: The aggregates that are kept.
    """
    if own.companion is None and len(below) == 1:
        (root,) = below
        return (Part(root.place, root.companion, root.companion, None, _key(root)),)
    parts = [] if own.companion is None else [_part(1, COMPANION, own.companion.columns, own.companion_key)]
    for root in below:
        parts.append(_part(len(parts) + 1, root.place, root.companion, _key(root)))
    return tuple(parts)


def _part(number: int, place: str, names: tuple[str, ...], key: tuple[str, ...] | None) -> Part:
    stored = {name: f"part{number}_{name}" for name in names}
    return Part(place, names, tuple(stored.values()), number, None if key is None else tuple(stored[n] for n in key))


def _key(root: Root) -> tuple[str, ...]:
    return tuple(name for _, name in root.keys)


def part_types(own: FullProgram, below: tuple[Root, ...], types_of: Callable[[Relation], Types]) -> dict[str, str]:
    """The types of the companion's columns, where it has several parts.

    Args:
        own: What the root keeps, computed from nothing.
        below: The aggregates that are kept.
        types_of: Types of a relation's columns by name.
    """
    rows = [*([own.companion] if own.companion is not None else []), *map(_companion, below)]
    parts = parts_of(own, below)
    if len(parts) == 1:
        return {}
    found = {PART: "int"}
    for part, relation in zip(parts, rows, strict=True):
        known = types_of(relation)
        found |= {s: known[n] for n, s in zip(part.names, part.stored, strict=True)}
    return found


def _columns(parts: tuple[Part, ...]) -> tuple[str, ...]:
    """The columns of the table."""
    if parts[0].number is None:
        return parts[0].stored
    return (PART, *(name for part in parts for name in part.stored))


def _companion(root: Root) -> Relation:
    companion = root_aggregate.full(root).companion
    assert companion is not None
    return companion


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
    columns = _columns(parts)
    rows = [*([base.companion] if base.companion is not None else []), *map(_companion, below)]
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
    """The program for a change of what the query reads.

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
    steps = tuple(instead.step(each) for each in found.steps)
    state = replace(found.state, change=instead.within(found.state.change))
    return DeltaProgram(steps, state, _together(changes, parts, change.types, instead))


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
        return replace(only, change=instead.within(only.change))
    columns = _columns(parts)
    rows = union_all(*(p.written(instead.within(each.change), columns, types) for p, each in changes))
    keys = [part.key for part in parts if part.key is not None]
    # by the key of the parts that change alone, rows of the others would be taken for one
    return TableChange(rows, (PART, *(name for key in keys for name in key)) if len(keys) == len(parts) else None)


@dataclass(frozen=True, slots=True)
class _Instead:
    """Puts what the companion has in the place of what the rules ask for.

    Args:
        places: What is read instead of an aggregate.
        parts: The parts of the companion.
    """

    places: Mapping[Relation, Relation]
    parts: tuple[Part, ...]

    def within(self, relation: Relation) -> Relation:
        """A relation that reads the companion, from the outside in: what is kept may be over what is kept."""
        if isinstance(relation, Aggregate) and relation in self.places:
            relation = self.places[relation]
        if isinstance(relation, Stored):
            part = next((each for each in self.parts if each.place == relation.name), None)
            return relation if part is None else part.read(_columns(self.parts))
        return over(relation, *map(self.within, relation.inputs))

    def step(self, step: Step) -> Step:
        """The same of a step."""
        only_if = None if step.only_if is None else self.within(step.only_if)
        return replace(step, relation=self.within(step.relation), only_if=only_if)
