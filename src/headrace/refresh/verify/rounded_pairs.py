"""Pairs missing and unexpected rows that differ only in the last digits of floats.

Spark does so, however many there are. Rows of one bucket agree in all other columns. Within it, rows whose floats
follow each other closely are a chain; there both sides are laid side by side in the order of their floats, copy by
copy. What lies beside each other is a pair if it is close in fact, so that chains only decide what is looked at: where
a row has no counterpart, it shifts none but those of its own chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.algebra.schema import Column
from headrace.names import WEIGHT, quote

RELATIVE_TOLERANCE = "1e-9D"
"""Floating-point sums depend on the order of addition, which Spark does not fix; so far apart they may be."""

PAIRED = "paired"
"""The column with how many pairs a row of `without_pairs` stands for; its sum is the number of pairs."""


def floats(columns: Sequence[Column]) -> tuple[int, ...]:
    """Return places of the columns whose last digits may differ."""
    return tuple(i for i, c in enumerate(columns) if c.type.lower() in ("double", "float"))


def without_pairs(difference: str, columns: Sequence[Column]) -> str:
    """Return a query of a difference's rows, weighted by copies without a counterpart.

    `PAIRED` comes last.

    Args:
        difference: A view of weighted rows, each once; its columns can be grouped by.
        columns: Its columns without the weight; some are floats.
    """
    places = floats(columns)
    steps = list(_steps(difference, columns, places))
    named = ",\n".join(f"{name} AS ({sql})" for name, sql in steps)
    shown = ", ".join(f"c{i} AS {quote(c.name)}" for i, c in enumerate(columns))
    sign, paired = "CASE WHEN missing THEN 1 ELSE -1 END", "CASE WHEN missing THEN of_missing ELSE of_unexpected END"
    left = f"{sign} * (copies - {paired}) AS {quote(WEIGHT)}"
    return f"WITH {named}\nSELECT {shown}, {left}, {PAIRED} FROM {steps[-1][0]}"


def _steps(difference: str, columns: Sequence[Column], places: Sequence[int]) -> Iterator[tuple[str, str]]:
    items = ", ".join(f"{quote(c.name)} AS c{i}" for i, c in enumerate(columns))
    weight = quote(WEIGHT)
    yield (
        "differing",
        f"SELECT {items}, abs({weight}) AS copies, {weight} > 0 AS missing FROM {quote(difference)}",
    )
    bucket, before = [f"c{i}" for i in range(len(columns)) if i not in places], "differing"
    for i in places:
        window = f"OVER ({_by(bucket)} ORDER BY c{i})"
        yield f"followed{i}", f"SELECT *, lag(c{i}) {window} AS previous{i} FROM {before}"
        # peers of one value are of one chain whatever their order, as the sum is over all of them
        begins = f"CASE WHEN {_close(f'previous{i}', f'c{i}')} THEN 0 ELSE 1 END"
        yield f"chained{i}", f"SELECT *, sum({begins}) {window} AS chain{i} FROM followed{i}"
        bucket, before = [*bucket, f"chain{i}"], f"chained{i}"
    order = ", ".join(f"c{i}" for i in places)
    above = f"OVER ({_by([*bucket, 'missing'])} ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    yield "placed", f"SELECT *, sum(copies) {above} - copies AS place FROM {before}"
    window = f"OVER ({_by(bucket)} ORDER BY place, missing"
    copy = f"struct(place, place + copies AS after, {order})"
    yield (
        "beside",
        f"SELECT *, lead(place) {window}) AS next_place, "
        f"last_value(CASE WHEN missing THEN {copy} END) IGNORE NULLS {window} ROWS UNBOUNDED PRECEDING) AS here, "
        f"last_value(CASE WHEN NOT missing THEN {copy} END) IGNORE NULLS {window} ROWS UNBOUNDED PRECEDING) AS there "
        "FROM placed",
    )
    until = "least(next_place, here.after, there.after)"  # a next one that is not there counts for nothing
    close = " AND ".join(_close(f"here.c{i}", f"there.c{i}") for i in places)
    both = "here IS NOT NULL AND there IS NOT NULL"
    yield (
        "paired_copies",
        f"SELECT *, CASE WHEN {both} AND {close} THEN greatest({until} - place, 0) ELSE 0 END AS {PAIRED} FROM beside",
    )
    yield (
        "counted",
        f"SELECT *, sum({PAIRED}) OVER ({_by([*bucket, 'here.place'])}) AS of_missing, "
        f"sum({PAIRED}) OVER ({_by([*bucket, 'there.place'])}) AS of_unexpected FROM paired_copies",
    )


def _by(expressions: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(expressions)}" if expressions else ""


def _close(a: str, b: str) -> str:
    """Return a condition that two floats are equal, or within the tolerance of each other.

    NULL and NaN are equal to themselves, and NaN is Spark's largest number; what is infinite is close to nothing else.
    """
    a, b = f"CAST({a} AS DOUBLE)", f"CAST({b} AS DOUBLE)"
    larger = f"greatest(abs({a}), abs({b}))"
    within = f"abs({a} - {b}) <= {RELATIVE_TOLERANCE} * {larger} AND {larger} < double('infinity')"
    return f"({a} <=> {b} OR coalesce({within}, false))"
