"""Plans the stages of a refresh from facts, before anything runs.

Pure functions. A DIFFERENTIAL refresh is planned in two halves, because how a change is applied depends on how large it
turned out to be: `compute_stages` up to the change, `lake.apply_change.plan_apply` from its measured size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, takewhile
from typing import Any

from headrace.algebra.plain_values import in_plain_values
from headrace.algebra.relations import Relation, Stored
from headrace.compiler.compiled_view import CompiledView
from headrace.definitions.user_text import bind_text
from headrace.errors import InternalError
from headrace.ivm.program import COMPANION, STATE, Counts, DeltaProgram, Key, TableChange
from headrace.lake.measured_change import Change
from headrace.names import LAKE, STAGING, TableName, quote
from headrace.physical.broadcasts import at_most, changes_are_counted, changes_are_few, only_small_sides
from headrace.physical.cardinalities import work_of_steps
from headrace.physical.conditional_steps import part_of_their_readers
from headrace.physical.facts import Facts
from headrace.physical.leaves import LeafKey, View
from headrace.physical.plan_sql import PlanSql, as_computed
from headrace.physical.program_cache import Asked, rounded
from headrace.physical.shared_changes import LOCAL_RELATION_ROWS
from headrace.physical.shared_semijoins import reduction_of
from headrace.physical.stages import OVERWRITE, Compute, Policy, Publish, ReadChange, Stage, Write
from headrace.physical.view_names import change_views, view_name
from headrace.sql.lower import occurrences

STATE_CHANGE = "state_change"
COMPANION_CHANGE = "companion_change"
OLD_ROWS = "old"
NEW_ROWS = "new"


def sizes(facts: Facts) -> dict[TableName, int]:
    """Return rows in each source, where that is known."""
    return {s.name: s.rows for s in facts.sources if s.rows is not None}


def asked(facts: Facts, failed: frozenset[Key] = frozenset(), *, local: bool = True) -> Asked:
    """Return the key of a refresh's program; sizes in it decide between equal ways only.

    Args:
        facts: The refresh.
        failed: Semi-joins with a change that turned out to be large: sources, and the columns that have the keys.
        local: Whether rows of its steps were small enough to be taken into the driver, as far as known.
    """
    return Asked(
        facts.changed,
        frozenset(s.name for s in facts.sources if s.appended),
        frozenset((name, rounded(rows)) for name, rows in sizes(facts).items()),
        rounded(facts.companion_rows),
        failed,
        frozenset(
            (key, each.need.follows, tuple(each.need.fields.items())) for key, each in facts.shared_semijoins.items()
        ),
        local and _may_hold_companion(facts),
    )


FEW_GROUPS = 1_000
"""Most groups that are all held, touched or not: tables are then written without a merge."""


def _may_hold_companion(facts: Facts) -> bool:
    few = 0 < facts.companion_rows <= FEW_GROUPS and fits_local_relation(facts)
    return few and not facts.details.functions  # which may take their time for each group


MUCH = 0.1
"""The share of a source above which its semi-join with a change is not kept: reading them again costs less."""


def fits_local_relation(facts: Facts) -> bool:
    """Return whether so few rows changed that a single task is quicker than several."""
    known = [s.change_rows for s in facts.sources if s.change]
    return None not in known and sum(rows for rows in known if rows is not None) <= LOCAL_RELATION_ROWS


def large(facts: Facts) -> int | None:
    """Return the number of changed rows; None if few (`fits_local_relation`) or not known."""
    known = [s.change_rows for s in facts.sources if s.change]
    return None if None in known or fits_local_relation(facts) else sum(rows for rows in known if rows is not None)


def compute_stages(facts: Facts, program: DeltaProgram) -> tuple[Stage, ...]:
    """Plan the first half of a DIFFERENTIAL refresh, up to measured changes.

    Args:
        facts: The refresh.
        program: How the table follows its sources.

    Returns:
        The stages in an order in which they can run: changes of sources, then steps.
    """
    hints, sql = facts.broadcast and changes_are_counted(facts.sources), PlanSql(facts)
    counted = _counted(facts, program)
    inlined = part_of_their_readers(program) if facts.broadcast and changes_are_few(facts.sources) else frozenset[str]()
    work = work_of_steps(at_most(facts), program)[0] if hints else None
    known: dict[int, tuple[Relation, Relation]] = {}
    stages: list[Compute] = []
    for each in program.steps:
        if each.semijoin is not None and each.follows:
            stages.append(_shared_step(facts, each.name, each.semijoin))
            continue
        step = each if work is None else only_small_sides(each, work, known)
        policy = Policy.IF_NONEMPTY if step.name in inlined else Policy.MATERIALIZE
        stages.append(
            Compute(
                step.name,
                view_name(facts, step.name),
                step.relation,
                policy=policy,
                only_if=step.only_if,
                measures=tuple(_count_measures(counted, step.name)),
                semijoin=step.semijoin,
                reduction=reduction_of(step, facts),
                hints=hints,
            )
        )
    if is_direct(facts, program):
        written = changed_view(facts, program)
        stages = [replace(s, policy=Policy.INLINE) if s.view == written else s for s in stages]
    elif not isinstance(program.state.change, Stored):
        stages.append(_table_stage(facts, STATE_CHANGE, program.state, counted))
    if program.companion is not None:
        stages.append(_table_stage(facts, COMPANION_CHANGE, program.companion, counted))
    reads = {stage.view: _reads(sql, stage) for stage in stages}
    stages = [replace(stage, depends_on=frozenset(reads[stage.view])) for stage in stages]
    if program.companion is not None:
        _insert(stages.pop(), stages)
    return (*_read_stages(facts, sum(reads.values(), Counter())), *stages)


def _shared_step(facts: Facts, name: str, key: Key) -> Compute:
    """Plan a semi-join that several stream tables share."""
    shared = facts.shared_semijoins[key]
    return Compute(
        name,
        view_name(facts, name),
        shared.step.relation,
        semijoin=key,
        common=shared.common,
        reduction=reduction_of(shared.step, facts),
        leaves=shared.leaves,
        hints=facts.broadcast and shared.hints,
    )


def contents(facts: Facts, name: str, change: TableChange) -> Compute | None:
    """Plan what a table has after its change, if that is in hand; a subquery of what writes it.

    Args:
        facts: The refresh.
        name: `STATE_CHANGE` or `COMPANION_CHANGE`.
        change: The table's change.
    """
    if change.contents is None:
        return None
    return Compute(name, view_name(facts, name), change.contents, policy=Policy.INLINE)


def _table_stage(facts: Facts, name: str, change: TableChange, counted: Mapping[str, tuple[Counts, ...]]) -> Compute:
    """Plan the change of a stored table, inlined into its readers if counted before."""
    policy = Policy.INLINE if name in counted else Policy.MATERIALIZE
    return Compute(name, view_name(facts, name), change.change, policy=policy)


def _insert(stage: Compute, stages: list[Compute]) -> None:
    """Insert a stage behind the last one that it reads."""
    read = [at for at, each in enumerate(stages) if each.view in stage.depends_on]
    stages.insert(max(read, default=-1) + 1, stage)


def _reads(sql: PlanSql, stage: Compute) -> Counter[str]:
    """Count how often each view stands in the statements of a stage, its condition included."""
    found = Counter[str]()
    conditions = () if stage.only_if is None else (stage.only_if,)
    for relation in (stage.relation, *conditions, *stage.reduction.relations):
        for leaf, times in occurrences(relation).items():
            if isinstance(at := sql.locate(leaf, stage.leaves), View):
                found[at.name] += times
    return found


def is_direct(facts: Facts, program: DeltaProgram) -> bool:
    """Return whether a change is appended as it is computed.

    That is so where rows are only added, and nothing else reads them.
    """
    return program.state.insert_only and facts.log is None


def append_stage(facts: Facts, program: DeltaProgram, sql: PlanSql) -> Write:
    """Plan to compute and append a change at once (`is_direct`), in one Spark job.

    Args:
        facts: The refresh.
        program: How the table follows its sources.
        sql: Knows the change as a subquery, so that nothing else has to be computed first.
    """
    listed, view = ", ".join(quote(c.name) for c in facts.details.output), changed_view(facts, program)
    statement = f"INSERT INTO {facts.state.sql} SELECT {listed} FROM {sql.table(view)}"
    return Write(facts.state, "append", (statement,), depends_on=frozenset({view}))


SMALL_CHANGE_ROWS = 50_000
"""Changes of stored tables up to so large are counted along with what they follow from, and not computed for it; and a
companion up to so large is kept in memory while it is written by a FULL refresh."""


def _counted(facts: Facts, program: DeltaProgram) -> dict[str, tuple[Counts, ...]]:
    """Return the tables' changes whose size follows from rows counted in an earlier stage.

    That saves a Spark job for each. Of the change of a large table more than that must be known
    (`lake.measured_change.measures`).
    """
    changes = {STATE_CHANGE: (program.state, facts.state_rows)}
    if program.companion is not None:
        changes[COMPANION_CHANGE] = (program.companion, facts.companion_rows)
    small = {name: change.counts for name, (change, rows) in changes.items() if (rows or 0) <= SMALL_CHANGE_ROWS}
    return {name: counts for name, counts in small.items() if counts}


def _count_measures(counted: Mapping[str, tuple[Counts, ...]], step: str) -> Iterator[tuple[str, str]]:
    for name, counts in counted.items():
        for number, each in enumerate(counts):
            if each.step == step:
                yield f"{name}_inserted_{number}", f"count_if({each.inserted.sql})"
                yield f"{name}_deleted_{number}", f"count_if({each.deleted.sql})"


def _read_stages(facts: Facts, times: Counter[str]) -> tuple[Stage, ...]:
    """Plan reading the sources' changes; one that is read more than once is kept in memory."""
    views = change_views(facts)
    stages: list[Stage] = []
    for source in facts.sources:
        if source.common is not None:
            kept = source.common.view
            stages.append(ReadChange(source.name, kept, source.common.sql, Policy.MATERIALIZE, common=source.common))
            stages.append(ReadChange(source.name, views[source.name], source.common.own, depends_on=frozenset({kept})))
        elif source.change is not None:
            policy = Policy.MATERIALIZE if times[views[source.name]] > 1 else Policy.INLINE
            stages.append(ReadChange(source.name, views[source.name], source.change, policy))
    return tuple(stages)


