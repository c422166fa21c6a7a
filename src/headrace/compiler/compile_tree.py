"""Algebra to compiled view: rewrites a query's tree, and decides what its companion keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from headrace.algebra.properties.keys import KeysOf, Uniqueness
from headrace.algebra.relations import Filter, Relation
from headrace.algebra.schema import Column
from headrace.algebra.tree import sources, transform
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.derive import companion_types, full_program
from headrace.compiler.maintainability import TypesOf
from headrace.ivm.query_root import root_of
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.optimizer import Optimizer
from headrace.optimizer.optimizer_pass import QueryFacts
from headrace.sql.lower import lower
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.column_types import ColumnTypes, asks_for_types, column_types
from headrace.sql.reader.spark_types import by_name

Describe = Callable[[str], tuple[Column, ...]]
"""The analysed schema of a SQL text."""


def compile_tree(
    tree: Relation,
    describe: Describe,
    *,
    query: str,
    ansi: bool,
    keys: KeysOf,
    optimizer: Optimizer,
) -> CompiledView:
    """Compile a query that is algebra already.

    Args:
        tree: The query.
        describe: The analysed schema of a SQL text, by Spark.
        query: The text that it was read from.
        ansi: Whether the query runs in ANSI mode.
        keys: Keys of the sources, as far as known: columns in which no two rows agree.
        optimizer: Runs the passes.
    """
    types_of = types_by(describe)
    found_in = _remembering(types_of)
    facts = QueryFacts(keys, lambda tree: found_in(tree).types)
    rewritten, used_keys = optimizer.query(with_types(tree, types_of), facts)
    views = optimizer.companion(rewritten, facts)
    known = found_in(rewritten)
    if asks_for_types(rewritten, known):
        known = column_types(rewritten, types_of, computed=True)
    own = _own_keys(rewritten, keys, known.types)
    types = {
        **known.beside(_kept_keys(rewritten, views, known.types)).types,
        **companion_types(rewritten, views, lambda node: {c.name: c.type for c in types_of(node)}),
    }
    companion = full_program(rewritten, views, types).companion
    columns = types_of(companion) if companion is not None else None
    # a key that follows from those of sources is as good as these
    rests = bool(used_keys) or (bool(keys) and own != _own_keys(rewritten, {}, known.types))
    read, output, exact = sources(rewritten), types_of(rewritten), known.exact
    return CompiledView(query, read, output, columns, (), rewritten, ansi, types, exact, rests, own, views, optimizer)


def _remembering(types_of: TypesOf) -> Callable[[Relation], ColumnTypes]:
    """Find types of a tree's columns; keep the last answer for passes that change nothing."""
    last: list[tuple[Relation, ColumnTypes]] = []

    def found_in(tree: Relation) -> ColumnTypes:
        if not last or last[0][0] is not tree:
            last[:] = [(tree, column_types(tree, types_of))]
        return last[0][1]

    return found_in


def _kept_keys(tree: Relation, views: AuxiliaryViews, types: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Find the types of keys by the names that they have where groups are kept."""
    for root in (root_of(tree), views.groups, *views.aggregates):
        if root is not None:
            yield from ((name, types.get(key)) for key, name in root.keys)


def _own_keys(tree: Relation, known: KeysOf, types: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(key)) for key in Uniqueness(known, types).keys(tree) if key)


def types_by(describe: Describe) -> TypesOf:
    """Find a relation's column types by Spark, without long conditions, which take it long."""
    return lambda relation: describe(lower(transform(relation, _without_long_condition), by_name))


def _without_long_condition(node: Relation) -> Relation:
    return node.input if isinstance(node, Filter) and len(node.condition.sql) > _LONG else node


_LONG = 10_000
"""Characters of a condition that Spark need not read another time."""
