"""Guards a refresh by the stream table's fuse, before anything is computed or written."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.schema import Column
from headrace.catalog import Catalog
from headrace.events import Events, FuseBlown
from headrace.lake.compare import consolidate, incomparable
from headrace.names import WEIGHT, TableName, quote
from headrace.physical.facts import Facts
from headrace.ports import Session
from headrace.refresh.fuses.fuse import Fuse, Resolution, blown, changed_rows, judge
from headrace.refresh.gather_facts import TableState
from headrace.schedule.options import parse_options

COUNTED = frozenset({Resolution.APPLY, Resolution.SKIP})
"""Of a change that is let through, or left out, it is noted how large it was."""


def guarded(
    state: TableState,
    facts: Facts,
    default: Fuse,
    *,
    catalog: Catalog,
    session: Session,
    events: Events,
    resolved: Resolution | None = None,
) -> dict[TableName, int]:
    """Return the number of changed rows by source; raise where a fuse blows.

    Empty where the numbers are not known.

    The snapshots' counters say how many at most: they include rows that an update carried over into new files, and rows
    that went and came again unchanged. Rows are counted only where that matters: if these may be too many, or nobody
    has counted them; if changes are compared with earlier ones, for which a counter of carried rows would be no
    measure; and where it is noted how large a change was that somebody decided about.

    Args:
        state: What the catalog says of the table.
        facts: The refresh.
        default: The project's fuse.
        catalog: Where a blown fuse is noted.
        session: Gives the runner that counts.
        events: Told of a blown fuse.
        resolved: What was decided about a change that is too large; None to judge.

    Raises:
        EnvironmentFault: `FUSE_BLOWN`.
    """
    changed = changed_rows(facts.sources, state.frontier, state.at_frontier)
    fuse = Fuse() if resolved is not None else default.of(parse_options(state.table.options))
    carried = any(facts.by_name[name].carried for name in changed)
    unknown = {s.name: 0 for s in facts.sources if s.change is not None and s.change_rows is None}
    doubtful = bool(unknown and (fuse.ceiling or fuse.factor)) or bool(carried and fuse.factor)
    if judge(fuse, changed, state.history) is not None or doubtful or resolved in COUNTED:
        changed, carried = _counted(facts, unknown | changed, session), False
    evidence = judge(fuse, changed, state.history)
    if evidence is None:
        return {} if carried else changed
    catalog.blow_fuse(facts.name, evidence.as_dict())
    events.emit(FuseBlown(str(facts.name), evidence.rows, evidence.limit, evidence.rule, evidence.sentence))
    raise blown(facts.name, evidence)


def _counted(facts: Facts, changed: Mapping[TableName, int], session: Session) -> dict[TableName, int]:
    """Count changed rows as the table reads them, without those that went and came again.

    Of rows that were only appended, the counters tell that, where there are any.
    """
    of = facts.by_name
    told = {name for name in changed if of[name].appended and of[name].change_rows is not None}
    exact = {name: rows for name, rows in changed.items() if name in told or of[name].change is None}
    found = dict(exact)
    if len(exact) < len(changed):
        runner = session.runner().under(facts.details.semantics)
        columns = {use.name: use.columns for use in facts.details.sources}
        with runner.jobs(f"refresh {facts.name}"):  # cancelled as the refresh is, when it takes too long
            for name in changed.keys() - exact.keys():
                net = _net(facts.by_name[name].change or "", columns[name])
                found[name] = int(runner.run(f"SELECT coalesce(sum(abs({quote(WEIGHT)})), 0) FROM ({net})")[0][0])
    return {name: rows for name, rows in sorted(found.items(), key=lambda item: -item[1]) if rows}


def _net(change: str, columns: tuple[Column, ...]) -> str:
    """Return a change without what cancels out; as it is where values cannot be compared."""
    return change if incomparable(columns) else consolidate(change, columns, apart=True)
