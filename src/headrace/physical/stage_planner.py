"""Facts to stages: what a refresh will run, decided before it runs.

Pure functions. A DIFFERENTIAL refresh is planned in two halves, because how a change is applied depends on how large it
turned out to be: `compute_stages` up to the change, `lake.apply.plan_apply` from its measured size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from headrace.algebra.relations import Moment, Scan, Stored
from headrace.compiler.compiled_view import CompiledView
from headrace.definitions.user_text import bind_text
from headrace.errors import InternalError
from headrace.ivm.program import COMPANION, STATE, Counts, DeltaProgram, Key, TableChange
from headrace.lake.measured_change import Change
from headrace.names import LAKE, STAGING, TableName, quote
from headrace.physical.conditional_steps import part_of_their_readers
from headrace.physical.facts import Facts
from headrace.physical.program_cache import Asked, rounded
from headrace.physical.shared_changes import FEW_CHANGED
from headrace.physical.shared_semijoins import fit_to_broadcast, near_sql
from headrace.physical.stages import Compute, Publish, ReadChange, Stage, Write
from headrace.sql.lower import lower

STATE_CHANGE = "state_change"
COMPANION_CHANGE = "companion_change"
OLD_ROWS = "old"
NEW_ROWS = "new"


def sizes(facts: Facts) -> dict[TableName, int]:
    """Rows in each source, where that is known."""
    return {s.name: s.rows for s in facts.sources if s.rows is not None}


def asked(facts: Facts, failed: frozenset[Key] = frozenset()) -> Asked:
    """What the program of a refresh depends on; what is known of sizes decides between equal ways only.

    Args:
        facts: The refresh.
        failed: Sources and columns by which rows near a change were not few.
    """
    return Asked(
        facts.changed,
        frozenset(s.name for s in facts.sources if s.appended),
        frozenset((name, rounded(rows)) for name, rows in sizes(facts).items()),
        rounded(facts.companion_rows),
        failed,
        frozenset((key, each.need.follows, tuple(each.need.fields.items())) for key, each in facts.collected.items()),
    )


def view_name(facts: Facts, stem: str) -> str:
    """A temporary name unique to this refresh."""
    return f"__hr_{facts.tag}_{stem}"


def stem(facts: Facts, view: str) -> str:
    """What the temporary name of one refresh has in common with those of others of its table."""
    return view.removeprefix(view_name(facts, ""))


def is_small(facts: Facts) -> bool:
    """Return whether the changes are known to be small enough to be sent to every task; a reload of millions is not."""
    return fit_to_broadcast(facts.sources)


def change_views(facts: Facts) -> dict[TableName, str]:
    """Temporary names of the sources' changes."""
    changed = [s.name for s in facts.sources if s.change is not None]
    # Spark takes no other characters in the name of a temporary view
    return {n: view_name(facts, f"change{i}_{re.sub('[^A-Za-z0-9_]', '_', n.table)}") for i, n in enumerate(changed)}


def binder(facts: Facts, *, companion: str | None = None) -> Callable[[Scan | Stored], str]:
    """What the leaves of a program are in SQL.

    Args:
        facts: The refresh.
        companion: Where the companion is read as a FULL refresh has just computed it; None: as published.
    """
    views = change_views(facts)
    stored = {STATE: facts.state_at, COMPANION: companion or facts.companion_at}

    def bind(leaf: Scan | Stored) -> str:
        if isinstance(leaf, Stored):
            return stored.get(leaf.name) or quote(view_name(facts, leaf.name))
        if leaf.moment is Moment.CHANGE:
            return quote(views[leaf.source])
        source = facts.by_name[leaf.source]
        return source.after if leaf.moment is Moment.AFTER or source.before is None else source.before

    return bind


MUCH = 0.1
"""The share of a source above which its rows near a change are not kept: reading them again costs less."""


def is_few(facts: Facts) -> bool:
    """Return whether so few rows changed that dividing them among tasks would cost more than it saves."""
    known = [s.change_rows for s in facts.sources if s.change]
    return None not in known and sum(rows for rows in known if rows is not None) <= FEW_CHANGED


def large(facts: Facts) -> int | None:
    """Return how many rows changed, where these are not few (`is_few`); None where they are, or nobody knows."""
    known = [s.change_rows for s in facts.sources if s.change]
    return None if None in known or is_few(facts) else sum(rows for rows in known if rows is not None)


