"""Brings one mirror to a landing: its columns first, then its rows, then its change log; all in `staging`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.catalog import Mirror
from headrace.engine.ports import Runner
from headrace.errors import EnvironmentFault, UserError
from headrace.lake.apply import Target, change_of, measures, plan_apply, run_apply
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import VERSION
from headrace.names import STAGING, WEIGHT, TableName, quote
from headrace.sources.lakehouse import rows_sql
from headrace.sources.landing import LandedTable

UNFIT = frozenset({"VALUE_ERROR", "ARITHMETIC_ERROR"})
"""What Spark says of texts that are no values of a column's type."""

Staged = Callable[[TableName], TableMeta]
"""The metadata that a stored table has in `staging` now."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of a mirror.

    Args:
        written: Its stored tables that were written, by `lake` name, with their metadata.
        changed: Whether its rows (or columns) are others, so that it has a new version.
        inserted: Rows that appeared.
        deleted: Rows that disappeared.
    """

    written: Mapping[TableName, TableMeta]
    changed: bool
    inserted: int = 0
    deleted: int = 0


def bring(mirror: Mirror, landed: LandedTable, version: int, runner: Runner, staged: Staged) -> Moved:
    """Bring a mirror's stored tables to a landing.

    Args:
        mirror: The mirror.
        landed: Its part of the landing.
        version: The version that it reaches if it changes.
        runner: Runs SQL, in ANSI mode and UTC.
        staged: Finds metadata.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE`, or another error of Spark's; nothing must be published then.
    """
    try:
        return _bring(mirror, landed, version, runner, staged)
    except UserError as error:
        if error.code not in UNFIT:
            raise
        raise EnvironmentFault(
            "VALUE_NOT_REPRESENTABLE",
            f"A value cannot be held by the mirror {mirror.name}; nothing was landed.",
            detail=error.message,
            hint="Correct the value, or create the source again with its column among TEXT COLUMNS (…).",
        ) from error


def _bring(mirror: Mirror, landed: LandedTable, version: int, runner: Runner, staged: Staged) -> Moved:
    before = staged(mirror.name)
    altered = landed.replaced and _evolve(mirror, landed, before, runner)
    if altered:
        before = staged(mirror.name)
    if landed.replaced and before.current_snapshot_id is None:
        names = ", ".join(quote(c.name) for c in landed.columns)
        runner.run(f"INSERT INTO {mirror.name.within(STAGING).sql} ({names}) {landed.rows_sql()}")
        after = staged(mirror.name)
        return Moved({t: staged(t) for t in mirror.stored}, True, after.row_count or 0)
    return _apply(mirror, landed, version, runner, staged, before, altered)


def _apply(
    mirror: Mirror,
    landed: LandedTable,
    version: int,
    runner: Runner,
    staged: Staged,
    before: TableMeta,
    altered: bool,
) -> Moved:
    view = f"__hr_{uuid.uuid4().hex[:8]}_landing"
    # read through `lake`: what Spark keeps is dropped when a table that it was computed from is written in `staging`
    rows = rows_sql(mirror.name, before, before.current_snapshot_id)
    columns = before.columns
    try:
        measured = runner.materialize(view, landed.change_sql(rows), measures(columns))
        change = change_of(view, measured, columns)
        if not change.rows and not altered:
            return Moved({}, False)
        target = Target(mirror.name.within(STAGING), columns, landed.key, before.row_count)
        run_apply(plan_apply(target, change), runner, lambda: staged(mirror.name))
        if change.rows:
            names = ", ".join(quote(c.name) for c in columns)
            logged = f"SELECT {names}, CAST({WEIGHT} AS BIGINT), CAST({version} AS BIGINT) FROM {quote(view)}"
            runner.run(f"INSERT INTO {mirror.log.within(STAGING).sql} ({names}, {WEIGHT}, {VERSION}) {logged}")
    finally:
        runner.release(view)
    return Moved({t: staged(t) for t in mirror.stored}, True, change.inserted, change.deleted)


def _evolve(mirror: Mirror, landed: LandedTable, meta: TableMeta, runner: Runner) -> bool:
    """Give a mirror and its log the columns they have from now on; whether that changed anything.

    A column of another type is another column: whoever reads it is stopped, and nobody else notices.
    """
    has = {c.name: c.type for c in meta.columns}
    statements = []
    for old, new in landed.renamed.items():
        if old in has and new not in has:
            statements.append(f"RENAME COLUMN {quote(old)} TO {quote(new)}")
            has[new] = has.pop(old)
    wanted = {c.name: c.type for c in landed.columns}
    dropped = [name for name, type_ in has.items() if wanted.get(name) != type_]
    added = [c for c in landed.columns if has.get(c.name) != c.type]
    statements += [f"DROP COLUMN {quote(name)}" for name in dropped]
    statements += [f"ADD COLUMN {quote(c.name)} {c.type}" for c in added]
    for stored in mirror.stored:
        for statement in statements:
            runner.run(f"ALTER TABLE {stored.within(STAGING).sql} {statement}")
    return bool(statements)
