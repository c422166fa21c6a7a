"""Compares stored rows as Spark does: NULL = NULL, NaN = NaN, -0.0 = 0.0, also maps.

Spark's grouping and `<=>` do so, but cannot compare maps. A column therefore contributes *key expressions*; two rows
are the same row exactly when all of them are equal in Spark's sense. Which of two rows that differ only in the sign of
a zero is deleted is therefore open, as it is in Spark's own `DISTINCT` and `EXCEPT ALL`. Stream tables store zeros
without a sign; mirrors have them as they are, and what is done to them tells such rows `apart`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.algebra.properties.order import equal_means_same, told_apart
from headrace.algebra.schema import Column
from headrace.algebra.types import divided, mentions
from headrace.names import WEIGHT, quote

_INCOMPARABLE = ("variant", "geometry", "geography", "interval", "void")


def incomparable(columns: Iterable[Column]) -> tuple[str, ...]:
    """Return names of the columns whose values Spark cannot compare, such as variant."""
    return tuple(c.name for c in columns if mentions(c.type, *_INCOMPARABLE))


def key_expressions(column: Column, alias: str | None = None) -> tuple[str, ...]:
    """Return SQL expressions whose equality (NULL-safe) is equality of the column's value.

    Args:
        column: The column; not an incomparable one.
        alias: Table alias the column is read from.
    """
    value = f"{alias}.{quote(column.name)}" if alias else quote(column.name)
    if "map<" in column.type:
        # JSON text would lose types; sorted entries compare as arrays of structs do.
        return (_ordered(value, column.type),)
    return (value,)


def _ordered(value: str, type_: str, depth: int = 0) -> str:
    """Return an orderable stand-in for a nested value: maps as sorted arrays of entries."""
    kind, inner = divided(type_)
    name = f"x{depth}"
    if kind == "map":
        key, item = inner
        entry = f"struct({_ordered(f'{name}.key', key, depth + 1)}, {_ordered(f'{name}.value', item, depth + 1)})"
        return f"array_sort(transform(map_entries({value}), {name} -> {entry}))"
    if kind == "array":
        return f"transform({value}, {name} -> {_ordered(name, inner[0], depth + 1)})"
    if kind == "struct":
        names = (field.split(":", 1) for field in inner)
        parts = ", ".join(_ordered(f"{value}.{quote(n.strip('`'))}", t, depth + 1) for n, t in names)
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct({parts}) END"
    return value


def consolidate(source: str, columns: Sequence[Column], *, weight: str = quote(WEIGHT), apart: bool = False) -> str:
    """Return a query that adds up the weights of identical rows.

    Args:
        source: A query giving `columns` and whatever `weight` reads.
        columns: The columns, all comparable.
        weight: Expression of a row's weight.
        apart: Whether rows are different whose values are equal and not the same, such as zeros of both signs.
    """
    loose = frozenset(c.name for c in columns if not equal_means_same(c.type))
    # Grouping by a float would return 0.0 for -0.0, and by a map's stand-in no map: take any of the equal values.
    shown = [f"any_value({quote(c.name)}) AS {quote(c.name)}" if c.name in loose else quote(c.name) for c in columns]
    total = f"sum({weight})"
    grouping = ", ".join(row_key(columns, apart=apart))
    return (
        f"SELECT {', '.join((*shown, f'{total} AS {quote(WEIGHT)}'))} FROM ({source})"
        f"{f' GROUP BY {grouping}' if grouping else ''} HAVING {total} <> 0"
    )


def row_key(columns: Sequence[Column], alias: str | None = None, *, apart: bool = False) -> list[str]:
    """Return SQL expressions whose equality (NULL-safe) is equality of rows."""
    keys = [e for c in columns for e in key_expressions(c, alias)]
    return [*keys, *_apart(columns, alias)] if apart else keys


def _apart(columns: Sequence[Column], alias: str | None) -> list[str]:
    """Return SQL that tells equal values of some columns apart that are not the same."""
    prefix = f"{alias}." if alias else ""
    return [told_apart(prefix + quote(c.name), c.type) for c in columns if not equal_means_same(c.type)]


def same(columns: Sequence[Column], left: str, right: str, *, apart: bool = False) -> str:
    """Return a condition that is true exactly when two rows agree in all `columns`.

    `=` where no NULL is possible. What tells equal values apart is no key that Spark joins by: it is asked of few rows.
    """
    terms = []
    for column in columns:
        pairs = zip(key_expressions(column, left), key_expressions(column, right), strict=True)
        for place, (a, b) in enumerate(pairs):
            terms.append(f"{a} {'<=>' if column.nullable or place else '='} {b}")
    if apart:
        terms += not_apart(columns, left, right)
    return " AND ".join(terms) or "TRUE"


def not_apart(columns: Sequence[Column], left: str, right: str) -> list[str]:
    """Return conditions that equal values of two rows are the same."""
    pairs = zip(_apart(columns, left), _apart(columns, right), strict=True)
    return [f"coalesce({a} = {b}, true)" for a, b in pairs]
