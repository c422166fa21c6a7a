"""Walking and rebuilding trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.algebra.hashing import kept
from headrace.algebra.relations import Moment, Relation, Scan
from headrace.algebra.scalar import Scalar, column
from headrace.names import WEIGHT, TableName


def walk(relation: Relation) -> Iterator[Relation]:
    """Yield every node, a node before its inputs; one that is there several times each time."""
    waiting = [relation]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.inputs))


def nodes(relation: Relation) -> Iterator[Relation]:
    """Yield every object of a tree once, a node before its inputs.

    Parts of a tree may be one object.
    """
    seen: set[int] = set()
    waiting = [relation]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(node.inputs))


def inputs_first(relation: Relation) -> list[Relation]:
    """Return every object of a tree once, after all of its inputs."""
    found: dict[int, Relation] = {}
    waiting = [relation]
    while waiting:
        node = waiting[-1]
        if id(node) not in found:
            unknown = [each for each in node.inputs if id(each) not in found]
            if unknown:
                waiting += reversed(unknown)
                continue
            found[id(node)] = node
        waiting.pop()
    return list(found.values())


def transform(
    relation: Relation, rule: Callable[[Relation], Relation], known: dict[int, tuple[Relation, Relation]] | None = None
) -> Relation:
    """Apply a rule to every node, inputs first; to an object that is there several times once.

    So what shares its parts still does.

    Args:
        relation: The tree.
        rule: The rule; a function of the node alone.
        known: What has become of nodes of other trees by the same rule, by id, with the node, which keeps its id its
            own; gets those of this tree.
    """
    known = {} if known is None else known
    waiting = [relation]
    while waiting:
        node = waiting[-1]
        if id(node) not in known:
            inputs = node.inputs
            unknown = [each for each in inputs if id(each) not in known] if inputs else inputs
            if unknown:
                waiting += unknown
                continue
            known[id(node)] = (node, rule(over(node, *[known[id(each)][1] for each in inputs]) if inputs else node))
        waiting.pop()
    return known[id(relation)][1]


def over(relation: Relation, *inputs: Relation) -> Relation:
    """Return the same operator over other inputs; itself where these are its own."""
    for new, old in zip(inputs, relation.inputs, strict=True):
        if new is not old:  # identity, not equality: comparing trees at every level would make a walk quadratic
            return relation.with_inputs(*inputs)
    return relation


def _sources(node: Relation) -> tuple[TableName, ...]:
    if isinstance(node, Scan):
        return (node.source,)
    return tuple(dict.fromkeys(name for each in node.inputs for name in sources(each)))


_kept_sources = kept("_sources", _sources)


def sources(relation: Relation) -> tuple[TableName, ...]:
    """Return the tables a tree reads, each once, in order of appearance."""
    return _kept_sources(relation)


def _whole_sources(node: Relation) -> tuple[TableName, ...]:
    if isinstance(node, Scan):
        return () if node.moment is Moment.CHANGE else (node.source,)
    return tuple(dict.fromkeys(name for each in node.inputs for name in _kept_whole_sources(each)))


_kept_whole_sources = kept("_whole_sources", _whole_sources)


def whole_sources(relation: Relation) -> tuple[TableName, ...]:
    """Return the tables whose contents a tree reads, and not only their changes, each once."""
    return _kept_whole_sources(relation)


def _size(node: Relation) -> int:
    return 1 + sum(map(_kept_size, node.inputs))


_kept_size = kept("_size", _size)


def size(relation: Relation) -> int:
    """Return the number of nodes that a walk meets."""
    return _kept_size(relation)


def at(
    relation: Relation,
    moment: Moment,
    changed: frozenset[TableName],
    known: dict[int, tuple[Relation, Relation]] | None = None,
) -> Relation:
    """Return the same query over its sources at a moment.

    Args:
        relation: The query.
        moment: Before or after the change.
        changed: The sources that changed; the others are the same at any moment.
        known: As of `transform`.
    """

    def move(node: Relation) -> Relation:
        if isinstance(node, Scan) and node.source in changed:
            return Scan(node.source, node.fields, moment)
        return node

    return transform(relation, move, known)


def identity(columns: tuple[str, ...]) -> tuple[tuple[str, Scalar], ...]:
    """Return projection items that keep columns as they are."""
    return tuple((name, column(name)) for name in columns)


def unweighted(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns without the weight."""
    return tuple(name for name in columns if name != WEIGHT)
