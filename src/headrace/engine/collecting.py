"""Which rows near changes are collected for several stream tables: those that more than one was seen to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from threading import Lock

from headrace.algebra.relations import Moment, Scan, Stored
from headrace.delta.common_near import common_step, together
from headrace.delta.nearby import same_when_equal
from headrace.delta.program import Key, Need
from headrace.engine.common import view_named
from headrace.engine.facts import Collected, Common, Facts
from headrace.errors import InternalError
from headrace.names import TableName, quote
from headrace.semantics import Semantics
from headrace.sql.lower import lower

BROADCAST_ROWS = 500_000
"""A change of at most this many rows is broadcast in joins; of 100 bytes a row that is 50 MB in every task."""


class Needs:
    """What stream tables' programs needed when they were derived last; kept for a session, safe to use from threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._needs: dict[TableName, tuple[Semantics, Mapping[Key, Need]]] = {}

    def note(self, table: TableName, semantics: Semantics, needs: Mapping[Key, Need]) -> None:
        """Remember what a table's program needs."""
        with self._lock:
            self._needs[table] = semantics, needs

    def under(self, semantics: Semantics) -> dict[TableName, Mapping[Key, Need]]:
        """What is remembered of stream tables that are computed under the same settings; others share nothing."""
        with self._lock:
            return {table: needs for table, (own, needs) in self._needs.items() if own == semantics}


def collected(
    facts: Facts,
    needs: Mapping[TableName, Mapping[Key, Need]],
    there: Callable[[str], bool],
    barred: Callable[[TableName, str], Set[tuple[str, ...]]],
) -> dict[Key, Collected]:
    """What to collect for several, or to read where others had it collected.

    Args:
        facts: The refresh, as it is going to be run.
        needs: What each stream table was seen to need.
        there: Whether something is kept under a name.
        barred: Columns of a source by which too many of its rows are near changes; asked with its rows at the cut.
    """
    found = {}
    for key in needs.get(facts.name, {}):
        sharing = {table: of[key] for table, of in needs.items() if key in of}
        need = _possible(together(sharing.values()), key, facts) if len(sharing) > 1 else None
        if need is not None and key[1] not in barred(key[0], facts.by_name[key[0]].after):
            common = _kept(key, need, facts, sharing.keys())
            if common.waiting or there(common.view):
                found[key] = Collected(need, common)
    return found


def _possible(need: Need, key: Key, facts: Facts) -> Need | None:
    """The part of a need that can be collected now; others had changed when it was seen, and had other columns."""
    changes = {s.name: s.common for s in facts.sources if s.change is not None}
    follows = frozenset(each for each in need.follows if each[0] in changes)
    source = facts.by_name.get(key[0])
    used = {key[0]} & changes.keys() | {table for table, _ in follows}
    if source is None or not follows or any(changes[table] is None for table in used):
        return None
    there, fields = source.names, need.fields
    if (own := changes.get(key[0])) is not None:
        there = there & own.columns
        fields = {name: type_ for name, type_ in fields.items() if type_ and same_when_equal(type_)}
    if not there.issuperset(key[1]) or any(not _has(changes[table], columns) for table, columns in follows):
        return None
    fields = {name: type_ for name, type_ in fields.items() if name in there}
    told_apart = len({name.lower() for name in (*fields, *key[1])}) == len({*fields, *key[1]})
    return Need(follows, fields) if told_apart else None


def _has(change: Common | None, columns: tuple[str, ...]) -> bool:
    return change is not None and change.columns.issuperset(columns)


def _kept(key: Key, need: Need, facts: Facts, sharing: Set[TableName]) -> Common:
    step = common_step(key, need, facts.changed)
    sources = facts.by_name

    def bind(leaf: Scan | Stored) -> str:
        if not isinstance(leaf, Scan):
            raise InternalError("PLAN_INVALID", f"What is common reads {leaf.name}, which others do not have.")
        source = sources[leaf.source]
        if leaf.moment is not Moment.CHANGE:
            return source.after
        if source.common is None:
            raise InternalError("PLAN_INVALID", f"What is common reads a change of {leaf.source} that is not.")
        return quote(source.common.view)

    used = [sources[table] for table in (step.follows | {key[0]}) & facts.changed]
    small = all(s.change_rows is not None and s.change_rows <= BROADCAST_ROWS for s in used)
    sql = lower(step.relation, bind, hints=small)
    waiting = sharing - {facts.name}
    for source in used:
        waiting = waiting & (source.common.waiting if source.common else frozenset())
    return Common(view_named(sql), sql, "", frozenset(waiting), frozenset(need.fields))
