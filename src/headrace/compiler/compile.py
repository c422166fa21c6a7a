"""Text to compiled view: reads a query, rewrites it, and decides what its companion keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from headrace.algebra.moving import is_moving
from headrace.algebra.properties.keys import KeysOf, Uniqueness
from headrace.algebra.relations import Existence, Filter, Relation, Scan, TopK
from headrace.algebra.schema import Column
from headrace.algebra.tree import sources, transform, walk
from headrace.compiler.choices import by_equality, settled_choices
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.derive import companion_types, full_program
from headrace.compiler.float_sums import ordered_sums
from headrace.compiler.maintainability import TypesOf, Undetermined, not_kept, undetermined_rows, unmatched_columns
from headrace.compiler.tie_breaks import candidates
from headrace.errors import HeadraceError
from headrace.names import CLOCK
from headrace.optimizer.optimizer import Optimizer
from headrace.optimizer.optimizer_pass import QueryFacts
from headrace.sql.clock import reads_of_time
from headrace.sql.lower import lower
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.column_types import column_types
from headrace.sql.reader.context import Resolve, Schema
from headrace.sql.reader.reader import read, view_texts
from headrace.sql.reader.refusals import Refusal
from headrace.sql.reader.select.limits import without_effect
from headrace.sql.reader.spark_types import by_name
from headrace.sql.refinements import Refinement, composed, refined

Describe = Callable[[str], tuple[Column, ...]]
"""The analysed schema of a SQL text."""


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
    optimizer: Optimizer | None = None,
    refine: bool = False,
    settle: int = 2,
    in_order: bool = False,
    describe_query: Describe | None = None,
    moving: bool = False,
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
        optimizer: Runs the passes; one with all of them when None.
        refine: Whether orders that leave ties are refined, where the query is maintained then.
        settle: How often aggregates that choose among rows are settled at most; what hides others is settled first.
        in_order: Whether sums of floats are added up in a fixed order, where the query is maintained then.
        describe_query: As `describe`, of the query's own text, refined or not.
        moving: Whether functions of the time read that of the refresh, where the query is maintained then.

    Raises:
        UserError: the text is no valid query; what the reader and the analyser raise.
    """
    own = describe_query or describe
    reading = read(
        query,
        resolve=resolve,
        schema=schema,
        describe=lambda sql: own(sql) if sql == query else describe(sql),
        case_sensitive=case_sensitive,
        functions=functions,
    )
    output = own(query)
    again = partial(
        compile_view,
        resolve=resolve,
        schema=schema,
        describe=describe,
        case_sensitive=case_sensitive,
        ansi=ansi,
        functions=functions,
        keys=keys,
        optimizer=optimizer,
        in_order=in_order,
        describe_query=own,
    )
    views = partial(view_texts, query, resolve, schema)
    timed = reads_of_time(query, reading.refusals) if moving and reading.tree is None else ()
    if timed and (view := _settled(partial(again, refine=refine), query, timed, output)) is not None:
        return view
    if reading.tree is None:
        if refine and settle and (view := _chosen(again, query, reading.refusals, views, output, settle)) is not None:
            return view
        return CompiledView(query, reading.sources, output, None, reading.refusals, None, ansi)
    types_of = _types_of(describe)
    open_ends, rests_on_keys = _undetermined(reading.tree, types_of, keys or {})
    if refine and settle and open_ends.choices:
        view = _chosen(again, query, open_ends.choices, views, output, settle)
        if view is not None:
            return view
    if refine and open_ends.orders and not open_ends.choices:
        for added in candidates(reading, open_ends.orders):
            if (view := _settled(again, query, added, output)) is not None:
                return view
    tree = transform(reading.tree, _without_idle_cut)
    view = compile_tree(tree, describe, query=query, ansi=ansi, keys=keys, optimizer=optimizer)
    loose = open_ends.refusals
    refusals = reading.refusals + unmatched_columns(view, output) + loose + not_kept(view, output, types_of)
    if in_order and (added := ordered_sums(query, refusals)):
        ordered = _settled(partial(again, in_order=False), query, added, output)
        if ordered is not None:
            return ordered
    if refusals:
        return CompiledView(query, reading.sources, output, None, refusals, None, ansi)
    rests_on_keys = view.rests_on_keys or rests_on_keys
    return replace(view, sources=reading.sources, output=output, rests_on_keys=rests_on_keys)


def _undetermined(tree: Relation, types_of: TypesOf, keys: KeysOf) -> tuple[Undetermined, bool]:
    """Return what ties leave open in a query, and whether keys of sources leave less open."""
    found = undetermined_rows(tree, types_of, Uniqueness({}, {}, numbered=True).keys)
    if not found.refusals or not keys:
        return found, False
    known = Uniqueness(keys, column_types(tree, types_of), numbered=True).keys
    told_apart = undetermined_rows(tree, types_of, known)
    return told_apart.beside(found), told_apart.refusals != found.refusals


