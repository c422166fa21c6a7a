"""Compares a stream table with its query at its frontier, by the user's own text.

Both sides are read at the versions the frontier names, so it can be run at any time, while sources move on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.catalog import Catalog, SchedulingState
from headrace.definitions.details import Details
from headrace.definitions.function_versions import refuse_changed
from headrace.definitions.read_columns import held_to
from headrace.definitions.user_text import bind_text
from headrace.errors import UserError
from headrace.names import TableName, quote
from headrace.ports import Runner, Session
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut
from headrace.refresh.cut.pinned_state import expired
from headrace.refresh.definition.source_keys import values_in_several_rows
from headrace.refresh.verify.compared_rows import compare
from headrace.refresh.verify.verify_cycle import Text, TextFixpoint
from headrace.results.refresh_results import VerifyResult
from headrace.sources.lakehouse.changes_sql import rows_sql


def verify(name: TableName, *, catalog: Catalog, session: Session, heads: Cut, max_cycle_rounds: int) -> VerifyResult:
    """Verify one stream table; compare a member of a cycle with the fixed point.

    Args:
        name: The stream table.
        catalog: The catalog.
        session: The session.
        heads: Gives metadata of the sources.
        max_cycle_rounds: How many rounds of a cycle may make a difference.

    Raises:
        UserError: `NOT_LOADED`, `HISTORY_EXPIRED`, `SOURCE_SCHEMA_CHANGED`, `CYCLE_NOT_SETTLED`, `FUNCTION_CHANGED`.
    """
    states = gather_facts.known_cycle(catalog, name)
    state = states[name]
    if state.newest is None:
        raise UserError("NOT_LOADED", f"{name} has never been loaded.", hint=f"Run REFRESH STREAM TABLE {name} first.")
    details, observed = gather_facts.details_of(state.table), heads.of((name,), frozenset(state.streams))
    table = rows_sql(name, observed[name].meta, state.newest.snapshot_id)
    runner = session.runner().under(details.semantics)
    scheduling = catalog.scheduling_states().get(name, SchedulingState())
    for member, known in states.items():
        refuse_changed(member, gather_facts.details_of(known.table), session)
    if not states.keys().isdisjoint(state.table.sources):
        texts = {n: _text(known, heads, states.keys()) for n, known in states.items()}
        outside = texts[name].outside
        fixpoint = TextFixpoint(texts, runner, session.catalogs(), limit=max_cycle_rounds)
        try:
            compared = compare(runner, details.output, table, f"SELECT * FROM {quote(fixpoint.run()[name])}")
        finally:
            fixpoint.close()
    else:
        outside = _text(state, heads).outside
        query = bind_text(
            details.text,
            namespace=details.namespace,
            catalogs=session.catalogs(),
            views=details.views,
            bind=lambda source: outside[details.read_as(source)],
            case_sensitive=details.semantics.case_sensitive,
        )
        compared = compare(runner, details.output, table, query)
    broken = _broken_keys(details, outside, runner)
    return VerifyResult(
        str(name),
        compared.same and not broken,
        compared.rows,
        compared.missing,
        compared.unexpected,
        compared.rounded,
        compared.seconds,
        compared.samples,
        skipped_rows=scheduling.skipped_rows,
        skipped_since=scheduling.skipped_at,
        broken_keys=broken,
    )


def _text(state: gather_facts.TableState, heads: Cut, cycle: Collection[TableName] = ()) -> Text:
    """Return a stream table's text, and its sources outside of its cycle at its frontier."""
    details = gather_facts.details_of(state.table)
    uses = {use.name: use for use in details.sources}
    sources = [s for s in state.table.sources if s not in cycle]
    observed = heads.of(sources, frozenset(state.streams))
    expressions = {}
    for source in sources:
        at = state.at_frontier.get(source)
        meta = observed[source].meta
        use = gather_facts.by_name(uses[source]) if source in state.streams else uses[source]
        gather_facts.check_schema(state.table.name, use, meta)
        recreated = at is None or at.table_uuid not in (None, meta.uuid)
        if source in state.streams and at is not None:
            recreated = recreated or not meta.has_kept((c.name for c in use.columns), at.snapshot_id)
        if recreated or (at is not None and at.snapshot_id is not None and at.snapshot_id not in meta.snapshots):
            raise expired(source)
        rows = rows_sql(source, meta, at.snapshot_id if at else None)
        expressions[source] = held_to(rows, uses[source].held_to(meta.columns))
    return Text(details, expressions)


def _broken_keys(details: Details, rows: Mapping[TableName, str], runner: Runner) -> tuple[str, ...]:
    """Return, in words, keys that the plan rests on and that do not hold at the frontier."""
    found = []
    for source, keys in details.source_keys.items() if details.rests_on_keys else ():
        for key in keys:
            if source in rows and (several := values_in_several_rows(runner, rows[source], key)):
                found.append(
                    f"key ({', '.join(key)}) of {source} does not hold: {several:,} values are in several rows"
                )
    return tuple(found)
