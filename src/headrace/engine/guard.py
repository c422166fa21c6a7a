"""Guards a refresh by the stream table's fuse, before anything is computed or written."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import Catalog
from headrace.engine.facts import Facts
from headrace.engine.fuse import Fuse, Resolution, blown, changed_rows, judge
from headrace.engine.gather import Known
from headrace.engine.ports import Session
from headrace.events import Events, FuseBlown
from headrace.names import WEIGHT, TableName, quote
from headrace.schedule.options import parse_options

COUNTED = frozenset({Resolution.APPLY, Resolution.SKIP})
"""Of a change that is let through, or left out, it is noted how large it was."""


def guarded(
    know: Known,
    facts: Facts,
    default: Fuse,
    *,
    catalog: Catalog,
    session: Session,
    events: Events,
    resolved: Resolution | None = None,
) -> dict[TableName, int]:
    """How many rows changed, by source, if that is not too much; nothing where that is not known.

    The snapshots' counters say how many at most: they include rows that an update carried over into new files. Rows are
    counted only where that matters: if these may be too many; and if changes are compared with earlier ones, for which
    a counter of carried rows would be no measure.

    Args:
        know: What the catalog says of the table.
        facts: The refresh.
        default: The project's fuse.
        catalog: Where a blown fuse is noted.
        session: Gives the runner that counts.
        events: Told of a blown fuse.
        resolved: What was decided about a change that is too large; None to judge.

    Raises:
        EnvironmentFault: `FUSE_BLOWN`.
    """
    changed = changed_rows(facts.sources, know.frontier, know.at_frontier)
    fuse = Fuse() if resolved is not None else default.of(parse_options(know.table.options))
    carried = any(facts.by_name[name].carried for name in changed)
    if judge(fuse, changed, know.history) is not None or (carried and (fuse.factor or resolved in COUNTED)):
        changed, carried = _counted(facts, changed, session), False
    evidence = judge(fuse, changed, know.history)
    if evidence is None:
        return {} if carried else changed
    catalog.blow_fuse(facts.name, evidence.as_dict())
    events.emit(FuseBlown(str(facts.name), evidence.rows, evidence.limit, evidence.rule, evidence.sentence))
    raise blown(facts.name, evidence)


def _counted(facts: Facts, changed: Mapping[TableName, int], session: Session) -> dict[TableName, int]:
    """Cancelled as the refresh is, when it takes too long."""
    runner = session.runner().under(facts.details.semantics)
    found = {}
    with runner.jobs(f"refresh {facts.name}"):
        for name, rows in changed.items():
            change = facts.by_name[name].change
            if change is not None:
                counted = runner.run(f"SELECT coalesce(sum(abs({quote(WEIGHT)})), 0) FROM ({change})")
                rows = int(counted[0][0])
            found[name] = rows
    return {name: rows for name, rows in sorted(found.items(), key=lambda item: -item[1]) if rows}