def compute_stages(facts: Facts, program: DeltaProgram) -> tuple[Stage, ...]:
    """The first half of a DIFFERENTIAL refresh: up to the measured changes of the stored tables."""
    bind, hints = binder(facts), is_small(facts)
    counted = _counted(facts, program)
    stages: list[Compute] = []
    for step in program.steps:
        if step.near is not None and step.follows:
            common = facts.collected[step.near].common
            name, sparing = view_name(facts, step.name), common.sparing
            stages.append(Compute(step.name, name, common.sql, near=step.near, common=common, sparing=sparing))
            continue
        only_if = lower(step.only_if, bind, hints=hints) if step.only_if is not None else None
        sql, sparing = near_sql(step, bind, facts, hints=hints)
        measures = tuple(_count_measures(counted, step.name))
        name = view_name(facts, step.name)
        stages.append(Compute(step.name, name, sql, only_if, measures, near=step.near, sparing=sparing))
    if is_direct(facts, program):
        written = changed_view(facts, program)
        stages = [replace(stage, kept=stage.view != written) for stage in stages]
    elif not isinstance(program.state.change, Stored):
        sql = lower(program.state.change, bind)
        kept = STATE_CHANGE not in counted
        stages.append(Compute(STATE_CHANGE, view_name(facts, STATE_CHANGE), sql, kept=kept))
    if program.companion is not None:
        _insert(replace(companion_stage(facts, program.companion), kept=COMPANION_CHANGE not in counted), stages)
    if hints:
        parts = part_of_their_readers(program)
        stages = [replace(stage, kept=stage.kept and stage.name not in parts) for stage in stages]
    read = (sql for stage in stages for sql in (*stage.statements, *(sql for _, sql in stage.sparing.titled)))
    return (*_read_stages(facts, "\n".join(read)), *stages)


def _insert(stage: Compute, stages: list[Compute]) -> None:
    """Put a stage where it can begin: behind the last one that it reads."""
    read = [at for at, each in enumerate(stages) if quote(each.view) in stage.sql]
    stages.insert(max(read, default=-1) + 1, stage)


def is_direct(facts: Facts, program: DeltaProgram) -> bool:
    """Whether the change is written as it is computed: rows are only added, and nobody else reads what they are."""
    return program.state.gains and facts.log is None


def append_stage(facts: Facts, program: DeltaProgram) -> Write:
    """Computing and writing a change at once, where that may be (`is_direct`): one Spark job instead of two."""
    listed = ", ".join(quote(c.name) for c in facts.details.output)
    sql = f"INSERT INTO {facts.state.sql} SELECT {listed} FROM {quote(changed_view(facts, program))}"
    return Write(facts.state, "append", (sql,))


FEW_ROWS = 50_000
"""Changes of stored tables up to so large are counted along with what they follow from, and not computed for it; and a
companion up to so large is kept in memory while it is written by a FULL refresh."""


def _counted(facts: Facts, program: DeltaProgram) -> dict[str, Counts]:
    """The changes of tables, by name, whose size is learnt in the pass that computes what they are functions of.

    That saves a Spark job for each. Of the change of a large table more than that must be known
    (`lake.change.measures`).
    """
    changes = {STATE_CHANGE: (program.state, facts.state_rows)}
    if program.companion is not None:
        changes[COMPANION_CHANGE] = (program.companion, facts.companion_rows)
    small = {name: change.counts for name, (change, rows) in changes.items() if (rows or 0) <= FEW_ROWS}
    return {name: counts for name, counts in small.items() if counts is not None}


def _count_measures(counted: Mapping[str, Counts], step: str) -> Iterator[tuple[str, str]]:
    for name, counts in counted.items():
        if counts.step == step:
            yield f"{name}_inserted", f"count_if({counts.inserted.sql})"
            yield f"{name}_deleted", f"count_if({counts.deleted.sql})"


def _read_stages(facts: Facts, readers: str) -> tuple[Stage, ...]:
    """Reading the sources' changes; one that `readers` name more than once is kept in memory."""
    views = change_views(facts)
    stages: list[Stage] = []
    for source in facts.sources:
        if source.common is not None:
            common = source.common
            stages.append(ReadChange(source.name, common.view, common.sql, shared=True, common=common))
            stages.append(ReadChange(source.name, views[source.name], common.own))
        elif source.change is not None:
            several = readers.count(quote(views[source.name])) > 1
            stages.append(ReadChange(source.name, views[source.name], source.change, several))
    return tuple(stages)


