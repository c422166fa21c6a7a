"""A query kept up to date step by step, and checked against recomputation after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import inf

import duckdb
from hypothesis import reject

from headrace.algebra.relations import Moment, Project, Relation, Scan, Stored, TopK, Union
from headrace.algebra.schema import Column
from headrace.algebra.text import text
from headrace.algebra.tree import transform
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler
from headrace.cost.cost_model import companion_seconds, differential_seconds, full_seconds
from headrace.ivm.consolidate import difference
from headrace.ivm.program import COMPANION, STATE, DeltaProgram, Key, Need, Step, TableChange
from headrace.ivm.split_change import delete_rows, insert_rows
from headrace.names import CLOCK, LAKE, WEIGHT, TableName
from headrace.optimizer.auxiliary_views import top_k_buffer
from headrace.optimizer.common_subexpressions.across_programs import common_step
from headrace.optimizer.optimizer import Optimizer
from headrace.physical.dead_steps import DeadSteps
from headrace.physical.facts import Common, SharedSemijoin
from headrace.sql.lower import lower
from headrace.sql.refinements import refined
from kit.case import Case, Row, Table, Window, bag
from kit.coverage_check import naive
from kit.executor import Executor
from kit.merged import merged_state
from kit.planned import facts_of, source

top_k_buffer.LEAST = 1  # or no table of a test would outgrow it

NAMESPACE = ("shop",)
_WEIGHT = Column(WEIGHT, "bigint")
_VIEWS: dict[object, CompiledView] = {}
_KEPT = 500
"""Compiled queries of this process; the oldest goes when there are too many."""

Keys = Mapping[str, tuple[tuple[str, ...], ...]]
"""Keys of tables, by name."""


def table_name(name: str) -> TableName:
    """A test table's full name."""
    return TableName(LAKE, NAMESPACE, name)


