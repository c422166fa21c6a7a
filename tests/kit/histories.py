"""Random histories: what happens to tables between refreshes."""

from __future__ import annotations

from hypothesis import strategies as st

from kit.case import Row, Table, Weighted, Window
from kit.values import rows, values


@st.composite
def histories(draw: st.DrawFn, tables: tuple[Table, ...], longest: int = 4) -> tuple[Window, ...]:
    """Windows over tables, each with operations on one or several of them."""
    contents = {table.name: list(table.rows) for table in tables}
    return tuple(_window(draw, tables, contents) for _ in range(draw(st.integers(1, longest))))


def _window(draw: st.DrawFn, tables: tuple[Table, ...], contents: dict[str, list[Row]]) -> Window:
    window: dict[str, list[Weighted]] = {}
    for _ in range(draw(st.integers(1, 4))):
        table = draw(st.sampled_from(tables))
        operation = draw(st.sampled_from(OPERATIONS))
        change = operation(draw, table, contents[table.name])
        window.setdefault(table.name, []).extend(change)
        for weight, row in change:
            contents[table.name].append(row) if weight > 0 else contents[table.name].remove(row)
    return {name: tuple(change) for name, change in window.items()}


def _insert(draw: st.DrawFn, table: Table, present: list[Row]) -> list[Weighted]:
    new = draw(st.lists(rows(table.columns), min_size=1, max_size=3))
    return [(1, row) for row in new]


def _repeat(draw: st.DrawFn, table: Table, present: list[Row]) -> list[Weighted]:
    return [(1, draw(st.sampled_from(present)))] if present else []


def _delete(draw: st.DrawFn, table: Table, present: list[Row]) -> list[Weighted]:
    return [(-1, draw(st.sampled_from(present)))] if present else []


def _update(draw: st.DrawFn, table: Table, present: list[Row]) -> list[Weighted]:
    if not present:
        return []
    old = draw(st.sampled_from(present))
    place = draw(st.integers(0, len(table.columns) - 1))
    new = (*old[:place], draw(values(table.columns[place].type)), *old[place + 1 :])
    return [(-1, old), (1, new)]


def _nothing(draw: st.DrawFn, table: Table, present: list[Row]) -> list[Weighted]:
    """An update that changes nothing."""
    if not present:
        return []
    row = draw(st.sampled_from(present))
    return [(-1, row), (1, row)]


def _swap(draw: st.DrawFn, table: Table, present: list[Row]) -> list[Weighted]:
    """Two rows swap their first columns."""
    if len(present) < 2:
        return []
    one, other = (draw(st.sampled_from(range(len(present)))) for _ in range(2))
    if one == other:
        return []
    first, second = present[one], present[other]
    return [(-1, first), (-1, second), (1, (second[0], *first[1:])), (1, (first[0], *second[1:]))]


def _truncate(draw: st.DrawFn, table: Table, present: list[Row]) -> list[Weighted]:
    """Everything goes, and something comes back."""
    back = draw(st.lists(st.sampled_from(present), max_size=2)) if present else []
    return [(-1, row) for row in present] + [(1, row) for row in back] + _insert(draw, table, [])


OPERATIONS = (_insert, _repeat, _delete, _update, _nothing, _swap, _truncate)
