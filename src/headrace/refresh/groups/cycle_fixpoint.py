"""Iterates the members of a cycle to their least fixed point; writes nothing stored.

All members take a round together, each from what the others gained in the round before, until no member gains a row.
What they gained is looked at, not how many rows they have; `headrace.compiler.cycle_programs` says why that is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.algebra.relations import Moment, Project, Relation, Repeat, Scan, Stored, Union
from headrace.algebra.schema import no_rows_sql
from headrace.algebra.tree import identity
from headrace.compiler.compiled_view import CompiledView
from headrace.errors import HeadraceError, InternalError, UserError
from headrace.ivm.change import union_all
from headrace.ivm.consolidate import consolidate
from headrace.ivm.program import STATE, DeltaProgram
from headrace.names import WEIGHT, TableName, quote
from headrace.physical.broadcasts import FEW_CHANGED_ROWS, OF_BROADCASTS
from headrace.ports import Runner
from headrace.sql.lower import lower

GATHER_EVERY = 8
"""After so many rounds, what a member gained is put into one temporary result; each gain apart is one more to read."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A source of a member that is not in the cycle.

    Args:
        after: Table expression of its rows at the cut.
        before: The same at the members' frontier; None where they start from nothing.
        change: SQL of the rows it gained in between, with weights; None when it did not change.
        change_rows: How many these are, by estimate; None where that is not known.
    """

    after: str
    before: str | None = None
    change: str | None = None
    change_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A stream table in a cycle.

    Args:
        view: Its query, which must be monotone in the other members.
        outside: Its sources that are not in the cycle.
        state: Table expression of its contents at its frontier; None where they start from nothing.
    """

    view: CompiledView
    outside: Mapping[TableName, Outside]
    state: str | None = None


