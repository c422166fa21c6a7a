"""Refines orders that leave ties, so that a query becomes a function of its sources.

Rows are ordered further by a key of theirs, or by all columns in which rows that tie may differ: rows that agree in
these are the same. That is one of the results that SQL allows. What the refined text means is judged by reading it
again, like any other text; nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from headrace.algebra.properties.order import equal_means_same, is_float
from headrace.algebra.types import mentions
from headrace.errors import Place
from headrace.sql.reader.context import OrderClause
from headrace.sql.reader.functions.ties import LooseOrder
from headrace.sql.reader.reader import Reading
from headrace.sql.refinements import Refinement


def candidates(reading: Reading, loose: Sequence[LooseOrder]) -> Iterator[tuple[Refinement, ...]]:
    """Yield what may be written into a query's text so that its orders leave no ties.

    First by what is certain whatever its sources hold: a key that follows from the query, else by columns; then by
    keys of the sources, which may be taken back.

    Args:
        reading: The query as read.
        loose: Its orders that leave ties.
    """
    certain = [each if each.own_keys is None else replace(each, keys=each.own_keys) for each in loose]
    yield from filter(None, dict.fromkeys((_refinements(reading, certain), _refinements(reading, loose))))


def _refinements(reading: Reading, loose: Iterable[LooseOrder]) -> tuple[Refinement, ...]:
    """Return how all orders are refined; nothing where one of them cannot be."""
    found: dict[Place, tuple[str, OrderClause, dict[str, str]]] = {}
    for each in loose:
        place = each.refusal.place
        clause = reading.orders.get(place) if place is not None else None
        terms = _terms(each, clause) if clause is not None else None
        if place is None or clause is None or not terms:
            return ()
        # what is read several times may need more in one place than in another
        found.setdefault(place, (each.refusal.construct, clause, {}))[2].update(terms)
    return tuple(_refinement(*each) for each in found.values())


def _refinement(construct: str, clause: OrderClause, terms: dict[str, str]) -> Refinement:
    text = f"{clause.before}{', '.join(terms)}{clause.after}"
    by = tuple(each.replace("`", "") for each in terms.values())
    return Refinement(clause.at, clause.removed, text, construct, by)


def _terms(loose: LooseOrder, clause: OrderClause) -> dict[str, str] | None:
    """Return by what rows are ordered further, with how people call it.

    None where nothing tells them apart.
    """
    for key in sorted(loose.keys, key=lambda key: (len(key - loose.told), sorted(key))):
        if key - loose.told and key - loose.told <= clause.terms.keys():
            names = [column.name for column in loose.rows if column.name in key - loose.told]
            return {clause.terms[name]: clause.values.get(name, clause.terms[name]) for name in names}
    missing = loose.missing or frozenset(column.name for column in loose.rows)
    if not missing <= {column.name for column in loose.rows}:
        return None
    terms = dict(_of_values(loose, missing, clause))
    return terms if len(terms) == len(missing) else None


def _of_values(loose: LooseOrder, missing: frozenset[str], clause: OrderClause) -> Iterator[tuple[str, str]]:
    for column in loose.rows:
        name = column.name
        if name not in missing:
            continue
        if is_float(column.type) and name in clause.values:
            text = f"CAST({clause.values[name]} AS STRING)"
            yield text, text
        elif equal_means_same(column.type) and not mentions(column.type, "interval") and name in clause.terms:
            yield clause.terms[name], clause.values.get(name, clause.terms[name])
