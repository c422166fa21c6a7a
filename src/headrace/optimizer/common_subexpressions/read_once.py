"""Reads a semi-join of a source with a change once, however often a program needs it.

Rules ask for the rows of a source that have a change's keys: as they are, as they were, for one side of a join and for
the other, one scan each. All of these are among N = S′ ⋉ K, with K all the keys that any of them asks for, and the rows
as they were follow from the change. So N is read once and becomes a step (`semijoin_step`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Moment, Project, Relation, Replicate, Stored
from headrace.algebra.scalar import Scalar, all_of, column, has_word
from headrace.algebra.tree import walk
from headrace.ivm.program import DeltaProgram, Key, Step, free_name
from headrace.names import TableName
from headrace.optimizer.common_subexpressions.semijoin_rows import AFTERWARDS, BEFOREHAND, semijoin_step
from headrace.optimizer.sideways.demand import Demand, Reading, Tracing
from headrace.optimizer.sideways.value_domains import Domains, united

SEMIJOIN = "semijoin"
"""Name of a step that holds the rows of a source that have some keys."""

WORTH_ROWS, MOST_ROWS = 300_000, 100_000_000
"""A smaller source is read twice in less time than a step takes (80 ms). Of a larger one, rows that turn out to be many
would be too many to keep even once."""

MOST_STEPS, MOST_NODES = 40, 500
"""A program of more steps or operators is left as it is: looking through it would take longer than it saves."""


def read_once(
    program: DeltaProgram,
    changed: Set[TableName],
    sizes: Mapping[TableName, int],
    types: Mapping[str, str],
    barred: Set[Key] = frozenset(),
) -> DeltaProgram:
    """Return the program, in which no two places read a source for the same keys.

    Args:
        program: What is derived and rewritten.
        changed: The sources that changed.
        sizes: Rows in each source, as far as known; small ones stay as they are.
        types: Types of columns by name, as far as known.
        barred: What is not to be read so, because too much of the source has such keys.
    """
    tried = set(barred)
    while not is_large(program):
        again = _read_one_once(_Program(program, changed, types), sizes, tried)
        if again is None:
            return program
        program = again
    return program


def _read_one_once(found: _Program, sizes: Mapping[TableName, int], tried: set[Key]) -> DeltaProgram | None:
    """Return the program in which one more source is read once; None where there is none.

    Args:
        found: The program.
        sizes: As for `read_once`.
        tried: What is not to be read so; what is tried is added.
    """
    places: defaultdict[Key, list[int]] = defaultdict(list)
    for place, reading in found.readings(worth_a_step(sizes)):
        for key in {(reading.scan.source, demand.columns) for demand in reading.demands}:
            places[key].append(place)
    while True:
        left = [key for key, own in places.items() if key not in tried and len(own) > 1]
        most = max(left, key=lambda key: (len(places[key]), len(key[1])), default=None)
        if most is None:
            return None
        tried.add(most)
        if (again := found.read_once(most, places[most][0])) is not None:
            return again


def worth_a_step(sizes: Mapping[TableName, int]) -> Callable[[TableName], bool]:
    """Return a test whether a source is large enough for a step and small enough to be kept.

    Args:
        sizes: Rows in each source, as far as known.
    """
    return lambda source: WORTH_ROWS <= sizes.get(source, WORTH_ROWS) <= MOST_ROWS


def is_large(program: DeltaProgram) -> bool:
    """Return whether analysing a program would take longer than it saves."""
    nodes = (node for step in program.steps for node in walk(step.relation))
    return len(program.steps) > MOST_STEPS or next(islice(nodes, MOST_NODES, None), None) is not None


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that is analysed.

    Args:
        program: The program.
        changed: The sources that changed.
        types: Types of columns by name, as far as known.
    """

    program: DeltaProgram
    changed: Set[TableName]
    types: Mapping[str, str]

    def readings(self, asked: Callable[[TableName], bool], shared: Domains | None = None) -> list[tuple[int, Reading]]:
        """Return unconditional scans with their steps' numbers and demands.

        Args:
            asked: Tells of which sources.
            shared: Tells where the values that matter come from; None: changes and all steps before do.
        """
        found: list[tuple[int, Reading]] = []
        for place, step in enumerate(self.program.steps):

            def use(reading: Reading, place: int = place) -> Relation:
                found.append((place, reading))
                return reading.scan

            if looked_into(step):
                Tracing(shared or self._domains(place), use, asked).visit(step.relation)
        return found

    def _domains(self, until: int) -> Domains:
        steps = self.program.steps
        kept = steps[:until]
        always = frozenset(s.name for s in kept if s.only_if is None)
        return Domains({s.name: s.relation for s in steps}, {s.name for s in kept}, self.types, always)

    def read_once(self, key: Key, first: int) -> DeltaProgram | None:
        """Return the program with one more step that is read instead of the source.

        None where that cannot be.

        Args:
            key: The source, and by which columns.
            first: The first step that reads it so.
        """
        domains = self._domains(first)
        readings = self.readings(key[0].__eq__, domains)
        wanted = [
            (reading, demand) for _, reading in readings for demand in reading.demands if demand.columns == key[1]
        ]
        if len(wanted) < 2 or not self._exact(key[0], wanted):
            return None
        semijoin = self._step(key, wanted)
        steps = [self._instead(key, semijoin, step, domains) for step in self.program.steps]
        return replace(self.program, steps=(*steps[:first], semijoin, *steps[first:]))

    def _exact(self, source: TableName, wanted: list[tuple[Reading, Demand]]) -> bool:
        """Return whether former rows follow from present ones, as equal rows are identical."""
        if source not in self.changed:
            return True
        used = {out for reading, _ in wanted for out, _ in reading.scan.fields}
        return all(out in self.types and equal_means_same(self.types[out]) for out in used)

    def _step(self, key: Key, wanted: list[tuple[Reading, Demand]]) -> Step:
        source = key[0]
        fields = {name: self.types.get(out, "") for reading, _ in wanted for out, name in reading.scan.fields}
        # each may be what keeps those behind it from failing, so that none is left out between others
        alike = zip(*(reading.conditions for reading, _ in wanted), strict=False)
        first = takewhile(lambda each: _quick(each[0]) and len(set(each)) == 1, alike)
        condition = all_of(each[0] for each in first)
        keys = united(demand.values for _, demand in wanted)
        name, changed = free_name(SEMIJOIN, self.program.steps), source in self.changed
        return semijoin_step(name, key, keys, fields, changed=changed, condition=condition)

    def _instead(self, key: Key, semijoin: Step, step: Step, domains: Domains) -> Step:
        """Return a step that reads the semi-join instead of the source."""
        if not looked_into(step):
            return step

        def use(reading: Reading) -> Relation:
            if not any(demand.columns == key[1] for demand in reading.demands):
                return reading.scan
            return read_from(semijoin, reading, changed=key[0] in self.changed)

        return replace(step, relation=Tracing(domains, use, key[0].__eq__).visit(step.relation))


def read_from(semijoin: Step, reading: Reading, *, changed: bool) -> Relation:
    """Return a scan's rows, taken from a step with a semi-join of its source.

    Args:
        semijoin: The step.
        reading: The scan.
        changed: Whether the source has changed.
    """
    stored = Stored(semijoin.name, semijoin.relation.columns)
    renamed = tuple((out, column(name)) for out, name in reading.scan.fields)
    if not changed:
        return Project(stored, renamed)
    copies = AFTERWARDS if reading.scan.moment is Moment.AFTER else BEFOREHAND
    return Replicate(Project(stored, (*renamed, (copies, column(copies)))), copies)


def looked_into(step: Step) -> bool:
    """Return whether a step is always needed, and is no semi-join of a source itself."""
    return step.only_if is None and step.semijoin is None


def _quick(condition: Scalar) -> bool:
    """Return whether a condition is cheaper than a lookup; others stay with their readers."""
    return not condition.facts.patterns and not condition.facts.calls and not has_word(condition, "::")