class Fixpoint:
    """One iteration; `close` frees its temporary results.

    Args:
        members: The members, by name.
        runner: Runs Spark SQL under the semantics that all members share.
        tag: Makes temporary names unique.
        limit: So many rounds may gain rows.
        tell: Told of the number of each round that begins.
    """

    def __init__(
        self,
        members: Mapping[TableName, Member],
        runner: Runner,
        *,
        tag: str,
        limit: int,
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.members = members
        self.runner = runner
        self.limit = limit
        self.tell = tell
        self.rounds = 0
        self._prefix = f"__hr_{tag}"
        self._number = {name: i for i, name in enumerate(members)}
        self._views: list[str] = []
        self._gained: dict[TableName, list[str]] = {name: [] for name in members}
        self._now: dict[TableName, str] = {}
        self._before: dict[TableName, str] = {}
        self._new: dict[TableName, tuple[str, int]] = {}
        self._programs: dict[tuple[TableName, frozenset[TableName]], DeltaProgram | None] = {}
        self._broadcast = True

    def close(self) -> None:
        """Free temporary results."""
        for view in reversed(self._views):
            self.runner.release(view)
        self._views.clear()

    def from_nothing(self) -> None:
        """Compute the fixed point over the sources at the cut.

        Raises:
            UserError: `CYCLE_NOT_SETTLED`.
        """
        self._now = {name: self._start(name, None) for name in self.members}
        self._round({name: self._first(name) for name in self.members})
        self._settle()

    def onwards(self) -> None:
        """Go on from the members' contents, over sources that only gained rows.

        Raises:
            UserError: `CYCLE_NOT_SETTLED`.
        """
        self._now = {name: self._start(name, member.state) for name, member in self.members.items()}
        for name, member in self.members.items():
            for number, outside in enumerate(member.outside.values()):
                if outside.change is not None:
                    self._show(self._outside_view(name, number), outside.change)
        moved = {n: frozenset(s for s, o in m.outside.items() if o.change is not None) for n, m in self.members.items()}
        self._round({name: self._gains(name, sources) for name, sources in moved.items() if sources})
        self._settle()

    def contents(self, name: TableName) -> str:
        """Return the view that has a member's rows."""
        return self._now[name]

    def gains(self, name: TableName) -> tuple[Relation, tuple[str, ...]] | None:
        """Return the rows that a member gained, with weights; None when it gained none.

        Returns:
            The relation, and the views that are its leaves.
        """
        gained = tuple(self._gained[name])
        if not gained:
            return None
        columns = (*(c.name for c in self.members[name].view.output), WEIGHT)
        return consolidate(union_all(*(Stored(view, columns) for view in gained))), gained

    # ---- rounds

    def _settle(self) -> None:
        while self._new:
            if self.rounds > self.limit:
                raise self._unsettled()
            changed = frozenset(self._new)
            due = {n: s for n, m in self.members.items() if (s := changed.intersection(m.view.sources))}
            self._round({name: self._gains(name, sources) for name, sources in due.items()})

    def _round(self, work: Mapping[TableName, Callable[[], tuple[str, int] | None]]) -> None:
        """Compute what each member gains, and then let all members hold it."""
        self.rounds += 1
        self.tell(self.rounds)
        found = {name: gain for name, compute in work.items() if (gain := compute()) is not None}
        self._new, self._before = found, dict(self._now)
        for name, (view, _) in found.items():
            self._gained[name].append(view)
            self._now[name] = self._joined(name, self._now[name], view)

    def _first(self, name: TableName) -> Callable[[], tuple[str, int] | None]:
        relation = self.members[name].view.first_round()
        if relation is None:
            raise InternalError("PLAN_INVALID", f"{name} is in a cycle and cannot be iterated.")
        return lambda: self._kept_gain(name, lower(relation, self._bind(name)))

    def _gains(self, name: TableName, changed: frozenset[TableName]) -> Callable[[], tuple[str, int] | None]:
        if (name, changed) not in self._programs:  # most rounds ask for the same
            self._programs[name, changed] = self.members[name].view.gains_program(changed)
        program = self._programs[name, changed]
        return lambda: None if program is None else self._run(name, program)

    def _run(self, name: TableName, program: DeltaProgram) -> tuple[str, int] | None:
        rows = self._followed_rows(name)
        if not self._broadcast or rows is None or rows > FEW_CHANGED_ROWS:
            return self._computed(name, program, hints=False)
        try:
            return self._computed(name, program, hints=True)
        except HeadraceError as error:
            if error.code not in OF_BROADCASTS:
                raise
            self._broadcast = False  # few rows may have very many partners
            self.runner.release(self._view(name, "gained"))
            return self._computed(name, program, hints=False)

    def _followed_rows(self, name: TableName) -> int | None:
        """Return how many rows a round follows; None where that is not known."""
        if self._new:
            return sum(rows for _, rows in self._new.values())
        changed = [o.change_rows for o in self.members[name].outside.values() if o.change is not None]
        known = [rows for rows in changed if rows is not None]
        return sum(known) if len(known) == len(changed) else None

    def _computed(self, name: TableName, program: DeltaProgram, *, hints: bool) -> tuple[str, int] | None:
        steps: list[str] = []
        bind = self._bind(name)
        final = program.state.change
        try:
            for step in program.steps:
                sql = lower(step.relation, bind, hints=hints)
                if isinstance(final, Stored) and step.name == final.name:
                    return self._kept_gain(name, sql)
                if step.only_if is not None and not self._has_rows(lower(step.only_if, bind)):
                    sql = f"SELECT * FROM ({sql}) WHERE false"
                steps.append(self._view(name, step.name))
                self.runner.materialize(steps[-1], sql)
            return self._kept_gain(name, lower(final, bind, hints=hints))
        finally:
            for view in reversed(steps):
                self.runner.release(view)

    def _has_rows(self, sql: str) -> bool:
        return bool(self.runner.run(f"SELECT 1 FROM ({sql}) LIMIT 1"))

    def _kept_gain(self, name: TableName, sql: str) -> tuple[str, int] | None:
        view = self._view(name, "gained")
        self._views.append(view)
        found = self.runner.materialize(view, sql, {"rows": "count(*)", "lost": f"count_if({quote(WEIGHT)} < 0)"})
        if found["lost"]:
            raise InternalError(
                "CYCLE_LOST_ROWS",
                f"{name} lost rows while its cycle was iterated; nothing was published.",
                hint="Please report its query.",
            )
        return (view, int(found["rows"])) if found["rows"] else None

    # ---- contents

    def _start(self, name: TableName, state: str | None) -> str:
        output = self.members[name].view.output
        view = self._view(name, "start")
        if state is None:
            self._show(view, no_rows_sql(output))
        else:
            self._show(view, f"SELECT {', '.join(quote(c.name) for c in output)} FROM {state}")
        return view

    def _joined(self, name: TableName, held: str, gain: str) -> str:
        columns = tuple(c.name for c in self.members[name].view.output)
        gained = Project(Repeat(Stored(gain, (*columns, WEIGHT))), identity(columns))
        sql = lower(Union((Stored(held, columns), gained)), _by_name)
        view = self._view(name, "held")
        if len(self._gained[name]) % GATHER_EVERY:
            self._show(view, sql)
        else:
            self._views.append(view)
            self.runner.materialize(view, sql)
        return view

    # ---- names

    def _bind(self, name: TableName) -> Callable[[Scan | Stored], str]:
        def bind(leaf: Scan | Stored) -> str:
            if isinstance(leaf, Stored):
                return quote(self._now[name] if leaf.name == STATE else self._view(name, leaf.name))
            if leaf.source not in self.members:
                return self._outside(name, leaf)
            if leaf.moment is Moment.CHANGE:
                return quote(self._new[leaf.source][0])
            return quote((self._now if leaf.moment is Moment.AFTER else self._before)[leaf.source])

        return bind

    def _outside(self, name: TableName, leaf: Scan) -> str:
        outside = self.members[name].outside
        if leaf.moment is Moment.CHANGE:
            return quote(self._outside_view(name, tuple(outside).index(leaf.source)))
        found = outside[leaf.source]
        return found.after if leaf.moment is Moment.AFTER or found.before is None else found.before

    def _stem(self, name: TableName) -> str:
        return f"{self._prefix}_m{self._number[name]}"

    def _view(self, name: TableName, what: str) -> str:
        return f"{self._stem(name)}_{self.rounds}_{what}"

    def _outside_view(self, name: TableName, number: int) -> str:
        return f"{self._stem(name)}_change{number}"

    def _show(self, view: str, sql: str) -> None:
        self._views.append(view)
        self.runner.view(view, sql)

    def _unsettled(self) -> UserError:
        gaining = ", ".join(f"{name} {rows:,}" for name, (_, rows) in self._new.items())
        return UserError(
            "CYCLE_NOT_SETTLED",
            f"The cycle of {', '.join(map(str, self.members))} still gained rows after {self.limit} rounds "
            f"(the last one: {gaining}); nothing was published.",
            hint="If a query makes new values in every round, bound them by a condition (… AND depth < 50); "
            "if the way is just long, raise max_cycle_rounds in headrace.toml.",
        )


def _by_name(leaf: Scan | Stored) -> str:
    if isinstance(leaf, Scan):
        raise InternalError("PLAN_INVALID", f"Contents of a cycle are put together from {leaf.source}.")
    return quote(leaf.name)
