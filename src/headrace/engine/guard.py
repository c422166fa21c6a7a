"""Guards a refresh by the stream table's fuse, before anything is computed or written."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import Catalog
from headrace.engine.facts import Facts
from headrace.engine.fuse import Fuse, blown, changed_rows, judge
from headrace.engine.gather import Known
from headrace.engine.ports import Session
from headrace.events import Events, FuseBlown
from headrace.names import WEIGHT, TableName, quote
from headrace.schedule.options import parse_options


def guarded(
    know: Known, facts: Facts, default: Fuse, *, catalog: Catalog, session: Session, events: Events
) -> dict[TableName, int]:
    """How many rows changed, by source, if that is not too much.

    Only where the snapshots' counters say that it may be too much, the rows are counted: these counters include rows
    that an update carried over into new files.

    Args:
        know: What the catalog says of the table.
        facts: The refresh.
        default: The project's fuse.
        catalog: Where a blown fuse is noted.
        session: Gives the runner that counts.
        events: Told of a blown fuse.

    Raises:
        EnvironmentFault: `FUSE_BLOWN`.
    """
    changed = changed_rows(facts.sources, know.frontier, know.at_frontier)
    fuse = default.of(parse_options(know.table.options))
    if judge(fuse, changed, know.history) is None:
        return changed
    changed = _counted(facts, changed, session)
    evidence = judge(fuse, changed, know.history)
    if evidence is None:
        return changed
    catalog.blow_fuse(facts.name, evidence.as_dict())
    events.emit(FuseBlown(str(facts.name), evidence.rows, evidence.limit, evidence.rule, evidence.sentence))
    raise blown(facts.name, evidence)


def _counted(facts: Facts, changed: Mapping[TableName, int], session: Session) -> dict[TableName, int]:
    runner = session.runner().under(facts.details.semantics)
    found = {}
    for name, rows in changed.items():
        change = facts.by_name[name].change
        if change is not None:
            counted = runner.run(f"SELECT coalesce(sum(abs({quote(WEIGHT)})), 0) FROM ({change})")
            rows = int(counted[0][0])
        found[name] = rows
    return {name: rows for name, rows in sorted(found.items(), key=lambda item: -item[1]) if rows}
