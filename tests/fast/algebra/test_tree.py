"""Walking and rebuilding trees that are deep, or whose parts are one object."""

from __future__ import annotations

from headrace.algebra.relations import Filter, Relation, Scan, Union
from headrace.algebra.scalar import TRUE
from headrace.algebra.tree import inputs_first, nodes, sources, transform, walk
from headrace.names import TableName

LEVELS = 5_000


def scan(name: str = "t") -> Scan:
    return Scan(TableName("lake", ("s",), name), (("a", "a"),))


def deep() -> Relation:
    found: Relation = scan()
    for _ in range(LEVELS):
        found = Filter(found, TRUE)
    return found


def doubled(times: int) -> Relation:
    """A tree of 2**times leaves, made of as many objects as it has levels."""
    found: Relation = scan()
    for _ in range(times):
        found = Union((found, found))
    return found


def test_no_tree_is_too_deep() -> None:
    one, other = deep(), deep()
    assert hash(one) == hash(other)
    assert one.columns == ("a",)
    assert sources(one) == (scan().source,)
    assert transform(one, lambda node: node) is one
    assert isinstance(transform(one, lambda node: scan("u") if isinstance(node, Scan) else node), Filter)


def test_what_is_one_object_is_looked_at_once_and_stays_one() -> None:
    tree, asked = doubled(40), list[Relation]()

    def rule(node: Relation) -> Relation:
        asked.append(node)
        return scan("u") if isinstance(node, Scan) else node

    found = transform(tree, rule)
    assert len(asked) == 41
    assert len(list(nodes(found))) == len(inputs_first(found)) == 41
    assert hash(found) == hash(transform(tree, rule))
    assert sources(found) == (scan("u").source,)


def test_a_walk_meets_what_is_there_twice_twice() -> None:
    assert len(list(walk(doubled(3)))) == 15
    assert inputs_first(doubled(3))[0] == scan()


def test_trees_that_differ_are_not_equal() -> None:
    assert deep() != Filter(deep(), TRUE)
    assert scan("t") == scan("t") != scan("u")
    assert scan("t") != "t"
