"""Text to compiled view: reads a query, normalises it, and derives the programs that keep its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Scan,
    Stored,
    Union,
    Values,
    Window,
)
from headrace.algebra.schema import Column
from headrace.algebra.tree import identity, sources, transform, walk
from headrace.algebra.types import followed, groupable, mentions
from headrace.compiler.cycle_programs import first_round, gains_program
from headrace.compiler.derive import companion_relation, companion_types, delta_program, full_program
from headrace.compiler.inexact_values import inexact
from headrace.ivm.program import DeltaProgram, FullProgram, Key, Need, Step, TableChange
from headrace.names import TableName
from headrace.optimizer.auxiliary_views.inner_aggregates import with_groups_to_keep
from headrace.optimizer.common_subexpressions.across_programs import CommonNear
from headrace.optimizer.common_subexpressions.read_once import read_once
from headrace.optimizer.known_keys import use_keys
from headrace.optimizer.passes import QUERY, rewrite, step
from headrace.optimizer.unique_keys import KeysOf, Uniqueness
from headrace.sql.lower import lower
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.column_types import column_types
from headrace.sql.reader.context import Resolve, Schema
from headrace.sql.reader.functions.order_dependence import unsettled
from headrace.sql.reader.functions.ties import Known, nothing_known, undetermined
from headrace.sql.reader.reader import read
from headrace.sql.reader.refusals import Refusal, not_maintained

__all__ = ["CompiledView", "DeltaProgram", "FullProgram", "Step", "TableChange", "compile_tree", "compile_view"]

Describe = Callable[[str], tuple[Column, ...]]
"""The analysed schema of a SQL text."""


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
        types: Types of its tree's columns by name, as far as known.
        rests_on_keys: Whether the tree is what it is because keys of sources are known.
        keys: Keys of the result that follow from the query.
    """

    query: str
    sources: tuple[TableName, ...]
    output: tuple[Column, ...]
    companion: tuple[Column, ...] | None
    refusals: tuple[Refusal, ...]
    tree: Relation | None
    ansi: bool = True
    types: Mapping[str, str] = field(default_factory=dict, hash=False)
    rests_on_keys: bool = False
    keys: tuple[tuple[str, ...], ...] = ()

    def full_program(self) -> FullProgram:
        """How to compute the stored tables from nothing."""
        if self.tree is None:
            return FullProgram()
        program = full_program(self.tree, self.types)
        return FullProgram(self._tidied(program.companion), self._tidied(program.state), program.companion_key)

    def delta_program(
        self,
        changed: frozenset[TableName],
        appended: frozenset[TableName] = frozenset(),
        sizes: Mapping[TableName, int] | None = None,
        companion_rows: int = 0,
        barred: Set[Key] = frozenset(),
        collected: Mapping[Key, Need] | None = None,
    ) -> DeltaProgram | None:
        """How the stored tables follow a change.

        Args:
            changed: Sources that changed.
            appended: Those among them that only gained rows, if that is known.
            sizes: Rows in each source, as far as known; only speed depends on it.
            companion_rows: Rows in the companion, as far as known; likewise.
            barred: Sources and columns by which rows near a change are too many to be kept.
            collected: Rows near changes that are collected for several stream tables.

        Returns:
            None when nothing can have changed, or the query is not maintained.
        """
        program = self.delta_by_rules(changed, appended, sizes, companion_rows)
        if program is None:
            return None
        tidied = self._tidied_program(program)
        near = CommonNear(changed, sizes or {}, self.types)
        needs = near.needs(tidied)
        common = near.instead(tidied, collected) if collected else tidied
        once = read_once(common, changed, sizes or {}, self.types, barred)
        last = tidied if once is tidied else self._tidied_program(once, done=tidied)
        return replace(last, needs=needs)

    def delta_by_rules(
        self,
        changed: frozenset[TableName],
        appended: frozenset[TableName] = frozenset(),
        sizes: Mapping[TableName, int] | None = None,
        companion_rows: int = 0,
    ) -> DeltaProgram | None:
        """What `delta_program` gives, as the rules derive it, before it is rewritten."""
        if self.tree is None:
            return None
        return delta_program(
            self.tree,
            changed,
            appended,
            sizes=sizes,
            companion_rows=companion_rows,
            ansi=self.ansi,
            types=self.types,
        )

    def first_round(self) -> Relation | None:
        """All rows of the query as a change; None when it was refused."""
        return None if self.tree is None else self._tidied(first_round(self.tree))

    def gains_program(self, changed: frozenset[TableName]) -> DeltaProgram | None:
        """What a member of a cycle gains by what others gained; see `headrace.compiler.cycle_programs`."""
        program = None if self.tree is None else gains_program(self.tree, changed, ansi=self.ansi, types=self.types)
        return None if program is None else self._tidied_program(program)

    def _tidied_program(self, program: DeltaProgram, done: DeltaProgram | None = None) -> DeltaProgram:
        """The program rewritten, but for steps that are those of one that is, and for those that others have, too."""
        passes = step(self.types)
        as_they_are = frozenset() if done is None else frozenset(map(id, done.steps))
        steps = tuple(
            s
            if s.follows or id(s) in as_they_are
            else replace(s, relation=rewrite(s.relation, passes), only_if=self._tidied(s.only_if))
            for s in program.steps
        )
        companion = None if program.companion is None else self._tidied_change(program.companion)
        return DeltaProgram(steps, self._tidied_change(program.state), companion)

    def _tidied(self, relation: Relation | None) -> Relation | None:
        return None if relation is None else rewrite(relation, step(self.types))

    def _tidied_change(self, change: TableChange) -> TableChange:
        return replace(change, change=rewrite(change.change, step(self.types)))