class Maintained:
    """One view over tables that live in an executor.

    Args:
        executor: Runs the SQL.
        case: The query and the tables; its history is for `replay`.
        companion_rows: What programs are told of the companion's size.
        ansi: What they are told of the session.
        defined: Whether the tables are there already, moved by others than `step`.
        keys: Keys of the tables, which the history respects.
        disabled: Passes of the optimiser that are switched off.
    """

    def __init__(
        self,
        executor: Executor,
        case: Case,
        *,
        companion_rows: int = 0,
        ansi: bool = True,
        defined: bool = False,
        keys: Keys | None = None,
        disabled: frozenset[str] = frozenset(),
    ) -> None:
        self.executor = executor
        self.optimizer = Optimizer(disabled)
        self.tables = {table.name: table for table in case.tables}
        self.contents = {table.name: list(table.rows) for table in case.tables}
        self.query = case.query  # with orders refined, once it is compiled
        self.companion_rows = companion_rows
        self.keys = {table_name(name): each for name, each in (keys or {}).items()}
        for table in () if defined else case.tables:
            executor.define(table.name, table.columns, table.rows)
        self.view = self._view(ansi)
        self.query = refined(self.query, self.view.refinements).replace(CLOCK.sql, executor.table(CLOCK.table))
        rightly = (
            "of floats",
            "correlated subquery",
            "not a function of the sources.",
            "size of the query",
        )
        if any(text.endswith(rightly) for r in self.view.refusals for text in (r.construct, r.message)):
            reject()  # not maintained, and rightly so; outside of random cases this is an error
        if "collect_" in self.query and any(r.construct == "LATERAL" for r in self.view.refusals):
            reject()  # over no rows an array is empty, not NULL
        assert not self.view.refusals, self.view.refusals
        self.stored: dict[str, Counter[Row]] = {}
        self.moved: Counter[Row] = Counter()
        self.needs: dict[Key, Need] = {}
        self.turn = 0
        self.covered: Counter[bool] = Counter()
        self.in_hand: Counter[str] = Counter()
        self._load()
        self.first = self.state

    def _view(self, ansi: bool) -> CompiledView:
        """The query, compiled; it depends on no row, so histories of the same query share it."""
        schemas = tuple((table.name, table.columns) for table in self.tables.values())
        known = (type(self.executor), self.query, schemas, ansi, tuple(self.keys.items()), self.optimizer)
        if known not in _VIEWS:
            if len(_VIEWS) == _KEPT:
                del _VIEWS[next(iter(_VIEWS))]
            _VIEWS[known] = self._compiled(ansi)
        return _VIEWS[known]

    def _compiled(self, ansi: bool) -> CompiledView:
        def schema(name: TableName) -> tuple[Column, ...]:
            return self.tables[name.table].columns

        def describe(sql: str) -> tuple[Column, ...]:
            sql = sql.replace(CLOCK.sql, self.executor.table(CLOCK.table))
            for name in self.tables:
                sql = sql.replace(table_name(name).sql, self.executor.table(name))
            try:
                return self.executor.describe(sql)
            except duckdb.ParserException:
                if sql == self.query:
                    reject()  # DuckDB does not read every query that Spark does
                raise

        return ViewCompiler(
            resolve=lambda parts: CLOCK if parts == CLOCK.parts else table_name(parts[-1]),
            schema=schema,
            describe=describe,
            ansi=ansi,
            keys=self.keys,
            optimizer=self.optimizer,
            refine=True,
            in_order=True,
            moving=True,
        ).compile(self.query)

    # reading

    def bind(self, leaf: Scan | Stored) -> str:
        """Where a leaf is found in the executor."""
        if isinstance(leaf, Stored):
            return self.executor.table(leaf.name)
        suffix = {Moment.AFTER: "", Moment.BEFORE: "__before", Moment.CHANGE: "__change"}
        return self.executor.table(leaf.source.table + suffix[leaf.moment])

    def sql(self, relation: Relation) -> str:
        """A relation in SQL."""
        return lower(relation, self.bind, hints=True)

    def rows(self, relation: Relation) -> Counter[Row]:
        """A relation's rows."""
        return bag(self.executor.rows(self.sql(relation)))

    @property
    def state(self) -> Counter[Row]:
        """What is stored, as last read."""
        return self.stored[STATE]

    def _read(self, name: str) -> Counter[Row]:
        self.stored[name] = bag(self.executor.rows(f"SELECT * FROM {self.executor.table(name)}"))
        return self.stored[name]

    def expected(self) -> Counter[Row]:
        """The user's own query over the tables as they are."""
        return bag(self.executor.rows(self.query))

    def _load(self) -> None:
        program = self.view.full_program()
        if program.companion is not None:
            self.executor.keep(COMPANION, self.sql(program.companion))
            self._read(COMPANION)
        self.executor.keep(STATE, self.query if program.state is None else self.sql(program.state))
        assert self._read(STATE) == self.expected(), "the full program differs from the query"

    # following

    def step(self, window: Window) -> Counter[Row]:
        """Let a window pass, refresh, check everything; returns the change of the state."""
        touched = {name: change for name, change in window.items() if change}
        for name, change in touched.items():
            self._move(self.tables[name], change)
        changed = frozenset(table_name(name) if name != CLOCK.table else CLOCK for name in touched)
        gained = frozenset(table_name(n) for n, change in touched.items() if all(w > 0 for w, _ in change))
        return self.follow(changed, gained)

    def follow(self, changed: frozenset[TableName], gained: frozenset[TableName] = frozenset()) -> Counter[Row]:
        """Refresh after tables have moved, check everything; arguments as for programs."""
        shared = self._shared(changed)
        whole = self.turn % 4 < 2  # with shared semi-joins and without
        program = self.view.delta_program(
            changed, gained, companion_rows=self.companion_rows, shared_semijoins=shared, whole=whole
        )
        if program is not None:
            self.needs.update(program.needs)
        if program is None:
            assert self.state == self.expected(), "a change was thought to have no effect"
            return Counter()
        if not self.optimizer.disabled:
            _check_shape(program)
        self._check_estimates(program, changed, shared)
        dead_steps = DeadSteps(program)
        for step in program.steps:
            idle = step.only_if is not None and not self.executor.rows(self.sql(step.only_if))
            idle = idle or (step.name in dead_steps.steps and not step.follows)
            sql = self.sql(self._least(step))
            if not self.executor.keep(step.name, f"SELECT * FROM ({sql}) AS s WHERE false" if idle else sql):
                dead_steps.note_empty(step.name)
        self._follow(COMPANION, program.companion)
        self.moved = self._follow(STATE, program.state)
        return self.moved

    def _check_estimates(
        self, program: DeltaProgram, changed: frozenset[TableName], shared: Mapping[Key, Need]
    ) -> None:
        """The cost model counts whatever there is."""
        rows = {name: len(self.contents[name.table]) for name in self.view.sources}
        sources = {name: source(name, rows[name], 1 if name in changed else 0) for name in rows}
        common = Common("shared", "c", "c", frozenset(), readers=2)
        facts = facts_of(self.view, sources, state=1)
        steps = {key: common_step(key, need, changed) for key, need in shared.items()}
        facts = replace(
            facts, shared_semijoins={k: SharedSemijoin(need, common, steps[k], {}) for k, need in shared.items()}
        )
        for seconds in (full_seconds(facts, self.view), differential_seconds(facts, program)):
            assert 0 < seconds < inf, seconds
        companion = companion_seconds(facts, self.view)
        assert 0 <= companion < inf, companion
        assert (companion > 0) is (self.view.companion is not None)

    def _least(self, step: Step) -> Relation:
        """What a step is computed from; without reading a source all of whose wanted rows are in its own change."""
        if step.coverage is None:
            return step.relation
        at = step.coverage.added.columns.index(step.coverage.times)
        added = sum(row[at] for row in self.executor.rows(self.sql(step.coverage.added)))
        found = len(self.executor.rows(self.sql(step.coverage.semijoin)))
        assert found >= added, "rows were added that are not there"
        assert step.coverage.instead.columns == step.relation.columns
        self.covered[found == added] += 1
        return step.coverage.instead if found == added else step.relation

    def _shared(self, changed: frozenset[TableName]) -> dict[Key, Need]:
        """Every other time, what was needed so far, as if others needed it too, and by more values."""
        self.turn += 1
        found = {}
        for key, need in self.needs.items() if self.turn % 2 else ():
            follows = frozenset(each for each in (*need.follows, key) if each[0] in changed)
            if follows:
                found[key] = Need(follows, need.fields)
        return found

    def _move(self, table: Table, change: tuple[tuple[int, Row], ...]) -> None:
        before = self.contents[table.name]
        after = list(before)
        for weight, row in change:
            for _ in range(abs(weight)):
                after.append(row) if weight > 0 else after.remove(row)
        self.contents[table.name] = after
        self.executor.keep(f"{table.name}__before", f"SELECT * FROM {self.executor.table(table.name)}")
        self.executor.define(table.name, table.columns, after)
        if all(weight > 0 for weight, _ in change):  # as rows of appended files are
            change = tuple((1, row) for weight, row in change for _ in range(weight))
        weighted = [(*row, weight) for weight, row in change]
        self.executor.define(f"{table.name}__change", (*table.columns, _WEIGHT), weighted)

    def _follow(self, name: str, change: TableChange | None) -> Counter[Row]:
        if change is None:
            return Counter()
        columns = tuple(c for c in change.change.columns if c != WEIGHT)
        stored = Stored(name, columns)
        self.executor.keep(f"{name}_change", self.sql(change.change))
        kept = Stored(f"{name}_change", (*columns, WEIGHT))
        rows = self.executor.rows(self.sql(kept))
        moved = _signed(rows) if change.insert_only else _checked(rows, columns, change.key)
        assert not change.insert_only or {row[-1] for row in rows} <= {1}, f"not only rows that are added: {rows}"
        contents = self.rows(change.contents) if change.contents is not None and moved else None
        before = self.stored[name]
        self.executor.keep(name, self.sql(merged_state(stored, kept, change.key)))
        after = self._read(name)
        expected = self.expected() if name == STATE else self._recomputed_companion()
        assert after == expected, _differ(name, after, expected, moved)
        assert _plus(before, moved) == after, f"{name}: applied rows and the change disagree"
        assert contents in (None, after), f"{name}: what is in hand and the change disagree: {contents}"
        self.in_hand[name] += contents is not None
        for rows_, when in ((before, "before"), (after, "after")):
            assert _identifies(change.key, columns, rows_), (
                f"{name}: {change.key} is no key of the table {when}: {rows_}"
            )
        return moved

    def split(self) -> tuple[Counter[Row], Counter[Row]]:
        """The rows the last change adds and removes, as the builders for writing give them."""
        kept = Stored(f"{STATE}_change", (*(c.name for c in self.view.output), WEIGHT))
        return self.rows(insert_rows(kept)), self.rows(delete_rows(kept))

    def _recomputed_companion(self) -> Counter[Row]:
        companion = self.view.full_program().companion
        assert companion is not None
        tree = self.view.tree
        first = companion.branches[0] if isinstance(companion, Union) else companion
        kept = first.inputs[0] if isinstance(first, Project) else first
        if isinstance(tree, TopK) and isinstance(kept, TopK) and kept.order == tree.order:
            # what is left of a reserve; fewer rows than are shown are all there are
            rows = self.stored[COMPANION].elements()
            left = sum(1 for row in rows if not isinstance(companion, Union) or row[0] == 1)
            less = replace(kept, limit=max(left, (tree.limit or 0) + tree.offset))
            companion = transform(companion, lambda node: less if node == kept else node)
        return self.rows(companion)

    def difference(self) -> Counter[Row]:
        """What consumers would receive for a FULL refresh now."""
        columns = tuple(c.name for c in self.view.output)
        self.executor.keep("state_new", self.query)
        return _signed(self.executor.rows(self.sql(difference(Stored(STATE, columns), Stored("state_new", columns)))))


