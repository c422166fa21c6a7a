"""Text to compiled view: reads a query, rewrites it, and decides what its companion keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from headrace.algebra.properties.keys import KeysOf, Uniqueness
from headrace.algebra.relations import Filter, Relation, TopK
from headrace.algebra.schema import Column
from headrace.algebra.tree import sources, transform
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.derive import companion_types, full_program
from headrace.compiler.maintainability import TypesOf, not_kept, undetermined_rows, unmatched_columns
from headrace.optimizer.optimizer import Optimizer
from headrace.optimizer.optimizer_pass import QueryFacts
from headrace.sql.lower import lower
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.column_types import column_types
from headrace.sql.reader.context import Resolve, Schema
from headrace.sql.reader.reader import read
from headrace.sql.reader.select.limits import without_effect
from headrace.sql.reader.spark_types import by_name

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
    tree, output = reading.tree, describe(query)
    types_of = _types_of(describe)
    loose = undetermined_rows(tree, types_of, Uniqueness({}, {}, numbered=True).keys)
    settled_by_keys = False
    if loose and keys:
        known = Uniqueness(keys, column_types(tree, types_of), numbered=True).keys
        told_apart = undetermined_rows(tree, types_of, known)
        settled_by_keys, loose = told_apart != loose, told_apart
    tree = transform(tree, _without_idle_cut)
    view = compile_tree(tree, describe, query=query, ansi=ansi, keys=keys, optimizer=optimizer)
    view = replace(view, rests_on_keys=view.rests_on_keys or settled_by_keys)
    refusals = reading.refusals + unmatched_columns(view, output) + loose + not_kept(view, output, types_of)
    if refusals:
        return CompiledView(query, reading.sources, output, None, refusals, None, ansi)
    return replace(view, sources=reading.sources, output=output)


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
