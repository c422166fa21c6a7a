"""Aggregate at the root: accumulators in a companion.

A touched group's accumulators are the old ones plus what the change adds; the output row is a function of them, so the
state's change is −f(old) + f(new), and a group for which both are equal is not touched at all. A minimum or maximum
grows in place; only when the extreme itself left is its group read again. Without GROUP BY there is one group, which
always has a row.
Source: Palpanas et al., Incremental Maintenance for Non-Distributive Aggregate Functions, VLDB 2002.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Filter,
    LookupJoin,
    Project,
    Relation,
    Replicate,
    SemiJoin,
    Stored,
)
from headrace.algebra.scalar import TRUE, Scalar, all_of, any_of, as_column, cast, column, compose, substitute
from headrace.algebra.tree import identity
from headrace.ivm.affected_keys import touched
from headrace.ivm.aggregates.accumulators import HIGH, LOST, LOW, ROWS, Accumulator, Kind, change_call, joined_halves
from headrace.ivm.append_only import only_inserts
from headrace.ivm.change import Change, union_all, weigh
from headrace.ivm.consolidate import consolidate, consolidated_apart
from headrace.ivm.program import Counts, DeltaProgram, FullProgram, TableChange
from headrace.ivm.query_root import Root
from headrace.ivm.rules.replicate import multiplied
from headrace.names import WEIGHT

OLD, NEW, ADD, AGAIN = "__hr_old.", "__hr_new.", "__hr_add.", "__hr_again."
"""Prefixes: an accumulator as published, as it will be, what the change adds to it, as read again."""

_RESCAN = "__hr_rescan"


def full(root: Root) -> FullProgram:
    """Compute the companion from the sources and the state from the companion."""
    state = shown(root, Stored(root.place, root.companion))
    return FullProgram(_from_scratch(root, root.aggregate.input, ""), state, _key_names(root))


def shown(root: Root, companion: Relation) -> Relation:
    """Return the query's rows as a function of all groups.

    Args:
        root: The aggregate.
        companion: All groups with their accumulators.
    """
    state = companion if root.condition is None else Filter(companion, root.over_companion(root.condition))
    state = Project(state, tuple((name, root.over_companion(scalar)) for name, scalar in _shown_items(root)))
    return state if root.copies is None else Replicate(state, _COPIES)


_COPIES = "__hr_copies"


def _shown_items(root: Root) -> tuple[tuple[str, Scalar], ...]:
    """Return the output columns, with the number of copies where rows have several."""
    return root.items if root.copies is None else (*root.items, (_COPIES, root.copies))


def follow(root: Root, change: Change) -> DeltaProgram:
    """Return the program for a change of the aggregate's input."""
    whole = change.whole and _stays_untouched(root, change)
    kept = moved(root, change, whole=whole)
    state, companion = state_change(root, kept), companion_change(root, kept)
    if whole:
        now = companion_now(root, kept)
        state, companion = replace(state, contents=shown(root, now)), replace(companion, contents=now)
    return DeltaProgram(tuple(change.steps), state, companion)


def _stays_untouched(root: Root, change: Change) -> bool:
    """Return whether a group to which nothing is added comes out as it is stored.

    Sums that overflowed to NULL would not. Groups that are computed again from their rows are the touched ones only.
    """
    if not root.keys or root.plan.recomputed:
        return False
    return change.ansi or not any(map(_overflows_to_null, root.plan.accumulators))


def moved(root: Root, change: Change, *, whole: bool = False) -> Stored:
    """Return the touched groups, with accumulators as published and as they will be.

    Args:
        root: The aggregate.
        change: The changed sources; gets the step that computes the groups.
        whole: Whether groups that are not touched come along, of which both are the same.

    Returns:
        One row per group; columns begin with `OLD` or `NEW`, those of the key with neither.
    """
    if root.plan.recomputed:
        return change.keep("change", _recomputed(root, change))
    return change.keep("change", _accumulated(root, change, whole=whole))


def companion_now(root: Root, groups: Stored) -> Relation:
    """Return groups as the companion will have them.

    Args:
        root: The aggregate.
        groups: As `moved` returns them.
    """
    keys = _key_names(root)
    there = Filter(groups, existed(root, NEW)) if keys else groups
    return Project(there, tuple((name, column(name if name in keys else NEW + name)) for name in root.companion))


