"""Subqueries in ON.

Rows that are joined are few pairs of many, so an inner join's conditions with subqueries are conditions of WHERE over
its pairs. Beside other joins a subquery that reads outer columns of one side only (or of none) becomes columns of that
side, and the condition reads these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.algebra.relations import Relation
from headrace.sql.reader.context import Context
from headrace.sql.reader.names.scope import Scope
from headrace.sql.reader.refusals import Refusal, not_maintained
from headrace.sql.reader.scalars.booleans import conjuncts, has_subquery
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, in_brackets

Side = tuple[Relation, Scope]
Read = Callable[[Context, Side, Lexemes], tuple[Relation, Lexemes]]
"""Gives a side columns for the subqueries of a condition, and the condition over them."""

ONE_SIDE = "A subquery in ON is maintained when it reads outer columns of one side only, or in an inner join."


def told_apart(lexemes: Lexemes) -> tuple[Lexemes, list[Lexemes]]:
    """Return a condition without its conjuncts that hold subqueries, and these."""
    parts = conjuncts(lexemes)
    kept: list[Lexeme] = []
    for part in parts:
        if not has_subquery(part):
            kept += [*([_and(part)] if kept else []), *in_brackets(part)]
    return tuple(kept), [part for part in parts if has_subquery(part)]


def on_sides(
    context: Context, left: Side, right: Side, parts: list[Lexemes], read: Read
) -> tuple[Relation, Relation, Lexemes]:
    """Return both sides with columns for the subqueries, and the condition over these.

    Args:
        context: The text.
        left: The left side.
        right: The right side.
        parts: Conditions with subqueries.
        read: Reads one over one side.
    """
    sides = [_beside(right, left), _beside(left, right)]
    out: list[Lexeme] = []
    for part in parts:
        refusals: list[Refusal] = []
        for i, side in enumerate(sides):
            trial = context.trial()
            relation, lexemes = read(trial, side, part)
            if trial.findings.refusals or trial.findings.doubts:
                refusals += trial.findings.refusals
                continue
            context.read_ctes.update(trial.read_ctes)
            sides[i] = (relation, side[1])
            out += [*([_and(part)] if out else []), *in_brackets(lexemes)]
            break
        else:
            lexeme = next(lexeme for lexeme in part if lexeme.role is Role.SUBQUERY)
            own = not_maintained(f"{lexeme.parts[0]} in ON", context.place_of(lexeme.at), ONE_SIDE)
            context.findings.refusals.extend(refusals or [own])
    return sides[1][0], sides[0][0], tuple(out)


def _beside(side: Side, other: Side) -> Side:
    """Return a side in which names that the other has too are known with their qualifier only."""
    relation, scope = side
    shown = [c.name for c in other[1].columns if not c.hidden]
    twice = (replace(c, hidden=c.hidden or any(scope.same(c.name, name) for name in shown)) for c in scope.columns)
    return relation, replace(scope, columns=tuple(twice))


def both(a: Lexemes, b: Lexemes) -> Lexemes:
    """Return two conditions that must both hold; either may be empty."""
    return (*a, _and(b), *b) if a and b else a or b


def _and(like: Lexemes) -> Lexeme:
    return Lexeme(Role.OPERATOR, "AND", like[0].at, True)
