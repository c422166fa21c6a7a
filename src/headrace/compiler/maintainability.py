"""Refuses queries that are understood but could not be maintained exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Scan,
    Union,
    Values,
    Window,
)
from headrace.algebra.scalar import has_word
from headrace.algebra.schema import Column
from headrace.algebra.tree import identity, walk
from headrace.algebra.types import followed, groupable, is_collated, mentions
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.inexact_values import inexact
from headrace.sql.reader.functions.equal_texts import chosen_texts
from headrace.sql.reader.functions.order_dependence import unsettled
from headrace.sql.reader.functions.ties import FindKeys, LooseOrder, loose_orders
from headrace.sql.reader.refusals import Refusal, not_maintained
from headrace.sql.refinements import FLOATS

TypesOf = Callable[[Relation], tuple[Column, ...]]
"""The columns of a relation, as Spark sees them."""


def not_kept(view: CompiledView, output: tuple[Column, ...], types_of: TypesOf) -> tuple[Refusal, ...]:
    """Return the reasons why stored tables could not follow changes; empty if they can.

    Args:
        view: The query.
        output: Its columns, as Spark sees them.
        types_of: The columns of a relation.
    """
    return _inexact(view.tree, types_of) + _unkept(view) + _by_maps(view, types_of) + _collated(view, output)


def unmatched_columns(view: CompiledView, output: tuple[Column, ...]) -> tuple[Refusal, ...]:
    """Refuse columns that cannot be compared, or that Spark reads differently.

    Args:
        view: The query.
        output: Its columns, as Spark sees them.
    """
    return _incomparable(output, view.tree) + _misread(view.output, output)


@dataclass(frozen=True, slots=True)
class Undetermined:
    """Parts of a query that may give other results for the same rows, as ties have no order.

    Args:
        orders: Orders that leave ties.
        choices: Refusals of aggregates that choose among rows that tie.
    """

    orders: tuple[LooseOrder, ...]
    choices: tuple[Refusal, ...]

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Return what is refused of it."""
        return tuple(each.refusal for each in self.orders) + self.choices

    def beside(self, without_keys: Undetermined) -> Undetermined:
        """Return it with what is known of the same orders where no keys of sources are."""
        bare = {each.refusal.place: each.keys for each in without_keys.orders}
        orders = tuple(replace(each, own_keys=bare.get(each.refusal.place, ())) for each in self.orders)
        return replace(self, orders=orders)


def undetermined_rows(tree: Relation, types_of: TypesOf, keys: FindKeys) -> Undetermined:
    """Return what may give other results for the same rows."""
    choices = unsettled(tree, types_of, keys) + chosen_texts(tree, types_of)
    return Undetermined(tuple(loose_orders(tree, types_of, keys)), choices)


def _incomparable(output: tuple[Column, ...], tree: Relation | None) -> tuple[Refusal, ...]:
    """Refuse columns of types without equality, because rows are matched by their values.

    Maps pass where rows are only grouped.
    """
    message = "Column '{}' is of a type that has no equality: {}."
    alone = tree is not None and all(isinstance(node, _GROUPED_ALONE) for node in walk(tree))
    return tuple(
        not_maintained(f"column of type {c.type}", None, message.format(c.name, c.type), _PARTS)
        for c in output
        if not (followed(c.type) if alone else groupable(c.type))
    )


_GROUPED_ALONE = (Scan, Project, Filter, Join, OuterJoin, Existence, Union, Generate, Values, Window)
"""Operators whose rules compare no whole rows but by adding up their weights."""


