"""Delete and rederive: removes rows that may have lost support, then restores the others.

Let T = A ⊎ S(T) be the recursion, A′ and S′ its start and its step after the change. S takes each row by itself, so a
step is a bag of pairs (x, y): y follows from x. Let M be the pairs that are there more or less often than before, for
some x of T, and S∘ the step without any of M: what S and S′ have in common, as far as rows of T are concerned.

Overdelete: D = A⁻ ⊎ (S(T) ⋉ M) ⊎ S∘(D), the rows that rest on a start or a pair that changed, so that T∘ = T − D is the
recursion over what stayed. Rederive and insert: I = A⁺ ⊎ (S′(T∘) ⋉ M) ⊎ S′(I). Then T′ = T∘ ⊎ I and ΔT = I − D.
D is within T, so it ends where T did, whatever cycles the change brings; and where T′ has no end, I has none.
Copies are counted throughout: a row that several ways lead to loses those that are gone.
Source: Gupta, Mumick, Subrahmanian, Maintaining Views Incrementally, SIGMOD 1993 (delete and rederive).
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.algebra.relations import (
    Empty,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Repeat,
    Round,
    SemiJoin,
    Stored,
    Union,
)
from headrace.algebra.scalar import column
from headrace.algebra.tree import identity, walk
from headrace.errors import InternalError
from headrace.ivm.change import Change, empty, union_all, weigh
from headrace.ivm.consolidate import consolidate
from headrace.ivm.split_change import delete_rows, insert_rows
from headrace.names import RESERVED_PREFIX


def rederived(recursive: Recursive, known: Relation, change: Change) -> Relation:
    """Return the change of a recursion's rows, weighted; not consolidated.

    Args:
        recursive: The recursion.
        known: Its rows as they were.
        change: Keeps what is computed once.
    """
    pairs = _Pairs(recursive)
    starts = _kept("started", consolidate(change.of(recursive.start)), change)
    turned = _kept("turned", consolidate(change.of(pairs.over(known))), change)
    lost = _lost(pairs, known, starts, turned, change)
    came = _came(pairs, known, starts, turned, lost, change)
    return union_all(
        *(empty(rows) if isinstance(rows, Empty) else weigh(rows, w) for rows, w in ((came, 1), (lost, -1)))
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A recursion's step as pairs: each derived row beside the row it is derived from."""

    recursive: Recursive

    @property
    def origin(self) -> tuple[tuple[str, str], ...]:
        """Return pairs (column of a row, column that shows it beside what follows)."""
        return tuple((name, f"{RESERVED_PREFIX}from_{i}") for i, name in enumerate(self.recursive.columns))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of a pair."""
        return (*self.recursive.columns, *(name for _, name in self.origin))

    def over(self, rows: Relation | None = None) -> Relation:
        """Return rows derived from some rows, or from those of a round if none are given."""
        return Project(self._of(self.recursive.again, rows), identity(self.columns))

    def _of(self, node: Relation, rows: Relation | None) -> Relation:
        beside = identity(tuple(name for _, name in self.origin))
        match node:
            case Round():
                shown = tuple((name, column(source)) for source, name in self.origin)
                return Project(rows or node, (*identity(node.columns), *shown))
            case Project():
                return Project(self._of(node.input, rows), (*node.items, *beside))
            case Filter() | Generate():
                return node.with_inputs(self._of(node.inputs[0], rows))
            case Union():
                names = tuple(name for name, _ in beside)
                branches = ((each.columns, self._of(each, rows)) for each in node.branches)
                return Union(tuple(Project(paired, identity((*own, *names))) for own, paired in branches))
            case Join() | OuterJoin() | Existence():
                return node.with_inputs(*(self._of(s, rows) if self._reads(s) else s for s in node.inputs))
        raise InternalError("PLAN_INVALID", f"A step takes no row by itself through {type(node).__name__}.")

    def _reads(self, side: Relation) -> bool:
        return any(isinstance(node, Round) and node.name == self.recursive.name for node in walk(side))


def _lost(pairs: _Pairs, known: Relation, starts: Relation, turned: Relation, change: Change) -> Relation:
    """Return D: the rows that rest on what is gone or changed."""
    recursive = pairs.recursive
    first = delete_rows(starts) if isinstance(starts, Stored) else empty(recursive)
    again = change.after(recursive.again)
    if isinstance(turned, Stored):
        before = change.before(pairs.over(_turning(pairs, known, turned, change)))
        first = union_all(_followers(pairs, _among(pairs, before, turned)), first)
        again = _followers(pairs, _among(pairs, change.after(pairs.over()), turned, anti=True))
    return _rounds("lost", "losing", recursive, first, again, change)


def _came(
    pairs: _Pairs, known: Relation, starts: Relation, turned: Relation, lost: Relation, change: Change
) -> Relation:
    """Return I: the rows that rest on what came, or on another part of what changed."""
    recursive = pairs.recursive
    first = insert_rows(starts) if isinstance(starts, Stored) else empty(recursive)
    if isinstance(turned, Stored):
        stayed = weigh(_turning(pairs, known, turned, change), 1)
        gone = empty(recursive) if isinstance(lost, Empty) else weigh(SemiJoin(lost, turned, pairs.origin), -1)
        left = Repeat(consolidate(union_all(stayed, gone)))
        turning = change.keep("turning", Project(left, identity(recursive.columns)), only_if=turned)
        after = change.after(pairs.over(turning))
        first = union_all(_followers(pairs, _among(pairs, after, turned)), first)
    return _rounds("came", "coming", recursive, first, change.after(recursive.again), change)


def _turning(pairs: _Pairs, known: Relation, turned: Stored, change: Change) -> Stored:
    """Return the rows from which something else follows now."""
    return change.keep("turning", SemiJoin(known, turned, pairs.origin), only_if=turned)


def _among(pairs: _Pairs, rows: Relation, turned: Stored, *, anti: bool = False) -> Relation:
    return SemiJoin(rows, turned, tuple((name, name) for name in pairs.columns), anti)


def _followers(pairs: _Pairs, rows: Relation) -> Relation:
    return Project(rows, identity(pairs.recursive.columns))


def _rounds(
    name: str, start_name: str, recursive: Recursive, first: Relation, again: Relation, change: Change
) -> Relation:
    """Return everything derived from some rows, by rounds; empty if there are none."""
    if isinstance(first, Empty):
        return first
    seeds = change.keep(start_name, Project(first, identity(recursive.columns)))
    rounds = Recursive(seeds, again, recursive.name, recursive.levels)
    return change.keep(name, rounds, only_if=seeds)


def _kept(name: str, relation: Relation, change: Change) -> Relation:
    return relation if isinstance(relation, Empty) else change.keep(name, relation)
