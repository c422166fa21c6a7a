"""A compiled query, and the programs that load its stored tables and follow changes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Relation
from headrace.algebra.schema import Column
from headrace.compiler.cycle_programs import first_round, gains_program
from headrace.compiler.derive import delta_program, full_program
from headrace.ivm.program import DeltaProgram, FullProgram, Key, Need, Step, TableChange
from headrace.names import TableName
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.optimizer import Optimizer
from headrace.optimizer.optimizer_pass import ProgramFacts
from headrace.sql.reader.refusals import Refusal
from headrace.sql.refinements import Refinement

__all__ = ["CompiledView", "DeltaProgram", "FullProgram", "Step", "TableChange"]


@dataclass(frozen=True, slots=True)
class CompiledView:
    """A query, ready to be maintained.

    Args:
        query: The text it was compiled from.
        sources: Tables it reads.
        output: Its columns.
        companion: The columns of its companion; None when it needs none.
        refusals: Why it cannot be refreshed DIFFERENTIAL; empty when it can.
        tree: The query as algebra; None when it was refused.
        ansi: Whether it runs in Spark's ANSI mode.
        types: Types of its tree's and its companion's columns by name, as far as known.
        exact: Those of its tree's columns, by name, whose equal values are known to be the same.
        rests_on_keys: Whether the tree is what it is because keys of sources are known.
        keys: Keys of the result that follow from the query.
        views: What its companion keeps besides the accumulators of an aggregate at the root.
        optimizer: Runs the passes over its programs.
        refinements: What its text is read with, so that it is a function of its sources.
    """

    query: str
    sources: tuple[TableName, ...]
    output: tuple[Column, ...]
    companion: tuple[Column, ...] | None
    refusals: tuple[Refusal, ...]
    tree: Relation | None
    ansi: bool = True
    types: Mapping[str, str] = field(default_factory=dict, hash=False)
    exact: frozenset[str] = frozenset()
    rests_on_keys: bool = False
    keys: tuple[tuple[str, ...], ...] = ()
    views: AuxiliaryViews = field(default_factory=AuxiliaryViews, hash=False)
    optimizer: Optimizer = field(default_factory=Optimizer)
    refinements: tuple[Refinement, ...] = ()

    def full_program(self) -> FullProgram:
        """Derive how the stored tables are computed from nothing."""
        if self.tree is None:
            return FullProgram()
        program = full_program(self.tree, self.views, self.types)
        return FullProgram(self._rewritten(program.companion), self._rewritten(program.state), program.companion_key)

    def delta_program(
        self,
        changed: frozenset[TableName],
        appended: frozenset[TableName] = frozenset(),
        sizes: Mapping[TableName, int] | None = None,
        companion_rows: int = 0,
        barred: Set[Key] = frozenset(),
        shared_semijoins: Mapping[Key, Need] | None = None,
        *,
        whole: bool = False,
    ) -> DeltaProgram | None:
        """Derive how the stored tables follow a change.

        Args:
            changed: Sources that changed.
            appended: Those among them that only gained rows, if that is known.
            sizes: Rows in each source, as far as known; only speed depends on it.
            companion_rows: Rows in the companion, as far as known; likewise.
            barred: Semi-joins with a change that are too large to be kept: sources, and the columns that have the keys.
            shared_semijoins: Semi-joins with changes that are computed once for several stream tables.
            whole: Whether all rows of the companion may be held; likewise.

        Returns:
            None when nothing can have changed, or the query is not maintained.
        """
        program = self.delta_by_rules(changed, appended, sizes, companion_rows, whole=whole)
        if program is None:
            return None
        facts = ProgramFacts(changed, sizes or {}, self.types, barred=barred, shared_semijoins=shared_semijoins or {})
        return self.optimizer.program(program, facts)

    def delta_by_rules(
        self,
        changed: frozenset[TableName],
        appended: frozenset[TableName] = frozenset(),
        sizes: Mapping[TableName, int] | None = None,
        companion_rows: int = 0,
        *,
        whole: bool = False,
    ) -> DeltaProgram | None:
        """Derive what `delta_program` gives, up to the passes over its steps."""
        if self.tree is None:
            return None
        return delta_program(
            self.tree,
            self.views,
            changed,
            appended,
            self.optimizer,
            sizes=sizes or {},
            companion_rows=companion_rows,
            whole=whole and all(equal_means_same(c.type) for c in self.companion or ()),
            ansi=self.ansi,
            types=self.types,
            exact=self.exact,
            output=self.output,
        )

    def first_round(self) -> Relation | None:
        """Derive all rows of the query as a change; None when it was refused."""
        return None if self.tree is None else self._rewritten(first_round(self.tree))

    def gains_program(self, changed: frozenset[TableName]) -> DeltaProgram | None:
        """Derive a member's added rows in a round of a cycle; see `cycle_programs.py`."""
        if self.tree is None:
            return None
        program = gains_program(self.tree, changed, self.optimizer, ansi=self.ansi, types=self.types, exact=self.exact)
        return None if program is None else self.optimizer.steps(program, self.types)

    def _rewritten(self, relation: Relation | None) -> Relation | None:
        return None if relation is None else self.optimizer.relation(relation, self.types)
