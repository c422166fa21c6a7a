"""Chooses semi-joins with changes to share: those that several stream tables read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Moment, Relation, Scan
from headrace.algebra.tree import walk
from headrace.ivm.program import Key, Need, Step
from headrace.names import TableName
from headrace.optimizer.cardinality import Work
from headrace.optimizer.common_subexpressions.across_programs import common_step, together
from headrace.physical.broadcasts import at_most, changes_are_counted, only_small_sides
from headrace.physical.cardinalities import leaf_cardinality
from headrace.physical.facts import Common, Facts, SharedSemijoin
from headrace.physical.key_ranges import MOST_KEYS, WORTH_ROWS
from headrace.physical.leaves import LeafKey, View
from headrace.physical.plan_sql import PlanSql
from headrace.physical.scan_reduction import WORTH_ASKING, ScanReduction
from headrace.physical.stages import Compute
from headrace.physical.view_names import view_named


def shared_semijoins_of(
    facts: Facts,
    needs: Mapping[TableName, Mapping[Key, Need]],
    there: Callable[[str], bool],
    failed: Set[Key],
) -> dict[Key, SharedSemijoin]:
    """Return the semi-joins to compute for several tables, or to read from others.

    Args:
        facts: The refresh, as it is going to be run.
        needs: What each stream table was seen to need.
        there: Whether something is kept under a name.
        failed: Semi-joins that covered too much of their source before.
    """
    found = {}
    changes = {s.name: s.common for s in facts.sources if s.change is not None and s.common is not None}
    for key in needs.get(facts.name, {}):
        sharing = {table: of[key] for table, of in needs.items() if key in of}
        need = _possible(together(sharing.values()), key, facts, changes) if len(sharing) > 1 else None
        if need is not None and key not in failed:
            kept = _kept(key, need, facts, changes, sharing.keys())
            if kept.common.waiting or there(kept.common.view):
                found[key] = kept
    return found


def _possible(need: Need, key: Key, facts: Facts, changes: Mapping[TableName, Common]) -> Need | None:
    """Return the part of a need that can be computed now.

    Others had changed when it was seen, and had other columns.
    """
    follows = frozenset(each for each in need.follows if each[0] in facts.changed)
    source = facts.by_name.get(key[0])
    if source is None or not follows or not _read(key, follows, facts) <= changes.keys():
        return None
    there, fields = source.names, need.fields
    if key[0] in changes:
        there = there & changes[key[0]].columns
        fields = {name: type_ for name, type_ in fields.items() if type_ and equal_means_same(type_)}
    if not there.issuperset(key[1]) or not all(changes[table].columns.issuperset(own) for table, own in follows):
        return None
    fields = {name: type_ for name, type_ in fields.items() if name in there}
    told_apart = len({name.lower() for name in (*fields, *key[1])}) == len({*fields, *key[1]})
    return Need(follows, fields) if told_apart else None


def reduction_of(step: Step, facts: Facts) -> ScanReduction:
    """Return the scan reduction of a semi-join step; none for other steps.

    Args:
        step: The step.
        facts: The refresh.
    """
    source = step.semijoin[0] if step.semijoin is not None else None
    rows = (facts.by_name[source].rows or 0) if source is not None else 0
    few = all((facts.by_name[each].change_rows or 0) <= MOST_KEYS for each in facts.changed)
    keys = step.integer_key if rows >= WORTH_ROWS and few and _reads_once(step, source) else None
    return ScanReduction(keys, step.coverage if rows >= WORTH_ASKING else None)


def _reads_once(step: Step, source: TableName | None) -> bool:
    return sum(1 for leaf in walk(step.relation) if _is_of(leaf, source)) == 1


def _is_of(leaf: Relation, source: TableName | None) -> bool:
    """Return whether a relation is the scan of all rows of a source."""
    return isinstance(leaf, Scan) and leaf.source == source and leaf.moment is not Moment.CHANGE


def _read(key: Key, follows: Iterable[Key], facts: Facts) -> Set[TableName]:
    """Return the sources whose changes a shared semi-join reads."""
    return {key[0], *(table for table, _ in follows)} & facts.changed


def _kept(
    key: Key, need: Need, facts: Facts, changes: Mapping[TableName, Common], sharing: Set[TableName]
) -> SharedSemijoin:
    read = _read(key, need.follows, facts)
    hints = changes_are_counted(facts.by_name[table] for table in read)
    largest = at_most(facts)
    work = Work(lambda leaf: leaf_cardinality(largest, leaf))
    step = only_small_sides(common_step(key, need, facts.changed), work)
    leaves: dict[LeafKey, str | View] = {(name, Moment.CHANGE): View(kept.view) for name, kept in changes.items()}
    leaves |= {(source.name, Moment.AFTER): source.after for source in facts.sources}
    reduction = reduction_of(step, facts)
    # one that is computed without broadcasts has the same rows, and is found under the same name
    sql = PlanSql(facts).query(Compute(step.name, "", step.relation, semijoin=key, reduction=reduction, leaves=leaves))
    waiting = frozenset(sharing - {facts.name}).intersection(*(changes[table].waiting for table in read))
    common = Common(view_named(sql), sql, "", waiting, frozenset(need.fields), len(sharing))
    return SharedSemijoin(need, common, step, leaves, hints)