def _from_scratch(root: Root, rows: Relation, prefix: str) -> Relation:
    """Return keys under their companion names, and accumulators computed from rows."""
    calls = tuple(a.scratch for a in root.plan.accumulators)
    items = [(name, column(key)) for key, name in root.keys]
    for a in root.plan.accumulators:
        value = column(a.name) if a.type is None else cast(column(a.name), a.type)
        items.append((prefix + a.name, value if a.kind is Kind.SUM else column(a.name)))
    return Project(Aggregate(rows, root.aggregate.keys, calls), tuple(items))


def _published(root: Root) -> Relation:
    """Return the companion as published, under names that can stand beside the new ones."""
    stored = Stored(root.place, root.companion)
    return Project(stored, tuple((OLD + name, column(name)) for name in root.companion))


def _key_names(root: Root) -> tuple[str, ...]:
    return tuple(name for _, name in root.keys)


LARGE = 100_000
"""Companion rows from which it pays to compute the touched groups first, and look at nothing else in the companion."""


def _with_published(root: Root, touched: Relation, change: Change) -> Relation:
    """Return touched groups beside their accumulators as published."""
    on = tuple((name, OLD + name) for name in _key_names(root))
    published = _published(root)
    if change.companion_rows < LARGE or not on:
        return LookupJoin(touched, published, on)
    # an outer join would shuffle the whole companion, however few groups are touched
    kept = touched if isinstance(touched, Stored) else change.keep("added", touched)
    return LookupJoin(kept, SemiJoin(published, kept, tuple((b, a) for a, b in on)), on, small_right=True)


def _beside_all(root: Root, touched: Relation) -> Relation:
    """Return all groups as published, with what is added to the touched ones."""
    joined = LookupJoin(touched, _published(root), tuple((k, OLD + k) for k in _key_names(root)), whole=True)
    either = {k: compose("COALESCE({a}, {b})", a=column(k), b=column(OLD + k)) for k in _key_names(root)}
    return Project(joined, tuple((name, either.get(name, column(name))) for name in joined.columns))


def _olds(root: Root) -> tuple[tuple[str, Scalar], ...]:
    return tuple((OLD + a.name, column(OLD + a.name)) for a in root.plan.accumulators)


# touched groups read again


def _recomputed(root: Root, change: Change) -> Relation:
    """Compute all calls from the touched groups' rows, as some call has no accumulator."""
    aggregate = root.aggregate
    keys = _key_names(root)
    rows = change.after(aggregate.input)
    if not keys:
        again: Relation = _from_scratch(root, rows, AGAIN)
        joined = _with_published(root, again, change)
    else:
        groups = change.keep("touched", Project(touched(aggregate.input, aggregate.keys, change), _renamed(root)))
        again = _reading_again(root, rows, groups)
        beside = _with_published(root, groups, change)
        joined = LookupJoin(beside, again, tuple((k, AGAIN + k) for k in keys))
    rows_now = compose("COALESCE({n}, 0)", n=column(AGAIN + ROWS))
    values = ((a.name, column(AGAIN + a.name)) for a in root.plan.accumulators)
    news = tuple((NEW + name, rows_now if name == ROWS else value) for name, value in values)
    return Project(joined, (*identity(keys), *_olds(root), *news))


def _renamed(root: Root) -> tuple[tuple[str, Scalar], ...]:
    return tuple((name, column(key)) for key, name in root.keys)


def _reading_again(root: Root, rows: Relation, groups: Relation) -> Relation:
    """Return accumulators computed from the rows of some groups.

    Every column gets the prefix AGAIN.
    """
    some = SemiJoin(rows, groups, root.keys)
    fresh = _from_scratch(root, some, AGAIN)
    keys = set(_key_names(root))
    return Project(fresh, tuple((AGAIN + c if c in keys else c, column(c)) for c in fresh.columns))


# accumulators moved by the change


