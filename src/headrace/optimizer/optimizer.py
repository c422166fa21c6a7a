"""Runs the passes of `passes`, but for those that are switched off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from headrace.algebra.relations import Relation
from headrace.ivm.change import Change
from headrace.ivm.program import DeltaProgram, Step
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.optimizer_pass import Pass, ProgramFacts, QueryFacts, Subject, Types
from headrace.optimizer.passes import PASSES

Observe = Callable[[Pass, Any, Any], None]
"""Is told of a pass, and of its whole subject before and after."""


@cache
def passes_over(subject: Subject, disabled: frozenset[str] = frozenset()) -> tuple[Pass, ...]:
    """Return the passes over a subject, in order, without those that are switched off."""
    return tuple(each for each in PASSES if each.subject is subject and each.name not in disabled)


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Runs passes.

    Args:
        disabled: Names of passes that are switched off.
        observe: Called after each pass, for `explain`; None, as in refreshes: nothing is recorded.
    """

    disabled: frozenset[str] = frozenset()
    observe: Observe | None = field(default=None, compare=False)

    def query(self, tree: Relation, facts: QueryFacts) -> tuple[Relation, frozenset[str]]:
        """Rewrite a query by the passes over queries.

        Returns:
            The tree, and the names of those passes that others ran again for.
        """
        fired = set[str]()
        for each in passes_over(Subject.QUERY, self.disabled):
            after = self._apply(each, tree, facts)
            if each.then and after == tree:
                continue
            for again in each.then:
                fired.add(each.name)
                after = after if again.name in self.disabled else self._apply(again, after, facts)
            tree = after
        return tree, frozenset(fired)

    def companion(self, tree: Relation, facts: QueryFacts) -> AuxiliaryViews:
        """Decide by the passes over companions which parts of a query are stored beside its result.

        Args:
            tree: The query, rewritten.
            facts: Keys of its sources and types of its columns.
        """
        views = AuxiliaryViews()
        for each in passes_over(Subject.COMPANION, self.disabled):
            views = self._apply(each, views, (tree, facts))
        return views

    def rules(self, change: Change, tree: Relation) -> Change:
        """Restrict what the delta rules follow.

        Args:
            change: The changed sources, before any rule has asked.
            tree: The query, rewritten.
        """
        for each in passes_over(Subject.RULES, self.disabled):
            change = self._apply(each, change, tree)
        return change

    def derived(self, program: DeltaProgram, repeated: Set[Relation]) -> DeltaProgram:
        """Rewrite a program as the rules gave it.

        Args:
            program: The program.
            repeated: Changes of relations that rules asked for several times.
        """
        facts = ProgramFacts(frozenset(), repeated=repeated)
        for each in passes_over(Subject.PROGRAM, self.disabled):
            program = self._apply(each, program, facts)
        return program

    def program(self, program: DeltaProgram, facts: ProgramFacts) -> DeltaProgram:
        """Apply the passes over steps, then those over reads, then those over steps once more.

        Args:
            program: The program that the delta rules gave.
            facts: What changed, sizes of sources, and what other stream tables read.

        Returns:
            A program with the same result.
        """
        rewritten = last = self.steps(program, facts.types)
        for each in passes_over(Subject.READS, self.disabled):
            last = self._apply(each, last, facts)
        return last if last.steps is rewritten.steps else self.steps(last, facts.types, done=rewritten.steps)

    def steps(self, program: DeltaProgram, types: Types, done: Collection[Step] = ()) -> DeltaProgram:
        """Rewrite the steps and table changes of a program.

        Args:
            program: The program.
            types: Types of columns by name, as far as known.
            done: Steps to be left alone, as are those that are the same in several programs.
        """
        kept = frozenset(map(id, done))

        def rewritten(found: DeltaProgram, each: Callable[[Relation], Relation]) -> DeltaProgram:
            steps = tuple(s if s.follows or id(s) in kept else s.rewritten(each) for s in found.steps)
            companion = None if found.companion is None else found.companion.rewritten(each)
            return replace(found, steps=steps, state=found.state.rewritten(each), companion=companion)

        if self.observe is None:
            return rewritten(program, lambda relation: self.relation(relation, types))
        for each in passes_over(Subject.STEP, self.disabled):
            before, program = program, rewritten(program, partial(_applied, each, types))
            self.observe(each, before, program)
        return program

    def relation(self, relation: Relation, types: Types) -> Relation:
        """Rewrite a relation that is computed by a refresh."""
        for each in passes_over(Subject.STEP, self.disabled):
            relation = each.apply(relation, types)
        return relation

    def _apply(self, each: Pass, subject: Any, given: Any) -> Any:
        after = each.apply(subject, given)
        if self.observe is not None:
            self.observe(each, subject, after)
        return after


def _applied(each: Pass, types: Types, relation: Relation) -> Relation:
    found: Relation = each.apply(relation, types)
    return found
