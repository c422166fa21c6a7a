"""Facts of a tree's node that are computed once: its hash, its columns, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
V = TypeVar("V")


def computed_once(cls: type[T]) -> type[T]:
    """Have nodes keep their hash and columns, and compare by hash first.

    A tree's hash is that of all its nodes, and a join's columns are those of all that is below it: asking every node
    of a tree would be quadratic in the tree's depth. Trees that differ are told apart without looking into them. What
    is below a node is asked before the node, so that no tree is too deep.

    Args:
        cls: The class, a frozen dataclass with `inputs`, and with slots `_hash` and `_columns` that are none of its
            fields.
    """
    equal, columns = cls.__eq__, cls.columns.fget  # type: ignore[attr-defined]

    def same(self: T, other: object) -> Any:
        if self is other:
            return True
        if self.__class__ is not other.__class__:
            return NotImplemented
        return hash(self) == hash(other) and equal(self, other)

    cls.__eq__ = same  # type: ignore[method-assign,assignment]
    cls.__hash__ = kept("_hash", cls.__hash__, hash)  # type: ignore[method-assign,assignment]
    cls.columns = property(kept("_columns", columns, _columns), doc=columns.__doc__)  # type: ignore[attr-defined]
    return cls


def kept(slot: str, compute: Callable[[Any], V], ask: Callable[[Any], object] | None = None) -> Callable[[Any], V]:
    """Return the function that computes a fact of a node once, of the nodes below it first.

    Args:
        slot: Where nodes keep it.
        compute: Gives the fact of a node of which the nodes below have it.
        ask: Has a node of any class keep it; None: the function that is returned does.
    """

    def fact(node: Any) -> V:
        try:
            return getattr(node, slot)  # type: ignore[no-any-return]
        except AttributeError:
            waiting = [each for each in node.inputs if not hasattr(each, slot)]
        while waiting:
            unknown = [each for each in waiting[-1].inputs if not hasattr(each, slot)]
            if unknown:
                waiting += unknown
            else:
                (ask or fact)(waiting.pop())
        value = compute(node)
        object.__setattr__(node, slot, value)
        return value

    return fact


def _columns(node: Any) -> object:
    return node.columns