def _accumulated(root: Root, change: Change, *, whole: bool) -> Relation:
    """Return old accumulators plus the change; groups whose extreme left are read again."""
    keys = _key_names(root)
    touched = _beside_all(root, _added(root, change)) if whole else _with_published(root, _added(root, change), change)
    accumulators = root.plan.accumulators
    news = tuple((NEW + a.name, _moved(a, ansi=change.ansi)) for a in accumulators)
    doubts = _doubts(root, change)
    if not doubts:
        return Project(touched, (*identity(keys), *_olds(root), *news))
    rescan = compose("COALESCE({r}, false)", r=any_of(doubts))
    first = change.keep("touched", Project(touched, (*identity(keys), *_olds(root), *news, (_RESCAN, rescan))))
    flagged = Filter(first, column(_RESCAN))
    groups = Project(flagged, identity(keys)) if keys else flagged
    rows = change.after(root.aggregate.input)
    again = change.keep("rescanned", _reading_again(root, rows, groups), only_if=groups)
    joined = LookupJoin(first, again, tuple((k, AGAIN + k) for k in keys))
    chosen = tuple((NEW + a.name, column(NEW + a.name) if a.kind is Kind.COUNT else _chosen(a)) for a in accumulators)
    return Project(joined, (*identity(keys), *_olds(root), *chosen))


def _may_lose_extreme(root: Root, change: Change) -> bool:
    return any(a.extreme for a in root.plan.accumulators) and not only_inserts(root.aggregate.input, change)


def _doubts(root: Root, change: Change) -> list[Scalar]:
    """Return the conditions under which a group must be read again."""
    accumulators = root.plan.accumulators
    doubts = [_left(a) for a in accumulators if a.extreme] if _may_lose_extreme(root, change) else []
    return doubts if change.ansi else doubts + [_overflowed(a) for a in accumulators if _overflows_to_null(a)]


def _added(root: Root, change: Change) -> Relation:
    """Return what the change adds to each touched group, keys under companion names."""
    aggregate = root.aggregate
    rows = change.of(aggregate.input)
    accumulators = root.plan.accumulators
    if _may_lose_extreme(root, change):
        # a value that came and went within the change must be seen as neither, so equal rows are summed up first
        rows = _added_up(root, _needed(root, rows))
    halved = [ADD + a.name for a in accumulators if a.halved(ansi=change.ansi)]
    calls = tuple(call for a in accumulators for call in change_call(a, ADD, ansi=change.ansi))
    halves = {prefix + name for name in halved for prefix in (HIGH, LOW)}
    whole = tuple(call.name for call in calls if call.name not in halves)
    return Project(
        Aggregate(rows, aggregate.keys, calls),
        (*_renamed(root), *identity(whole), *((name, joined_halves(name)) for name in halved)),
    )


def _needed(root: Root, rows: Relation) -> Relation:
    """Return only the columns that keys, arguments and filters read.

    Of what is counted and nothing else only whether it is there: it may be of a type that cannot be grouped by.
    """
    read, counted = {WEIGHT, *root.aggregate.keys}, set[str]()
    for call in root.aggregate.calls:
        name = _counted(call)
        if name is None:
            read |= call.columns
        else:
            counted.add(name)
            read |= call.filter.columns if call.filter is not None else set()
    kept = (c for c in rows.columns if c in read or c in counted)
    return Project(rows, tuple((c, column(c) if c in read else _there(c)) for c in kept))


def _added_up(root: Root, rows: Relation) -> Relation:
    """Add up equal rows, but keep apart those of which extremes may differ, as 0.0 and -0.0 do."""
    loose = {name: a.type or "" for a in root.plan.accumulators if (name := _loose(a)) is not None}
    return consolidated_apart(rows, loose)


def _loose(a: Accumulator) -> str | None:
    """Return the column of whose values an extreme is taken, where equal ones may differ."""
    argument = a.scratch.argument if a.extreme and not equal_means_same(a.type or "") else None
    return None if argument is None else as_column(argument)


def _counted(call: AggregateCall) -> str | None:
    """Return the column whose values a call counts and does nothing else with."""
    counts = call.function == "count" and call.plain
    return as_column(call.argument) if counts and call.argument is not None else None


def _there(name: str) -> Scalar:
    """Return a value that is NULL where a column is."""
    return compose("CASE WHEN {c} IS NOT NULL THEN true END", c=column(name))


