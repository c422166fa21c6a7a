"""Hashes of trees, computed once per node."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def hashed_once(cls: type[T]) -> type[T]:
    """Have instances of a frozen dataclass keep their hash.

    A tree's hash is that of all its nodes: without it, asking for the hash of every node of a tree, as looking for
    common parts does, is quadratic in the tree's depth.

    Args:
        cls: The class, with a slot `_hash` that is none of its fields.
    """
    computed = cls.__hash__

    def kept(self: T) -> int:
        try:
            return self._hash  # type: ignore[attr-defined,no-any-return]
        except AttributeError:
            value = computed(self)
            object.__setattr__(self, "_hash", value)
            return value

    cls.__hash__ = kept  # type: ignore[method-assign,assignment]
    return cls
