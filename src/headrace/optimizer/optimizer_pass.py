"""A pass of the optimiser, its phase, and the facts that it may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headrace.algebra.properties.keys import KeysOf
from headrace.algebra.relations import Relation
from headrace.ivm.program import Key, Need
from headrace.names import TableName

Types = Mapping[str, str]


class Phase(StrEnum):
    """The frequency of a pass: at definition, per change, or per session."""

    LOGICAL = "logical"
    """Once per definition. What a companion stores follows from these passes."""
    CHANGE = "per change"
    """Whenever a program is derived for sources that changed."""
    SESSION = "per session"
    """Likewise, with what other stream tables of the session read."""


class Subject(StrEnum):
    """The kind of object that a pass transforms."""

    QUERY = "query"
    """The query's tree, a `Relation`; given `QueryFacts`."""
    COMPANION = "companion"
    """`AuxiliaryViews`; given the query's tree and `QueryFacts`, as a pair."""
    RULES = "delta rules"
    """`Change`, which the delta rules ask; given the query's tree."""
    PROGRAM = "program"
    """The `DeltaProgram` that the rules gave; given `ProgramFacts`."""
    STEP = "step"
    """The `Relation` of each step and table change; given types of columns by name."""
    READS = "reads"
    """The `DeltaProgram` after the passes over its steps; given `ProgramFacts`."""


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Facts that passes over a query may use.

    Args:
        keys: Keys of the sources.
        types: Types of a tree's columns by name, as far as known.
    """

    keys: KeysOf
    types: Callable[[Relation], Types]


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """Facts that passes over a program may use.

    Args:
        changed: Sources that changed.
        sizes: Rows in each source, as far as known.
        types: Types of columns by name, as far as known.
        repeated: Changes of relations that rules asked for several times.
        barred: Semi-joins with a change that are too large to be kept: sources, and the columns that have the keys.
        shared_semijoins: Semi-joins with changes that are computed once for several stream tables.
    """

    changed: Set[TableName]
    sizes: Mapping[TableName, int] = field(default_factory=dict)
    types: Types = field(default_factory=dict)
    repeated: Set[Relation] = frozenset()
    barred: Set[Key] = frozenset()
    shared_semijoins: Mapping[Key, Need] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pass:
    """A transformation that keeps the result.

    Args:
        name: As `explain` shows it and `[optimizer] disable` names it. A pass that runs in several phases, or several
            times in one, has one name.
        phase: How often it runs.
        subject: What it transforms.
        claim: The algebraic law it rests on.
        apply: Gives the subject transformed, or as it is; takes the subject and what `Subject` says.
        cost_based: Whether sizes decide about it; another one applies wherever it can.
        assumes: What it may rest on beyond the algebra; empty for nothing.
        then: Passes over the same subject that run again where it changed something.
        required: Why it cannot be switched off; empty where it can.
    """

    name: str
    phase: Phase
    subject: Subject
    claim: str
    apply: Callable[[Any, Any], Any]
    cost_based: bool = False
    assumes: str = ""
    then: tuple[Pass, ...] = ()
    required: str = ""
