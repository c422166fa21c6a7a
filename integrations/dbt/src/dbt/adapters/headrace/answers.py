"""Results of statements: rows of Spark's, or records of Headrace's own statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headrace.spark.errors import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[Any, ...]


class Column(NamedTuple):
    """A column of a result.

    Args:
        name: Its name.
        type: Spark's type.
        nullable: Whether it may hold NULL.
    """

    name: str
    type: str
    nullable: bool = True


class Answer(Protocol):
    """The result of a statement."""

    def columns(self) -> Sequence[Column]:
        """Return its columns."""

    def rows(self, limit: int | None = None) -> list[Row]:
        """Return its rows, or the first ones.

        Raises:
            HeadraceError: Computing them failed.
        """


class FrameAnswer:
    """Rows that Spark computes when they are asked for.

    Args:
        frame: The DataFrame.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def columns(self) -> Sequence[Column]:
        """Return the columns."""
        return [Column(f.name, f.dataType.simpleString(), f.nullable) for f in self._frame.schema.fields]

    def rows(self, limit: int | None = None) -> list[Row]:
        """Return the rows."""
        with translated():
            found = self._frame.collect() if limit is None else self._frame.take(limit)
            return [tuple(row) for row in found]


class PlainAnswer:
    """Rows that are there.

    Args:
        columns: Their columns.
        rows: The rows.
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        self._columns, self._rows = columns, rows

    def columns(self) -> Sequence[Column]:
        """Return the columns."""
        return self._columns

    def rows(self, limit: int | None = None) -> list[Row]:
        """Return the rows."""
        return list(self._rows[:limit])


def answer_of(result: Any) -> Answer:
    """Return what a statement gave as an answer: a DataFrame, records, a text or nothing."""
    if hasattr(result, "collect"):
        return FrameAnswer(result)
    several = [] if result is None else result if isinstance(result, list | tuple) else [result]
    records = [
        one if isinstance(one, dict) else one.as_dict() if hasattr(one, "as_dict") else {"result": one}
        for one in several
    ]
    names = [Column(name, "string") for name in records[0]] if records else []
    return PlainAnswer(names, [tuple(_plain(value) for value in record.values()) for record in records])


def records(answer: Answer) -> list[Mapping[str, Any]]:
    """Return the rows of an answer by the names of its columns."""
    names = [column.name for column in answer.columns()]
    return [dict(zip(names, row, strict=True)) for row in answer.rows()]


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