def _settled(
    compile_text: Callable[[str], CompiledView],
    query: str,
    added: tuple[Refinement, ...],
    output: tuple[Column, ...],
) -> CompiledView | None:
    """Return a query compiled with its orders refined.

    None where it is not maintained so either.
    """
    try:
        view = compile_text(refined(query, added))
    except HeadraceError:
        return None
    if view.refusals or view.output != output or not _moves_rightly(view.tree):
        return None
    both = composed(added, view.refinements)
    return replace(view, query=query, refinements=both) if _apart(query, both, view) else None


def _apart(query: str, refinements: tuple[Refinement, ...], view: CompiledView) -> bool:
    """Return whether what is refined can be put into a text at once: none stands in another."""
    return refined(query, refinements) == refined(view.query, view.refinements)


def _moves_rightly(tree: Relation | None) -> bool:
    """Return whether a query reads the time in moving filters only."""
    nodes = list(walk(tree)) if tree is not None else []
    moving = [node.right for node in nodes if isinstance(node, Existence) and is_moving(node)]
    return sum(isinstance(node, Scan) and node.source == CLOCK for node in nodes) == len(moving)


def _chosen(
    compile_text: Callable[..., CompiledView],
    query: str,
    refusals: tuple[Refusal, ...],
    views: Callable[[], Iterable[str]],
    output: tuple[Column, ...],
    settle: int,
) -> CompiledView | None:
    """Return a query compiled with its aggregates leaving no choice.

    None where it is not maintained so either.
    """
    added = settled_choices(query, refusals, views())
    if not added:
        return None
    try:
        view = compile_text(refined(query, added), refine=True, settle=settle - 1)
    except HeadraceError:
        return None
    collated = by_equality(added) and any("collate" in each.lower() for each in view.types.values())
    both = composed(added, view.refinements)
    if view.refusals or view.output != output or collated or not _apart(query, both, view):
        return None
    return replace(view, query=query, refinements=both)


def compile_tree(
    tree: Relation,
    describe: Describe,
    *,
    query: str = "",
    ansi: bool = True,
    keys: KeysOf | None = None,
    optimizer: Optimizer | None = None,
) -> CompiledView:
    """Compile a query that is algebra already; arguments as for `compile_view`."""
    optimizer, known = optimizer or Optimizer(), keys or {}
    types_of = _types_of(describe)
    facts = QueryFacts(known, _remembering(types_of))
    rewritten, used_keys = optimizer.query(with_types(tree, types_of), facts)
    views = optimizer.companion(rewritten, facts)
    types = facts.types(rewritten)
    own = _own_keys(rewritten, known, types)
    types = {**types, **companion_types(rewritten, views, lambda node: {c.name: c.type for c in types_of(node)})}
    companion = full_program(rewritten, views, types).companion
    columns = types_of(companion) if companion is not None else None
    # a key that follows from those of sources is as good as these
    rests = bool(used_keys) or (bool(keys) and own != _own_keys(rewritten, {}, types))
    output = types_of(rewritten)
    return CompiledView(
        query, sources(rewritten), output, columns, (), rewritten, ansi, types, rests, own, views, optimizer
    )


def _without_idle_cut(node: Relation) -> Relation:
    """Return what a LIMIT without ORDER BY leaves of one row at most.

    Of several it is refused.
    """
    cut = without_effect(node, single=True) if isinstance(node, TopK) else None
    return node if cut is None else cut


def _remembering(types_of: TypesOf) -> Callable[[Relation], Mapping[str, str]]:
    """Find types of a tree's columns; keep the last answer for passes that change nothing."""
    last: list[tuple[Relation, Mapping[str, str]]] = []

    def types(tree: Relation) -> Mapping[str, str]:
        if not last or last[0][0] is not tree:
            last[:] = [(tree, column_types(tree, types_of))]
        return last[0][1]

    return types


def _own_keys(tree: Relation, known: KeysOf, types: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(key)) for key in Uniqueness(known, types).keys(tree) if key)


def _types_of(describe: Describe) -> TypesOf:
    """Find a relation's column types by Spark, without long conditions, which take it long."""
    return lambda relation: describe(lower(transform(relation, _without_long_condition), by_name))


def _without_long_condition(node: Relation) -> Relation:
    return node.input if isinstance(node, Filter) and len(node.condition.sql) > _LONG else node


_LONG = 10_000
"""Characters of a condition that Spark need not read another time."""