def _by_maps(view: CompiledView, types_of: TypesOf) -> tuple[Refusal, ...]:
    """Refuse to group by maps.

    Groups are found again by their keys; Spark groups by maps but cannot compare them.
    """
    found = set[str]()
    nodes = list(walk(view.tree)) if view.tree is not None else []
    values = (value for node in nodes if isinstance(node, Project) for _, value in node.items)
    possible = not all(map(groupable, view.types.values())) or any(has_word(value, "map") for value in values)
    for node in (node for node in nodes if isinstance(node, Aggregate)):
        kinds = {key: view.types.get(key) for key in node.keys}
        if None in kinds.values() and possible:  # Spark is asked for types only where there may be such
            kinds = {c.name: c.type for c in types_of(Project(node.input, identity(node.keys)))}
        found |= {kind for kind in kinds.values() if kind is not None and not groupable(kind)}
    message = "Groups are told apart by values of type {}, which cannot be compared."
    return tuple(not_maintained(f"groups by {kind}", None, message.format(kind), _ENTRIES) for kind in sorted(found))


_ENTRIES = "Group by what can be compared: array_sort(map_entries(x))."

_PARTS = "Return what can be compared: array_sort(map_entries(x)) of a map, to_json(x) or parts of a variant."


def _collated(view: CompiledView, output: tuple[Column, ...]) -> tuple[Refusal, ...]:
    """Refuse collated columns.

    A table keeps texts without their collation, and Spark compares none with one of another.
    """
    kinds = {c.type for c in (*output, *(view.companion or ())) if is_collated(c.type)}
    message = "Values of type {} are kept in a table without their collation, and cannot be found there again."
    return tuple(not_maintained(f"column of type {kind}", None, message.format(kind), _PLAIN) for kind in sorted(kinds))


_PLAIN = "Show and group by x COLLATE UTF8_BINARY, lower(x) for instance; compare and filter by any collation."


def _unkept(view: CompiledView) -> tuple[Refusal, ...]:
    """Refuse accumulators that no table can store, and those that cannot be compared."""
    kept = {c.type for c in view.companion or ()}
    untyped = {kind for kind in kept if mentions(kind, "void")}
    kinds = {kind for kind in kept if mentions(kind, "interval")} | untyped
    uncompared = {kind for kind in kept if not groupable(kind)}
    groups = [node for node in walk(view.tree) if isinstance(node, Aggregate)] if view.tree is not None else []
    places = {call.type: call.place for node in groups for call in node.calls}

    def refused(kind: str, why: str, hint: str) -> Refusal:
        message = f"What groups must remember for it is of type {kind}, {why}."
        return not_maintained(f"groups with values of type {kind}", places.get(kind), message, hint)

    unstored = tuple(
        refused(kind, "which no table can hold", _TYPED if kind in untyped else _COUNTED) for kind in sorted(kinds)
    )
    return unstored + tuple(refused(kind, "which cannot be compared", _ASKED) for kind in sorted(uncompared - kinds))


_ASKED = "Take the part that is wanted inside of the call: max_by(x['a'], y)."

_TYPED = "Give NULL a type: CAST(NULL AS STRING)."

_COUNTED = "Group and aggregate numbers instead, such as timestampdiff(SECOND, a, b)."


def _inexact(tree: Relation | None, types_of: TypesOf) -> tuple[Refusal, ...]:
    """Refuse inexact values below the root, as retractions must equal what is stored."""
    message = "{0} of floating-point numbers below another operator cannot be computed a second time to the last digit."
    hint = (
        "Sum decimals (CAST … AS DECIMAL), or make this part a stream table of its own and read that. The property "
        "ties = 'refine_floats' adds sums, averages and deviations up in a fixed order, with each group in memory."
    )
    found = inexact(tree, types_of) if tree is not None else {}
    return tuple(
        not_maintained(f + FLOATS, place, message.format(f), hint) for f, places in found.items() for place in places
    )


def _misread(own: tuple[Column, ...], spark: tuple[Column, ...]) -> tuple[Refusal, ...]:
    """Refuse a reading whose columns or types differ from Spark's."""
    if len(own) != len(spark):
        found = f"The query has {len(spark)} columns in Spark's reading and {len(own)} in this one."
        return (not_maintained("select list", None, found),)
    message = "Column '{}' is {} in Spark's reading and {} in this one."
    return tuple(
        not_maintained("select list", None, message.format(theirs.name, theirs.type, mine.type))
        for mine, theirs in zip(own, spark, strict=True)
        if mine.type != theirs.type
    )