def _moved(a: Accumulator, *, ansi: bool) -> Scalar:
    """Return an accumulator's new value from its old one and the change."""
    old, add = column(OLD + a.name), column(ADD + a.name)
    if a.kind is Kind.COUNT:
        total = compose("COALESCE({old}, 0) + COALESCE({add}, 0)", old=old, add=add)
        return _checked(total) if a.name == ROWS else cast(total, "bigint")
    if a.kind is Kind.SUM:
        assert a.count is not None
        # zero is of the sum's own type: beside an integer, Spark would make room for ten digits and lose decimals
        zero = f"CAST(0 AS {a.type})"
        template = f"CAST(COALESCE({{old}}, {zero}) + COALESCE(CAST({{add}} AS {a.type}), {zero}) AS {a.type})"
        if a.halved(ansi=ansi):
            # fails where the new sum does not fit, as the query itself would
            template = "CAST(CAST(COALESCE({old}, 0) AS decimal(20,0)) + COALESCE({add}, 0) AS bigint)"
        total = compose(template, old=old, add=add)
        counted = compose(
            "COALESCE({old}, 0) + COALESCE({add}, 0) > 0", old=column(OLD + a.count), add=column(ADD + a.count)
        )
        return compose("CASE WHEN {c} THEN {t} END", c=counted, t=total)
    chooser = "LEAST" if a.kind is Kind.MIN else "GREATEST"
    return compose(f"{chooser}({{old}}, {{add}})", old=old, add=add)


def _checked(total: Scalar) -> Scalar:
    """Fail on a group with a negative row count.

    State and change do not belong together then: the refresh stops and publishes nothing.
    """
    message = "raise_error('[STATE_DIVERGED] a change removes rows that the stream table does not have')"
    return compose(f"CAST(CASE WHEN {{t}} >= 0 THEN {{t}} ELSE {message} END AS bigint)", t=total)


def _left(a: Accumulator) -> Scalar:
    """Return whether the old extreme may be lost and no gained value replaces it."""
    beyond = "<" if a.kind is Kind.MIN else ">"
    reaches = f"{beyond}="
    # a value that only equals the lost one, and is not the same, may not be taken for it
    replaces = reaches if equal_means_same(a.type or "") else beyond
    return compose(
        f"{{lost}} {reaches} {{old}} AND NOT COALESCE({{add}} {replaces} {{old}}, false)",
        lost=column(LOST + ADD + a.name),
        old=column(OLD + a.name),
        add=column(ADD + a.name),
    )


def _overflows_to_null(a: Accumulator) -> bool:
    """Return whether a sum becomes NULL on overflow, as decimals do without ANSI mode.

    Integers wrap around, which later changes undo.
    """
    return a.kind is Kind.SUM and a.type != "bigint"


def _overflowed(a: Accumulator) -> Scalar:
    """Return the condition that a sum is or was NULL although there are values to sum."""
    assert a.count is not None
    template = "({old} IS NULL AND {had} > 0) OR ({new} IS NULL AND {has} > 0)"
    return compose(
        # what the change adds may be NULL because it overflows, or because it is nothing
        template + (" OR {add} IS NULL" if a.tight else ""),
        old=column(OLD + a.name),
        add=column(ADD + a.name),
        had=column(OLD + a.count),
        new=_moved(a, ansi=False),
        has=_moved(Accumulator(a.count, Kind.COUNT, a.scratch), ansi=False),
    )


def _chosen(a: Accumulator) -> Scalar:
    return compose(
        "CASE WHEN {r} THEN {again} ELSE {new} END",
        r=column(_RESCAN),
        again=column(AGAIN + a.name),
        new=column(NEW + a.name),
    )


# from accumulators to changes of tables


def existed(root: Root, when: str) -> Scalar:
    """Return the condition that a group has rows; always true for a global aggregate's group.

    Args:
        root: The aggregate.
        when: `OLD` for the groups as published, `NEW` for the groups as they will be.
    """
    if not root.keys:
        return TRUE
    rows = column(when + ROWS)
    return compose("{n} IS NOT NULL", n=rows) if when == OLD else compose("{n} > 0", n=rows)


def _differ(
    columns: tuple[str, ...], was: Scalar, is_: Scalar, key: tuple[str, ...], loose: frozenset[str] = frozenset()
) -> Scalar:
    """Return whether the old and the new row differ.

    Columns are OLD and NEW ones, or bare for a key.

    Args:
        columns: The columns of both.
        was: Whether there is an old row.
        is_: Whether there is a new one.
        key: Columns in which they agree.
        loose: Columns in which equal values may differ, as 0.0 and -0.0 do: they must show the same text.
    """
    values = tuple(c for c in columns if c not in key)
    compared = [f"{{o{i}}} <=> {{n{i}}}" for i in range(len(values))]
    compared += [f"CAST({{o{i}}} AS STRING) <=> CAST({{n{i}}} AS STRING)" for i, c in enumerate(values) if c in loose]
    same = " AND ".join(compared) or "true"
    parts = {f"o{i}": column(OLD + c) for i, c in enumerate(values)}
    parts |= {f"n{i}": column(NEW + c) for i, c in enumerate(values)}
    return compose("NOT ({was} AND {is_} AND " + same + ")", was=was, is_=is_, **parts)