def counted_change(facts: Facts, name: str, found: Mapping[str, Any]) -> Change:
    """Return the change whose size was counted in an earlier stage.

    Args:
        facts: The refresh.
        name: `STATE_CHANGE` or `COMPANION_CHANGE`.
        found: What the measures of `compute_stages` gave.

    Raises:
        InternalError: `PLAN_INVALID` when nothing was counted.
    """
    if f"{name}_inserted_0" not in found:
        raise InternalError("PLAN_INVALID", "The program computes no change of the state.")
    parts = list(takewhile(lambda part: f"{name}_inserted_{part}" in found, count()))
    inserted, deleted = (sum(int(found[f"{name}_{way}_{part}"]) for part in parts) for way in ("inserted", "deleted"))
    return Change(view_name(facts, name), inserted, deleted, inserted + deleted)


def changed_view(facts: Facts, program: DeltaProgram) -> str:
    """Return the temporary name that holds the change of the state."""
    change = program.state.change
    return view_name(facts, change.name if isinstance(change, Stored) else STATE_CHANGE)


def user_text(facts: Facts, catalogs: frozenset[str]) -> str:
    """Return the user's own query, orders refined, over the sources at the cut.

    Args:
        facts: The refresh.
        catalogs: Spark's catalogs, by which the names in the query are resolved.
    """
    return bind_text(
        facts.details.text,
        namespace=facts.details.namespace,
        catalogs=catalogs,
        views=facts.details.views,
        bind=lambda name: facts.by_name[facts.details.read_as(name)].as_defined,
        case_sensitive=facts.details.semantics.case_sensitive,
    )


