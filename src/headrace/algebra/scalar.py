"""Scalars: SQL expressions with extracted facts.

Relations are modelled, scalars are not: a scalar stays the SQL the user wrote (Spark dialect, column references
reduced to back-quoted names of the input relation), next to the facts the algebra needs about it.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.names import quote


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar expression over the columns of one relation.

    Args:
        sql: The expression in Spark SQL; every column reference is one back-quoted name of the input relation.
        columns: The input columns it reads.
        deterministic: False when two evaluations over the same row may differ.
    """

    sql: str
    columns: frozenset[str] = frozenset()
    deterministic: bool = True

    def __str__(self) -> str:
        return self.sql


def column(name: str) -> Scalar:
    """The scalar that reads one column."""
    return Scalar(quote(name), frozenset({name}))


def literal(value: int) -> Scalar:
    """An integer literal."""
    return Scalar(str(value))