def _both_ways(
    sides: Relation, columns: tuple[str, ...], was: Scalar, is_: Scalar, key: tuple[str, ...], differ: Scalar
) -> Relation:
    """Return −old + new for rows where they differ.

    Args:
        sides: The old and the new rows side by side.
        columns: The columns of both.
        was: Whether there is an old row.
        is_: Whether there is a new one.
        key: Columns in which they agree.
        differ: Whether they differ, as `_differ` returns it.
    """

    def side(when: str, shown: Scalar, weight: int) -> Relation:
        rows = Filter(Filter(sides, shown), differ) if shown != TRUE else Filter(sides, differ)
        return weigh(Project(rows, tuple((c, column(c if c in key else when + c)) for c in columns)), weight)

    return union_all(side(OLD, was, -1), side(NEW, is_, 1))


def companion_change(root: Root, kept: Stored) -> TableChange:
    """Return the change of the companion.

    Args:
        root: The aggregate.
        kept: The touched groups, as `moved` returns them.
    """
    key = _key_names(root)
    was, is_ = existed(root, OLD), existed(root, NEW)
    # what the state shows of an accumulator may tell values apart that are equal
    loose = frozenset(a.name for a in root.plan.accumulators if not equal_means_same(a.type or ""))
    differ = _differ(root.companion, was, is_, key, loose)
    change = _both_ways(kept, root.companion, was, is_, key, differ)
    return TableChange(change, key, _counts(kept, was, is_, differ))


def _counts(kept: Stored, was: Scalar, is_: Scalar, differ: Scalar) -> tuple[Counts, ...]:
    gone, come = (all_of(c for c in (shown, differ) if c != TRUE) or TRUE for shown in (was, is_))
    return (Counts(kept.name, inserted=come, deleted=gone),)


_WAS, _IS = "__hr_was", "__hr_is"


def state_change(root: Root, kept: Stored) -> TableChange:
    """Return the change of the result: each group's row as it was and as it will be.

    Args:
        root: The aggregate.
        kept: The touched groups, as `moved` returns them.
    """
    key = root.output_key
    items = [(_WAS, _shown(root, OLD)), (_IS, _shown(root, NEW))]
    for name, scalar in _shown_items(root):
        if key is not None and name in key:
            items.append((name, _value(root, scalar, NEW)))
        else:
            items += [(when + name, _guarded(root, scalar, when)) for when in (OLD, NEW)]
    names = tuple(name for name, _ in _shown_items(root))
    sides = Project(kept, tuple(items))
    differ = _differ(names, column(_WAS), column(_IS), key or ())
    change = _both_ways(sides, names, column(_WAS), column(_IS), key or (), differ)
    if root.copies is not None:
        change = multiplied(change, _COPIES)
    if key is None:
        return TableChange(consolidate(change), None)
    values = dict(items)
    return TableChange(change, key, _counts(kept, values[_WAS], values[_IS], substitute(differ, values)))


def _value(root: Root, scalar: Scalar, when: str) -> Scalar:
    over = root.over_companion(scalar)
    return substitute(over, {a.name: column(when + a.name) for a in root.plan.accumulators})


def _shown(root: Root, when: str) -> Scalar:
    exists = existed(root, when)
    if root.condition is None:
        return exists
    holds = compose("COALESCE({c}, false)", c=_value(root, root.condition, when))
    return holds if exists == TRUE else compose("CASE WHEN {e} THEN {c} ELSE false END", e=exists, c=holds)


def _guarded(root: Root, scalar: Scalar, when: str) -> Scalar:
    """Return an output expression, evaluated only for groups that are shown.

    Elsewhere it might fail.
    """
    value = _value(root, scalar, when)
    shown = _shown(root, when)
    if shown == TRUE or as_column(value) is not None:
        return value
    return compose("CASE WHEN {s} THEN {v} END", s=shown, v=value)