def compile_view(
    query: str,
    *,
    resolve: Resolve,
    schema: Schema,
    describe: Describe,
    case_sensitive: bool = False,
    ansi: bool = True,
    functions: Mapping[str, bool] | None = None,
    keys: KeysOf | None = None,
) -> CompiledView:
    """Compile a query text.

    Args:
        query: A SELECT in Spark SQL.
        resolve: The full name of a table as written.
        schema: The columns of a table, or the text of a view.
        describe: The analysed schema of a SQL text, by Spark.
        case_sensitive: Whether column names differ by case.
        ansi: Whether the query runs in ANSI mode.
        functions: The user's own functions of one row, by name, and whether they are deterministic.
        keys: Keys of the sources, as far as known: columns in which no two rows agree.

    Raises:
        UserError: the text is no valid query; what the reader and the analyser raise.
    """
    reading = read(
        query,
        resolve=resolve,
        schema=schema,
        describe=describe,
        case_sensitive=case_sensitive,
        functions=functions,
    )
    if reading.tree is None:
        return CompiledView(query, reading.sources, describe(query), None, reading.refusals, None, ansi)
    view = compile_tree(reading.tree, describe, query=query, ansi=ansi, keys=keys)
    output = describe(query)
    types_of = _types_of(describe)
    loose = _loose(reading.tree, types_of)
    if loose and keys:
        told_apart = _loose(reading.tree, types_of, Uniqueness(keys, column_types(reading.tree, types_of)).keys)
        view = replace(view, rests_on_keys=view.rests_on_keys or told_apart != loose)
        loose = told_apart
    refusals = reading.refusals + _incomparable(output, view.tree) + _misread(view.output, output) + loose
    refusals += _inexact(view.tree, types_of) + _unkept(view) + _by_maps(view, types_of) + _collated(view, output)
    if refusals:
        return CompiledView(query, reading.sources, output, None, refusals, None, ansi)
    return replace(view, sources=reading.sources, output=output)


def _loose(
    tree: Relation, types_of: Callable[[Relation], tuple[Column, ...]], known: Known = nothing_known
) -> tuple[Refusal, ...]:
    """What may give other results for the same rows, as rows that tie have no order."""
    return undetermined(tree, types_of, known) + unsettled(tree, types_of, known)


def _incomparable(output: tuple[Column, ...], tree: Relation | None) -> tuple[Refusal, ...]:
    """Rows are matched by their values, so every column must have equality; maps are matched by grouping alone."""
    message = "Column '{}' is of a type that has no equality: {}."
    alone = tree is not None and all(isinstance(node, _GROUPED_ALONE) for node in walk(tree))
    return tuple(
        not_maintained(f"column of type {c.type}", None, message.format(c.name, c.type), _PARTS)
        for c in output
        if not (followed(c.type) if alone else groupable(c.type))
    )


_GROUPED_ALONE = (Scan, Project, Filter, Join, OuterJoin, Existence, Union, Generate, Values, Window)
"""Operators whose rules compare no whole rows but by adding up their weights."""


def _by_maps(view: CompiledView, types_of: Callable[[Relation], tuple[Column, ...]]) -> tuple[Refusal, ...]:
    """Groups are found again by their keys, which Spark groups by even where it cannot compare them."""
    found = set[str]()
    nodes = list(walk(view.tree)) if view.tree is not None else []
    written = (value.sql.lower() for node in nodes if isinstance(node, Project) for _, value in node.items)
    possible = not all(map(groupable, view.types.values())) or any("map" in sql for sql in written)
    for node in (node for node in nodes if isinstance(node, Aggregate)):
        kinds = {key: view.types.get(key) for key in node.keys}
        if None in kinds.values() and possible:  # Spark is asked for types only where there may be such
            kinds = {c.name: c.type for c in types_of(Project(node.input, identity(node.keys)))}
        found |= {kind for kind in kinds.values() if kind is not None and not groupable(kind)}
    message = "Groups are told apart by values of type {}, which cannot be compared."
    return tuple(not_maintained(f"groups by {kind}", None, message.format(kind), _ENTRIES) for kind in sorted(found))