def full_stages(
    facts: Facts, view: CompiledView | None, catalogs: frozenset[str], *, companion: bool = True
) -> tuple[Stage, ...]:
    """Return a FULL refresh: everything stored is overwritten whole.

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
    sql, leaves = PlanSql(facts), dict[LeafKey, str | View]()
    if program is not None and program.companion is not None and facts.companion is not None:
        table, kept = facts.companion.within(STAGING), view_name(facts, COMPANION)
        computed = Compute(COMPANION, kept, program.companion)
        if 0 < facts.companion_rows <= SMALL_CHANGE_ROWS and not facts.companion_behind:
            leaves[COMPANION] = View(kept)
            listed = ", ".join(map(quote, program.companion.columns))
            stages += [computed, overwrite(table, f"SELECT {listed} FROM {sql.table(kept)}", kept)]
        else:
            leaves[COMPANION] = as_computed(table.sql, facts.details.companion or ())
            stages.append(overwrite(table, sql.query(computed)))
    if program is not None and program.state is not None:
        state = Compute(STATE, view_name(facts, STATE), program.state, leaves=leaves)
        stages.append(overwrite_state(facts, sql.query(state), *_reads(sql, state)))
    else:
        stages.append(overwrite_state(facts, user_text(facts, catalogs)))
    return tuple(stages)


def overwrite_state(facts: Facts, query: str, *reads: str) -> Write:
    """Plan replacing the rows of a stream table by those of a query.

    Args:
        facts: The refresh.
        query: The query.
        reads: Views that it reads.
    """
    return overwrite(facts.state, in_plain_values(query, facts.details.output), *reads)


def overwrite(table: TableName, query: str, *reads: str) -> Write:
    """Plan replacing a stored table by a query's rows.

    Args:
        table: The stored table.
        query: The query.
        reads: Views that it reads.
    """
    return Write(table, OVERWRITE, (f"INSERT OVERWRITE {table.sql}\n{query}",), depends_on=frozenset(reads))


def publish_stage(tables: tuple[TableName, ...]) -> Publish:
    """Plan publishing the stored tables that were written."""
    return Publish(tuple(t.within(LAKE) for t in tables))


def stored(facts: Facts) -> tuple[TableName, ...]:
    """Return the stored tables of a stream table."""
    return tuple(t for t in (facts.companion, facts.name, facts.log) if t is not None)


def apply_outline(facts: Facts, program: DeltaProgram) -> tuple[Stage, ...]:
    """Plan the second half of a DIFFERENTIAL refresh before the change is known.

    For `explain`: `Write` stages say which tables are written and not yet how, unless the change is appended.

    Args:
        facts: The refresh.
        program: How the table follows its sources.
    """
    if is_direct(facts, program):
        return (append_stage(facts, program, PlanSql(facts)),)
    stages, changed = [], frozenset({changed_view(facts, program)})
    if program.companion is not None and facts.companion is not None:
        companion = frozenset({view_name(facts, COMPANION_CHANGE)})
        stages.append(Write(facts.companion.within(STAGING), "apply by size to", (), depends_on=companion))
    stages.append(Write(facts.state, "apply by size to", (), depends_on=changed))
    if facts.log is not None:
        stages.append(Write(facts.log.within(STAGING), "log to", (), depends_on=changed))
    return tuple(stages)