def replay(
    executor: Executor,
    case: Case,
    *,
    verbose: bool = False,
    keys: Keys | None = None,
    disabled: frozenset[str] = frozenset(),
) -> int:
    """Play a history, then take everything away again; `keys` and `disabled` as for `Maintained`.

    Returns:
        How many windows changed the result: a result that never changes proves nothing.

    Raises:
        AssertionError: something differs from recomputation.
    """
    view = Maintained(executor, case, keys=keys, disabled=disabled)
    if verbose:
        print(text(view.view.tree) if view.view.tree else view.view.refusals)
    log: list[Counter[Row]] = []
    for window in case.windows:
        log.append(view.step(window))
        if verbose:
            print(dict(window), "→", dict(log[-1]))
    assert _plus(view.first, *log) == view.state, "state and log disagree"
    time = tuple(view.contents.get(CLOCK.table, ()))
    emptied = {n: tuple((-1, row) for row in rows) for n, rows in view.contents.items() if n != CLOCK.table}
    view.step(emptied)
    left = {CLOCK.table: time}
    empty = Case(case.query, tuple(Table(t.name, t.columns, left.get(t.name, ())) for t in case.tables))
    again = Maintained(executor, empty, keys=keys, disabled=disabled)
    assert again.state == view.expected(), "input, then minus the input, left something behind"
    return sum(map(bool, log))


