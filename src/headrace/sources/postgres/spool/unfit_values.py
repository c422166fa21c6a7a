"""Finds values that the mirror's types cannot hold, before Spark does, and names their rows.

Where changes are rows that came and rows that went, a row that was corrected or deleted meanwhile is among both.
Written alike, they cancel, so that the mirror need not hold such a row at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import EnvironmentFault
from headrace.sources.postgres.remote_tables import RemoteColumn, RemoteTable
from headrace.sources.postgres.spool.landing_sql import WEIGHED
from headrace.sources.postgres.type_mapping import place_of

if TYPE_CHECKING:
    import pyarrow as pa

_ENDLESS = ("infinity", "-infinity")
BEYOND: Mapping[str, Sequence[str]] = {
    "date": _ENDLESS,
    "timestamp": _ENDLESS,
    "timestamptz": _ENDLESS,
    "numeric": ("NaN", "Infinity", "-Infinity"),
}
"""By type, values that Spark's has no equal for, as PostgreSQL writes them; where the mirror has the text, all fit."""

_MANY = ("{{", "[")
"""Beginnings of arrays of several dimensions, and of those with other bounds."""

_SHOWN = 60
"""Characters of a value that an error shows."""


def checked(table: RemoteTable, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Let batches pass whose values fit.

    Args:
        table: The table.
        batches: Its rows as text.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE`.
    """
    for batch in batches:
        for number, unfit in _unfit(table, batch):
            if (place := unfit.index(True).as_py()) >= 0:
                raise unfit_row(table, number, batch.slice(place, 1).to_pylist()[0])
        yield batch


def without_undone(table: RemoteTable, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave out rows with values that do not fit, where they came and went.

    Args:
        table: The table.
        batches: Its rows as text, with weights.

    Raises:
        EnvironmentFault: `VALUE_NOT_REPRESENTABLE`, after the last batch, for one of those that are left.
    """
    import pyarrow.compute as pc

    weights: Counter[tuple[Any, ...]] = Counter()
    for batch in batches:
        unfit: Any = None
        for _, mask in _unfit(table, batch):
            unfit = mask if unfit is None else pc.or_(unfit, mask)
        if unfit is None or not pc.any(unfit).as_py():
            yield batch
            continue
        for row in batch.filter(unfit).to_pylist():
            weights[tuple(row[place_of(i)] for i in range(len(table.columns)))] += row[WEIGHED]
        yield batch.filter(pc.invert(unfit))
    for values in (values for values, weight in weights.items() if weight):
        row = {place_of(i): value for i, value in enumerate(values)}
        number = next(i for i, c in enumerate(table.columns) if not _fits(c, values[i]))
        raise unfit_row(table, number, row)


def _unfit(table: RemoteTable, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.BooleanArray]]:
    """Yield, for each column that may have values which do not fit, which rows have them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, column in enumerate(table.columns):
        values = batch.column(place_of(number))
        if not pa.types.is_string(values.type):
            continue  # taken apart already
        words = _words(column)
        if column.kept.array:
            found = [pc.starts_with(values, beginning) for beginning in _MANY]
            found += [pc.match_substring(values, word) for word in words]
            unfit = found[0]
            for other in found[1:]:
                unfit = pc.or_(unfit, other)
        elif words:
            unfit = pc.is_in(values, value_set=pa.array(words, pa.string()))
        else:
            continue
        yield number, pc.fill_null(unfit, False)


def _words(column: RemoteColumn) -> Sequence[str]:
    return BEYOND.get(column.element or column.base, ()) if column.kept.expression else ()


def _fits(column: RemoteColumn, value: str | None) -> bool:
    if value is None:
        return True
    if column.kept.array:
        return not value.startswith(_MANY) and not any(word in value for word in _words(column))
    return value not in _words(column)


def unfit_row(table: RemoteTable, number: int, row: Mapping[str, Any]) -> EnvironmentFault:
    """Return the error for a value that its mirror cannot hold.

    Args:
        table: The table.
        number: The place of the value's column.
        row: The row as text, by the names of columns in files.
    """
    column, value = table.columns[number], str(row[place_of(number)])
    places = {c.name: place_of(i) for i, c in enumerate(table.columns)}
    key = ", ".join(f"{name} = {_cut(str(row[places[name]]))}" for name in table.key if name in places)
    where = f" in the row with {key}" if key else ""
    return EnvironmentFault(
        "VALUE_NOT_REPRESENTABLE",
        f"Column {column.name} of {table} has the value {_cut(value)}{where}, which the mirror's {column.kept.type} "
        "cannot hold; nothing was landed.",
        hint="Correct the value, or delete its row, and try again: what was written meanwhile does not matter then. To "
        f"keep such values, create the source again with TEXT COLUMNS ({table}.{column.name}).",
    )


def _cut(value: str) -> str:
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
