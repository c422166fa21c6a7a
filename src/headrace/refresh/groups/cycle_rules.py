"""Cycles of stream tables: find them, check their queries, choose a mode. Pure.

The members of a cycle hold the least fixed point of their queries over the cut of everything outside. It exists, and
iterating finds it, because every query only grows with what it reads of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from headrace.catalog import StreamTable
from headrace.compiler.compiled_view import CompiledView
from headrace.cost.mode_choice import Choice, obstacle
from headrace.definitions.details import Details
from headrace.errors import Place, Unsupported, UserError
from headrace.graph.dag import Dag
from headrace.ivm.recursion.monotonicity import copied, shrinking
from headrace.names import TableName
from headrace.physical.facts import Facts, SourceFacts
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode, RefreshMode, RefusalInfo

DOCS = "The documents say under Cycles which queries may."


def parts(names: Iterable[TableName], tables: Mapping[TableName, StreamTable]) -> tuple[tuple[TableName, ...], ...]:
    """Return names that are refreshed together, in order; the members of a cycle in one part.

    Args:
        names: Stream tables.
        tables: All stream tables.
    """
    wanted = set(names)
    reads = {n: [s for s in tables[n].sources if s in wanted] if n in tables else [] for n in wanted}
    return Dag(reads).parts


def in_cycle(part: Sequence[TableName], tables: Mapping[TableName, StreamTable]) -> bool:
    """Return whether a part is a cycle."""
    return len(part) > 1 or (part[0] in tables and part[0] in tables[part[0]].sources)


def as_member(details: Details) -> Details:
    """Return a definition, maintained as the member of a cycle.

    Nothing rests on its keys: that its rows differ would follow from that they differ.
    """
    return replace(details, companion=None, cyclic=True, keys=())


def check_cycle(members: Mapping[TableName, Details], views: Mapping[TableName, CompiledView | None]) -> None:
    """Refuse a cycle that has no fixed point for certain.

    Args:
        members: The definitions of its members.
        views: Their compiled queries; None for one that is not read as algebra.

    Raises:
        Unsupported: `CYCLE_NOT_MONOTONE`, `CYCLE_KEEPS_COPIES`.
        UserError: `CYCLE_SETTINGS_DIFFER`, `SOURCE_SCHEMA_CHANGED`.
    """
    moving = frozenset(members)
    keeping: dict[TableName, frozenset[TableName]] = {}
    for name, details in members.items():
        view = views[name]
        if view is None or view.tree is None or details.refusals:
            raise _not_read(name, details)
        if (found := shrinking(view.tree, moving)) is not None:
            raise Unsupported(
                "CYCLE_NOT_MONOTONE",
                f"{name} cannot be in a cycle: {found.construct} over {', '.join(map(str, found.reads))} may take rows "
                "back that the cycle has built on.",
                hint=f"Compute it in a stream table that reads the cycle without being in it. {DOCS}",
                place=found.place,
            )
        keeping[name] = copied(view.tree, moving)
    if path := Dag(keeping).cycle():
        raise Unsupported(
            "CYCLE_KEEPS_COPIES",
            f"A row that leads back to itself would come again for ever: {' reads '.join(map(str, path))}, and none of "
            "these queries removes copies.",
            hint=f"Write UNION instead of UNION ALL, or SELECT DISTINCT, in one of them. {DOCS}",
        )
    _check_settings(members)
    _check_columns(members)


def _not_read(name: TableName, details: Details) -> Unsupported:
    first = details.refusals[0] if details.refusals else None
    return Unsupported(
        "CYCLE_NOT_MONOTONE",
        f"{name} cannot be in a cycle: {first.message if first else 'its query cannot be read as algebra.'}",
        hint=(first.hint if first else None) or f"Only queries that can be refreshed DIFFERENTIAL can. {DOCS}",
        place=_place(details, first),
    )


def _place(details: Details, refusal: RefusalInfo | None) -> Place | None:
    if refusal is None or refusal.line is None or refusal.column is None:
        return None
    return Place(refusal.line, refusal.column, (details.query.splitlines() or [""])[refusal.line - 1])


def _check_settings(members: Mapping[TableName, Details]) -> None:
    (first, own), *rest = members.items()
    for name, details in rest:
        if details.semantics != own.semantics:
            ours, theirs = own.semantics.options(), details.semantics.options()
            differing = [option for option in ours if ours[option] != theirs[option]]
            told = (f"{option}: {ours[option]} for {first}, {theirs[option]} for {name}." for option in differing)
            raise UserError(
                "CYCLE_SETTINGS_DIFFER",
                f"{first} and {name} are in one cycle, but were defined under different session settings.",
                detail=" ".join(told),
                hint=f"Define them again under the same {' and '.join(differing)}.",
            )


def _check_columns(members: Mapping[TableName, Details]) -> None:
    """Check that members still have the columns that their readers were defined over."""
    for name, details in members.items():
        for use in (u for u in details.sources if u.name in members):
            there = {c.name.lower(): c.type for c in members[use.name].output}
            gone = [c.name for c in use.columns if there.get(c.name.lower()) != c.type]
            if gone:
                raise UserError(
                    "SOURCE_SCHEMA_CHANGED",
                    f"{name} reads column {gone[0]} of {use.name}, which would be gone or of another type.",
                    hint=f"Keep the column in {use.name}, or define {name} without it first.",
                )


def choose_cycle(
    facts: Sequence[Facts], views: Mapping[TableName, CompiledView], only_gained: Callable[[SourceFacts], bool]
) -> Choice:
    """Choose whether a cycle goes on from its members' contents or starts from nothing.

    Where something outside lost rows, the members' own contents prove nothing any more: two rows may be there only
    because of each other. So everything is computed again, and what differs is applied.

    Args:
        facts: Of each member, with the sources outside of the cycle.
        views: Their queries.
        only_gained: Whether the change of a source has no negative weight; asked where nothing cheaper tells.
    """
    for own in facts:
        if found := _obstacle(own):
            return Choice(Mode.FULL, found[0], found[1])
    if not any(own.changed for own in facts):
        return Choice(Mode.NO_CHANGE)
    for own in facts:
        tree = views[own.name].tree
        if tree is not None and (found_there := shrinking(tree, own.changed)) is not None:
            where = ", ".join(map(str, found_there.reads))
            detail = f"{own.name} has {found_there.construct} over {where}, which changed"
            return Choice(Mode.FULL, FullReason.CYCLE_SHRANK, detail)
    for own in facts:
        for source in own.sources:
            if source.change is not None and not source.appended and not only_gained(source):
                return Choice(Mode.FULL, FullReason.CYCLE_SHRANK, f"{source.name} lost rows that {own.name} read")
    return Choice(Mode.DIFFERENTIAL)


def may_go_on(facts: Sequence[Facts]) -> bool:
    """Return whether nothing known beforehand keeps a cycle from following its changes."""
    return any(own.changed for own in facts) and not any(map(_obstacle, facts))


def _obstacle(own: Facts) -> tuple[FullReason, str] | None:
    if own.refresh_mode is RefreshMode.DIFFERENTIAL:
        own = replace(own, refresh_mode=RefreshMode.AUTO)  # members are checked to be maintainable when defined
    found = obstacle(own)
    return None if found is None else (found[0], f"{own.name}: {found[1]}")
