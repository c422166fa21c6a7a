"""Compares a stream table with its query at its frontier: the test of everything else, on demand.

Both sides are read at the versions the frontier names, so it can be run at any time, while sources move on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.algebra.relations import Stored
from headrace.algebra.schema import Column
from headrace.catalog import Care, Catalog
from headrace.delta.consolidate import difference
from headrace.engine import gather
from headrace.engine.calls import refuse_changed
from headrace.engine.details import Details
from headrace.engine.facts import held_to
from headrace.engine.heads import Heads
from headrace.engine.pinned import expired
from headrace.engine.ports import Runner, Session
from headrace.engine.results import VerifyResult
from headrace.engine.source_keys import values_in_several_rows
from headrace.engine.texts import bind_text
from headrace.errors import UserError
from headrace.lake.apply import MEASURES, change_of
from headrace.names import WEIGHT, TableName, quote
from headrace.sources.lakehouse import rows_sql
from headrace.sql.lower import lower

SAMPLES = 5
RELATIVE_TOLERANCE = 1e-9
"""Floating-point sums depend on the order of addition, which Spark does not fix; so far apart they may be."""

TABLE, QUERY = "table", "query"


def verify(name: TableName, *, catalog: Catalog, session: Session, heads: Heads) -> VerifyResult:
    """Verify one stream table.

    Args:
        name: The stream table.
        catalog: The catalog.
        session: The session.
        heads: Gives metadata of the sources.

    Raises:
        UserError: `NOT_LOADED`, `HISTORY_EXPIRED`, `SOURCE_SCHEMA_CHANGED`, `FUNCTION_CHANGED`.
    """
    know = gather.known(catalog, name)
    if know.newest is None:
        raise UserError("NOT_LOADED", f"{name} has never been loaded.", hint=f"Run REFRESH STREAM TABLE {name} first.")
    details = gather.details_of(know.table)
    refuse_changed(name, details, session)
    uses = {use.name: use for use in details.sources}
    names = frozenset(know.streams)
    observed = heads.of((*know.table.sources, name), names)
    expressions = {}
    for source in know.table.sources:
        at = know.at_frontier.get(source)
        meta = observed[source].meta
        gather.check_schema(name, uses[source], meta)
        recreated = at is None or at.table_uuid not in (None, meta.uuid)
        if recreated or (at is not None and at.snapshot_id is not None and at.snapshot_id not in meta.snapshots):
            raise expired(source)
        rows = rows_sql(source, meta, at.snapshot_id if at else None)
        expressions[source] = held_to(rows, uses[source].held_to(meta.columns))
    query = bind_text(
        details.query,
        namespace=details.namespace,
        catalogs=session.catalogs(),
        views=details.views,
        bind=expressions.__getitem__,
    )
    table = rows_sql(name, observed[name].meta, know.newest.snapshot_id)
    runner = session.runner().under(details.semantics)
    care = catalog.cares().get(name, Care())
    compared = _compare(name, runner, details.output, table, query)
    broken = _broken_keys(details, expressions, runner)
    return replace(
        compared,
        ok=compared.ok and not broken,
        skipped_rows=care.skipped_rows,
        skipped_since=care.skipped_at,
        broken_keys=broken,
    )


def _broken_keys(details: Details, rows: Mapping[TableName, str], runner: Runner) -> tuple[str, ...]:
    """Keys of sources that the plan rests on and that do not hold at the frontier, in words."""
    found = []
    for source, keys in details.source_keys.items() if details.rests_on_keys else ():
        for key in keys:
            if several := values_in_several_rows(runner, rows[source], key):
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
        bind = {TABLE: table, QUERY: quote(query_view)}
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


def pair_rounded(rows: list[tuple[Any, ...]], columns: tuple[Column, ...]) -> tuple[int, list[tuple[Any, ...]]]:
    """Match missing rows with unexpected ones that differ only in the last digits of floating-point columns.

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
