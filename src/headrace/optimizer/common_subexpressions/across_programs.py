"""Semi-joins of a source with a change that programs of several stream tables share.

`read_once.py` shares them within one program. But all joins of orders and line items read the line items of changed
orders. Each program lists what it reads as its needs; where several programs have the same ones, one step reads what
any of them needs. That step depends on changes only and on no program, so it is the same step in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Empty, Filter, Moment, Project, Relation, Scan
from headrace.algebra.scalar import as_column, column
from headrace.ivm.program import DeltaProgram, Key, Need, Step, free_name
from headrace.names import TableName
from headrace.optimizer.common_subexpressions.read_once import (
    SEMIJOIN,
    is_large,
    looked_into,
    read_from,
    worth_a_step,
)
from headrace.optimizer.common_subexpressions.semijoin_rows import identity_fields, semijoin_step
from headrace.optimizer.optimizer_pass import ProgramFacts
from headrace.optimizer.sideways.demand import Reading, Tracing
from headrace.optimizer.sideways.value_domains import Domains, terms, united


def share_reads(program: DeltaProgram, facts: ProgramFacts) -> DeltaProgram:
    """List the semi-joins a program reads; read shared ones from common steps.

    Args:
        program: The program, its steps rewritten.
        facts: What changed, and which semi-joins are shared.
    """
    semijoins = SharedSemijoins(facts.changed, facts.sizes, facts.types)
    needs = semijoins.needs(program)
    return replace(
        semijoins.instead(program, facts.shared_semijoins) if facts.shared_semijoins else program, needs=needs
    )


def together(needs: Iterable[Need]) -> Need:
    """Combine needs of one source by the same columns into one."""
    every = list(needs)
    fields = {name: type_ for need in every for name, type_ in need.fields.items()}
    return Need(frozenset[Key]().union(*(need.follows for need in every)), dict(sorted(fields.items())))


def common_step(key: Key, need: Need, changed: Set[TableName], steps: Iterable[Step] = ()) -> Step:
    """Return the step of a shared semi-join; the same for all programs that need the same.

    Args:
        key: The source, and the columns that have the keys.
        need: What is needed.
        changed: The sources that changed; those that are followed are among them.
        steps: Those of the program, which have names already.
    """
    source, columns = key
    names = tuple(f"__hr_key{i}" for i in range(len(columns)))
    keys = united(
        Project(
            Scan(table, identity_fields(values), Moment.CHANGE),
            tuple((name, column(value)) for name, value in zip(names, values, strict=True)),
        )
        for table, values in sorted(need.follows, key=str)
    )
    follows = frozenset(table for table, _ in need.follows)
    return semijoin_step(free_name(SEMIJOIN, steps), key, keys, need.fields, changed=source in changed, follows=follows)


@dataclass(frozen=True, slots=True)
class SharedSemijoins:
    """Finds the semi-joins with changes that a program reads, and replaces them by shared ones.

    Args:
        changed: The sources that changed.
        sizes: Rows in each source, as far as known; small ones are read as they are.
        types: Types of columns by name, as far as known.
    """

    changed: Set[TableName]
    sizes: Mapping[TableName, int]
    types: Mapping[str, str]

    def needs(self, program: DeltaProgram) -> dict[Key, Need]:
        """Return the semi-joins with changes that a program reads of its sources."""
        found: dict[Key, Need] = {}

        def use(reading: Reading) -> Relation:
            for key, need in self._of(reading):
                found[key] = together((found[key], need)) if key in found else need
            return reading.scan

        if not is_large(program):
            tracing = Tracing(self._domains(program), use, worth_a_step(self.sizes))
            for step in program.steps:
                if looked_into(step):
                    tracing.visit(step.relation)
        return found

    def instead(self, program: DeltaProgram, wanted: Mapping[Key, Need]) -> DeltaProgram:
        """Return the program, in which shared semi-joins are read from common steps.

        Args:
            program: The program.
            wanted: The shared semi-joins.
        """
        if is_large(program):
            return program
        steps: dict[Key, Step] = {}

        def use(reading: Reading) -> Relation:
            for key, need in self._of(reading):
                if key in wanted and wanted[key].serves(need):
                    if key not in steps:
                        taken = (*program.steps, *steps.values())
                        steps[key] = common_step(key, wanted[key], self.changed, taken)
                    return read_from(steps[key], reading, changed=key[0] in self.changed)
            return reading.scan

        sources = {source for source, _ in wanted}
        tracing = Tracing(self._domains(program), use, sources.__contains__)
        read = tuple(
            replace(step, relation=tracing.visit(step.relation)) if looked_into(step) else step
            for step in program.steps
        )
        return replace(program, steps=(*steps.values(), *read)) if steps else program

    def _domains(self, program: DeltaProgram) -> Domains:
        """Steps are looked into, until only changes are left: no other program has these steps."""
        return Domains({step.name: step.relation for step in program.steps}, frozenset(), self.types)

    def _of(self, reading: Reading) -> list[tuple[Key, Need]]:
        source = reading.scan.source
        fields = {name: self.types.get(out, "") for out, name in reading.scan.fields}
        if source in self.changed and not all(type_ and equal_means_same(type_) for type_ in fields.values()):
            return []  # rows as they were could not be told from rows as they are
        found = (((source, demand.columns), _followed(demand.values)) for demand in reading.demands)
        return [(key, Need(follows, fields)) for key, follows in found if follows]


def _followed(values: Relation) -> frozenset[Key] | None:
    """Return the sources and columns whose changes have all of some values.

    None where something else has them.
    """
    found = set[Key]()
    for term in terms(values):
        names = term.columns
        while isinstance(term, Project | Filter):
            if isinstance(term, Project):
                own = dict(term.items)
                read = [as_column(own[name]) for name in names]
                if None in read:
                    return None
                names = tuple(filter(None, read))
            term = term.input
        if isinstance(term, Empty):
            continue
        if not isinstance(term, Scan) or term.moment is not Moment.CHANGE:
            return None
        of = dict(term.fields)
        if not set(names) <= of.keys():
            return None
        found.add((term.source, tuple(of[name] for name in names)))
    return frozenset(found)
