"""Compares a stream table with its query at its frontier, by the user's own text.

Both sides are read at the versions the frontier names, so it can be run at any time, while sources move on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.algebra.relations import Stored
from headrace.algebra.schema import Column
from headrace.algebra.types import cast_sql, is_collated
from headrace.catalog import Catalog, SchedulingState
from headrace.definitions.details import Details
from headrace.definitions.function_versions import refuse_changed
from headrace.definitions.read_columns import held_to
from headrace.definitions.user_text import bind_text
from headrace.errors import UserError
from headrace.ivm.consolidate import difference
from headrace.lake.apply_change import MEASURES, change_of
from headrace.lake.compare import key_expressions
from headrace.names import WEIGHT, TableName, quote
from headrace.ports import Runner, Session
from headrace.refresh import gather_facts
from headrace.refresh.cut.cut import Cut
from headrace.refresh.cut.pinned_state import expired
from headrace.refresh.definition.source_keys import values_in_several_rows
from headrace.refresh.verify.verify_cycle import Text, TextFixpoint
from headrace.results.refresh_results import VerifyResult
from headrace.sources.lakehouse.changes_sql import rows_sql
from headrace.sql.lower import lower

SAMPLES = 5
"""Differing rows that are shown: enough to recognise what is wrong."""
RELATIVE_TOLERANCE = 1e-9
"""Floating-point sums depend on the order of addition, which Spark does not fix; so far apart they may be."""

TABLE, QUERY = "table", "query"


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
            compared = _compare(name, runner, details.output, table, f"SELECT * FROM {quote(fixpoint.run()[name])}")
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
        compared = _compare(name, runner, details.output, table, query)
    broken = _broken_keys(details, outside, runner)
    return replace(
        compared,
        ok=compared.ok and not broken,
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


def _compare(name: TableName, runner: Runner, columns: tuple[Column, ...], table: str, query: str) -> VerifyResult:
    start = time.perf_counter()  # starting Spark is not counted
    tag = uuid.uuid4().hex[:8]
    query_view, difference_view = f"__hr_{tag}_query", f"__hr_{tag}_difference"
    names = tuple(c.name for c in columns)
    try:
        listed = ", ".join(quote(n) for n in names)
        runner.materialize(query_view, f"SELECT * FROM (\n{query}\n) AS q({listed})")
        bind = {TABLE: _comparable(table, columns, stored=True), QUERY: _comparable(quote(query_view), columns)}
        relation = difference(Stored(TABLE, names), Stored(QUERY, names))
        sql = lower(relation, lambda leaf: bind[getattr(leaf, "name", "")])
        change = change_of(difference_view, runner.materialize(difference_view, sql, MEASURES))
        rows = int(runner.run(f"SELECT count(*) FROM {quote(query_view)}")[0][0])
        rounded, missing, unexpected = 0, change.inserted, change.deleted
        samples: Sequence[Mapping[str, Any]] = ()
        if change.rows:
            found = runner.run(f"SELECT {listed}, {quote(WEIGHT)} FROM {quote(difference_view)} LIMIT 10000")
            rounded, left = pair_rounded([tuple(r) for r in found], columns)
            missing, unexpected = missing - rounded, unexpected - rounded
            samples = tuple({**dict(zip(names, r, strict=False)), "weight": r[-1]} for r in left[:SAMPLES])
    finally:
        runner.release(difference_view)
        runner.release(query_view)
    ok = missing == 0 and unexpected == 0
    seconds = time.perf_counter() - start
    return VerifyResult(str(name), ok, rows, missing, unexpected, rounded, seconds, tuple(samples))


def _comparable(rows: str, columns: tuple[Column, ...], *, stored: bool = False) -> str:
    """Return SQL of rows whose columns can be compared.

    A table keeps no collation; a variant is compared as its JSON, a map by its entries.
    """
    shown = [_as_comparable(column, stored=stored) for column in columns]
    if all(value is None for value in shown):
        return rows
    items = (f"{value} AS {quote(c.name)}" if value else quote(c.name) for value, c in zip(shown, columns, strict=True))
    return f"(SELECT {', '.join(items)} FROM {rows})"


def _as_comparable(column: Column, *, stored: bool) -> str | None:
    if "map<" in column.type.lower():
        return key_expressions(column)[0]
    if column.type.lower() == "variant":
        return f"to_json({quote(column.name)})"
    return cast_sql(quote(column.name), column.type) if stored and is_collated(column.type) else None


def pair_rounded(rows: list[tuple[Any, ...]], columns: tuple[Column, ...]) -> tuple[int, list[tuple[Any, ...]]]:
    """Pair missing and unexpected rows that differ only in the last digits of floats.

    Args:
        rows: Differing rows, the weight last.
        columns: Their columns.

    Returns:
        How many pairs matched, and the rows left over.
    """
    floats = [i for i, c in enumerate(columns) if c.type in ("double", "float")]
    if not floats:
        return 0, rows
    exact = [i for i in range(len(columns)) if i not in floats]
    buckets: dict[str, list[list[Any]]] = {}
    for row in rows:
        buckets.setdefault(repr([row[i] for i in exact]), []).append(list(row))
    pairs, left = 0, []
    for bucket in buckets.values():
        plus = [r for r in bucket if r[-1] > 0]
        for minus in (r for r in bucket if r[-1] < 0):
            for candidate in plus:
                if minus[-1] < 0 < candidate[-1] and all(_close(minus[i], candidate[i]) for i in floats):
                    count = min(-minus[-1], candidate[-1])
                    pairs, minus[-1], candidate[-1] = pairs + count, minus[-1] + count, candidate[-1] - count
        left += [tuple(r) for r in bucket if r[-1]]
    return pairs, left


def _close(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    if a != a or b != b:
        return a != a and b != b
    return abs(a - b) <= RELATIVE_TOLERANCE * max(abs(a), abs(b))