def companion_stage(facts: Facts, companion: TableChange) -> Compute:
    """Computing the companion's change, which is written while what the state's change needs is computed."""
    return Compute(COMPANION_CHANGE, view_name(facts, COMPANION_CHANGE), lower(companion.change, binder(facts)))


def counted_change(facts: Facts, name: str, found: Mapping[str, Any]) -> Change:
    """The change whose size was counted along with what it follows from.

    Args:
        facts: The refresh.
        name: `STATE_CHANGE` or `COMPANION_CHANGE`.
        found: What the measures of `compute_stages` gave.

    Raises:
        InternalError: `PLAN_INVALID` when nothing was counted.
    """
    if f"{name}_inserted" not in found:
        raise InternalError("PLAN_INVALID", "The program computes no change of the state.")
    inserted, deleted = int(found[f"{name}_inserted"]), int(found[f"{name}_deleted"])
    return Change(view_name(facts, name), inserted, deleted, inserted + deleted)


def changed_view(facts: Facts, program: DeltaProgram) -> str:
    """The temporary name that holds the change of the state."""
    change = program.state.change
    return view_name(facts, change.name if isinstance(change, Stored) else STATE_CHANGE)


def user_text(facts: Facts, catalogs: frozenset[str]) -> str:
    """The user's own query over the sources at the cut."""
    return bind_text(
        facts.details.query,
        namespace=facts.details.namespace,
        catalogs=catalogs,
        views=facts.details.views,
        bind=lambda name: facts.by_name[name].as_defined,
    )


def full_stages(
    facts: Facts, view: CompiledView | None, catalogs: frozenset[str], *, companion: bool = True
) -> tuple[Stage, ...]:
    """A FULL refresh: everything stored is overwritten whole.

    A small companion is kept in memory, so that it and what follows from it are written side by side; how large one has
    become that was left behind is not known.

    Args:
        facts: The refresh.
        view: The query; None where it is not maintained.
        catalogs: Catalogs that the session knows.
        companion: Whether the companion, if there is one, is written, too, or left behind.
    """
    program = view.full_program() if view is not None and companion and facts.companion is not None else None
    stages: list[Stage] = []
    at = None
    if program is not None and program.companion is not None and facts.companion is not None:
        table, computed = facts.companion.within(STAGING), lower(program.companion, binder(facts))
        if 0 < facts.companion_rows <= FEW_ROWS and not facts.companion_behind:
            kept = view_name(facts, COMPANION)
            at = quote(kept)
            listed = ", ".join(map(quote, program.companion.columns))
            stages += [Compute(COMPANION, kept, computed), overwrite(table, f"SELECT {listed} FROM {at}")]
        else:
            at = table.sql
            stages.append(overwrite(table, computed))
    if program is not None and program.state is not None:
        state = lower(program.state, binder(facts, companion=at))
    else:
        state = user_text(facts, catalogs)
    stages.append(overwrite(facts.state, state))
    return tuple(stages)


def overwrite(table: TableName, query: str) -> Write:
    """Replaces a stored table by a query's rows."""
    return Write(table, "overwrite", (f"INSERT OVERWRITE {table.sql}\n{query}",))


def publish_stage(facts: Facts, tables: tuple[TableName, ...]) -> Publish:
    """Publishing the stored tables that were written."""
    return Publish(tuple(t.within(LAKE) for t in tables))


def stored(facts: Facts) -> tuple[TableName, ...]:
    """The stored tables of a stream table."""
    return tuple(t for t in (facts.companion, facts.name, facts.log) if t is not None)


def apply_outline(facts: Facts, program: DeltaProgram) -> tuple[Stage, ...]:
    """The second half of a DIFFERENTIAL refresh before the change is known: which tables, not yet how."""
    if is_direct(facts, program):
        return (append_stage(facts, program),)
    stages = []
    if program.companion is not None and facts.companion is not None:
        stages.append(Write(facts.companion.within(STAGING), "apply by size to", ()))
    stages.append(Write(facts.state, "apply by size to", ()))
    if facts.log is not None:
        stages.append(Write(facts.log.within(STAGING), "log to", ()))
    return tuple(stages)
