"""Tells which columns a SELECT block sees, and what a dotted name means there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that names may refer to.

    Args:
        qualifier: What may stand before it: the alias, or the parts of the table's full name.
        name: Its own name.
        internal: The column of the relation.
        hidden: Reached with its qualifier only: the right side's column of USING.
        added: Reached by its name, but no part of `*`: the block's time window.
    """

    qualifier: tuple[str, ...]
    name: str
    internal: str
    hidden: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A resolved column, and how many parts of the name it took; others are fields."""

    column: Visible
    parts: int


class AmbiguousNameError(Exception):
    """A name that means several columns."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of a FROM clause.

    Args:
        columns: In the order of `SELECT *`, hidden ones last.
        case_sensitive: Whether names differ by case.
        opaque: Whether more columns may exist than are known, after a refused construct.
    """

    columns: tuple[Visible, ...]
    case_sensitive: bool
    opaque: bool = False
    _named: dict[str, list[Visible]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named: dict[str, list[Visible]] = {}
        for column in self.columns:
            named.setdefault(self._folded(column.name), []).append(column)
        object.__setattr__(self, "_named", named)

    def resolve(self, parts: tuple[str, ...]) -> Found | None:
        """Resolve a name: the longest qualifier that fits wins, as in Spark.

        Raises:
            AmbiguousNameError: Several columns fit equally well.
        """
        for length in range(len(parts) - 1, -1, -1):
            qualifier, name = parts[:length], parts[length]
            same = self._named.get(self._folded(name), ())
            fitting = [c for c in same if (qualifier or not c.hidden) and self.qualified(c, qualifier)]
            if len(fitting) > 1:
                raise AmbiguousNameError(".".join(parts))
            if fitting:
                return Found(fitting[0], length + 1)
        return None

    def knows(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name means something, be it several columns."""
        try:
            return self.resolve(parts) is not None
        except AmbiguousNameError:
            return True

    def has_column(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name means one column, and not a field of one."""
        try:
            found = self.resolve(parts)
        except AmbiguousNameError:
            return False
        return found is not None and found.parts == len(parts)

    def qualified(self, column: Visible, qualifier: tuple[str, ...]) -> bool:
        """Return whether a qualifier as written selects the column."""
        if len(qualifier) > len(column.qualifier):
            return False
        own = column.qualifier[len(column.qualifier) - len(qualifier) :]
        return all(self.same(a, b) for a, b in zip(own, qualifier, strict=True))

    def same(self, a: str, b: str) -> bool:
        """Return whether two identifiers are the same."""
        return a == b or self._folded(a) == self._folded(b)

    def _folded(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    def star(self, qualifier: tuple[str, ...] = ()) -> tuple[Visible, ...] | None:
        """Return the columns of `*` or `qualifier.*`; None where the order is not certain."""
        if not qualifier:
            return tuple(c for c in self.columns if not c.hidden and not c.added)
        fitting = tuple(c for c in self.columns if self.qualified(c, qualifier))
        return None if not fitting or any(c.hidden for c in fitting) else fitting

    def beside(self, other: Scope) -> Scope:
        """Return both scopes, as after a join."""
        shown = [c for c in (*self.columns, *other.columns) if not c.hidden]
        hidden = [c for c in (*self.columns, *other.columns) if c.hidden]
        return replace(self, columns=(*shown, *hidden), opaque=self.opaque or other.opaque)

    def merged(self, other: Scope, pairs: tuple[tuple[Visible, Visible], ...]) -> Scope:
        """Merge scopes after USING: common columns once and first, right copies hidden."""
        left_keys = [left for left, _ in pairs]
        right_keys = [right for _, right in pairs]
        left = [c for c in self.columns if c not in left_keys and not c.hidden]
        right = [c for c in other.columns if c not in right_keys and not c.hidden]
        hidden = [c for c in (*self.columns, *other.columns) if c.hidden]
        hidden += [replace(c, hidden=True) for c in right_keys]
        return replace(self, columns=(*left_keys, *left, *right, *hidden), opaque=self.opaque or other.opaque)