_ENTRIES = "Group by what can be compared: array_sort(map_entries(x))."

_PARTS = "Return what can be compared: array_sort(map_entries(x)) of a map, to_json(x) or parts of a variant."


def _collated(view: CompiledView, output: tuple[Column, ...]) -> tuple[Refusal, ...]:
    """A table keeps texts without their collation, and Spark compares none with one that has another."""
    kinds = {c.type for c in (*output, *(view.companion or ())) if "collate" in c.type.lower()}
    message = "Values of type {} are kept in a table without their collation, and cannot be found there again."
    return tuple(not_maintained(f"column of type {kind}", None, message.format(kind), _PLAIN) for kind in sorted(kinds))


_PLAIN = "Show and group by x COLLATE UTF8_BINARY, lower(x) for instance; compare and filter by any collation."


def _unkept(view: CompiledView) -> tuple[Refusal, ...]:
    """What groups remember lies in a table, which holds no intervals."""
    kinds = {c.type for c in view.companion or () if mentions(c.type, "interval")}
    groups = [node for node in walk(view.tree) if isinstance(node, Aggregate)] if view.tree is not None else []
    places = {call.type: call.place for node in groups for call in node.calls}
    message = "What groups must remember for it is of type {}, which no table can hold."
    return tuple(
        not_maintained(f"groups with values of type {kind}", places.get(kind), message.format(kind), _COUNTED)
        for kind in sorted(kinds)
    )


_COUNTED = "Group and aggregate numbers instead, such as timestampdiff(SECOND, a, b)."


def _inexact(tree: Relation | None, types_of: Callable[[Relation], tuple[Column, ...]]) -> tuple[Refusal, ...]:
    """What is taken back must be what is stored, to the last digit."""
    message = "{0} of floating-point numbers below another operator cannot be computed a second time to the last digit."
    hint = "Sum decimals (CAST … AS DECIMAL), or make this part a stream table of its own and read that."
    functions = inexact(tree, types_of) if tree is not None else ()
    return tuple(not_maintained(f"{f} of floats", None, message.format(f), hint) for f in functions)


def _misread(own: tuple[Column, ...], spark: tuple[Column, ...]) -> tuple[Refusal, ...]:
    """What Spark sees in the text decides; a reading that gives other columns or types is not trusted."""
    if len(own) != len(spark):
        found = f"The query has {len(spark)} columns in Spark's reading and {len(own)} in this one."
        return (not_maintained("select list", None, found),)
    message = "Column '{}' is {} in Spark's reading and {} in this one."
    return tuple(
        not_maintained("select list", None, message.format(theirs.name, theirs.type, mine.type))
        for mine, theirs in zip(own, spark, strict=True)
        if mine.type != theirs.type
    )


def compile_tree(
    tree: Relation, describe: Describe, *, query: str = "", ansi: bool = True, keys: KeysOf | None = None
) -> CompiledView:
    """Compile a query that is algebra already; arguments as for `compile_view`."""
    types_of = _types_of(describe)
    typed = rewrite(with_types(tree, types_of), QUERY)
    types = column_types(typed, types_of)
    fewer = use_keys(typed, keys or {}, types)
    rests = fewer != typed
    if rests:
        typed = rewrite(fewer, QUERY)
        types = column_types(typed, types_of)
    few = with_groups_to_keep(typed, types)
    if few != typed:
        typed = few
        types = column_types(typed, types_of)
    own = _own_keys(typed, keys or {}, types)
    types = {**types, **companion_types(typed, types, lambda relation: {c.name: c.type for c in types_of(relation)})}
    companion = companion_relation(typed, types)
    columns = types_of(companion) if companion is not None else None
    # a key that follows from those of sources is as good as these
    rests = rests or (bool(keys) and own != _own_keys(typed, {}, types))
    return CompiledView(query, sources(typed), types_of(typed), columns, (), typed, ansi, types, rests, own)


def _own_keys(tree: Relation, known: KeysOf, types: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(key)) for key in Uniqueness(known, types).keys(tree) if key)


def _types_of(describe: Describe) -> Callable[[Relation], tuple[Column, ...]]:
    """The columns of a relation, as Spark sees them; conditions change none, and long ones take Spark long."""
    return lambda relation: describe(lower(transform(relation, _without_long_condition), _by_name))


def _without_long_condition(node: Relation) -> Relation:
    return node.input if isinstance(node, Filter) and len(node.condition.sql) > _LONG else node


_LONG = 10_000
"""Characters of a condition that Spark need not read another time."""


def _by_name(leaf: Scan | Stored) -> str:
    assert isinstance(leaf, Scan), "a query reads sources only"
    return leaf.source.sql