def _checked(rows: list[Row], columns: tuple[str, ...], key: tuple[str, ...] | None) -> Counter[Row]:
    """A change must name each row once, with a weight, and each key at most once for each sign."""
    moved = _signed(rows)
    # one row may take the place of another that equals it: what is stored of -0.0 becomes 0.0
    several = len(moved) if key is None else len({repr(row) for row in rows})
    assert several == len(rows), f"a row occurs twice in a change: {rows}"
    assert all(row[-1] for row in rows), f"a row of weight zero: {rows}"
    if key is not None:
        places = [columns.index(name) for name in key]
        assert {row[-1] for row in rows} <= {1, -1}, f"a keyed row of another weight: {rows}"
        signs = Counter(tuple(repr(row[i]) for i in (*places, -1)) for row in rows)
        assert not signs or max(signs.values()) == 1, f"a key occurs twice: {rows}"
    return moved


def _identifies(key: tuple[str, ...] | None, columns: tuple[str, ...], rows: Counter[Row]) -> bool:
    """Whether a key tells all rows of a table apart, those that do not change too: it is overwritten by it."""
    if key is None:
        return True
    places = [columns.index(name) for name in key]
    return max(Counter(tuple(row[i] for i in places) for row in rows.elements()).values(), default=1) == 1


def _signed(rows: list[Row]) -> Counter[Row]:
    result: Counter[Row] = Counter()
    for *row, weight in rows:
        assert isinstance(weight, int)
        (only,) = bag([tuple(row)])
        result[only] += weight
    return result


def _plus(*bags: Mapping[Row, int]) -> Counter[Row]:
    total: Counter[Row] = Counter()
    for each in bags:
        for row, weight in each.items():
            total[row] += weight
    return Counter({row: weight for row, weight in total.items() if weight})


def _check_shape(program: DeltaProgram) -> None:
    relations = [step.relation for step in program.steps] + [program.state.change]
    for relation in relations:
        found = list(naive(relation))
        assert not found, found


def _differ(name: str, got: Counter[Row], expected: Counter[Row], moved: Counter[Row]) -> str:
    return f"{name}: missing {dict(expected - got)}, unexpected {dict(got - expected)}, change {dict(moved)}"
