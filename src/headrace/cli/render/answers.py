"""Results of statements: rows of a DataFrame, or the result of a Headrace statement."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.cli.render import explanation, tables
from headrace.cli.render import format as fmt
from headrace.cli.render.expanded import expanded
from headrace.results.refresh_results import plain_float

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.statements.parsed_statements import Statement

NUMBERS = ("int", "bigint", "smallint", "tinyint", "float", "double", "decimal")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows fetched from Spark.

    Args:
        columns: Names, as Spark gives them; two may be equal.
        types: Spark's type of each.
        values: The rows.
        more: Whether there were more rows than were fetched.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    more: bool

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        rows = [[_plain(value) for value in row] for row in self.values]
        return {"columns": list(self.columns), "types": list(self.types), "rows": rows, "more": self.more}


def fetch(frame: Any, limit: int) -> Rows:
    """Run a DataFrame and take up to `limit` of its rows."""
    columns, types = tuple(frame.columns), tuple(kind for _, kind in frame.dtypes)
    if not columns:
        return Rows((), (), (), False)
    found = frame.limit(limit + 1).collect()
    return Rows(columns, types, tuple(tuple(row) for row in found[:limit]), len(found) > limit)


def is_frame(value: Any) -> bool:
    """Return whether a result is a DataFrame, without importing PySpark."""
    return hasattr(value, "dtypes") and hasattr(value, "collect")


def document(value: Any) -> Any:
    """Return a result as plain JSON values."""
    if isinstance(value, (list, tuple)):
        return [document(item) for item in value]
    return value.as_dict() if hasattr(value, "as_dict") else value


def answer(value: Any, *, lines: bool = False, more: str = "--limit") -> Iterator[RenderableType]:
    """Yield a result for people, by its type.

    Args:
        value: The result.
        lines: Whether each column of a row has a line of its own.
        more: How one is shown more rows.
    """
    from headrace.api.declared_keys import KeyInfo
    from headrace.api.safeguards.gates import GateInfo
    from headrace.api.safeguards.watermarks import WatermarkInfo
    from headrace.cli.render import deployments, keys, safeguards, sinks, sources
    from headrace.deploy.deployment_results import GreenInfo, PromotionResult
    from headrace.results.refresh_results import Explanation, RefreshResult, StreamTableInfo
    from headrace.results.repair_results import RepairResult
    from headrace.results.sink_results import SinkInfo, SinkResult, SinkVerifyResult
    from headrace.results.source_results import LandingResult, SourceInfo

    items: Sequence[Any] = value if isinstance(value, (list, tuple)) else (value,)
    first = items[0] if items else None
    if isinstance(value, str):
        yield fmt.Verbatim(value)
    elif isinstance(value, Rows):
        yield from rows(value, lines=lines, more=more)
    elif isinstance(first, RefreshResult):
        yield from tables.refreshes(items)
    elif isinstance(first, RepairResult):
        yield from tables.repairs(items)
    elif isinstance(first, StreamTableInfo):
        yield from tables.standing(items, dt.datetime.now(dt.UTC))
    elif isinstance(first, LandingResult):
        yield from sources.landings(items)
    elif isinstance(first, SourceInfo):
        yield from sources.listed(items)
    elif isinstance(first, SinkResult):
        yield from sinks.written(items)
    elif isinstance(first, SinkInfo):
        yield from sinks.listed(items)
    elif isinstance(first, SinkVerifyResult):
        yield from sinks.verified(first)
    elif isinstance(first, GateInfo):
        yield from safeguards.gates(items)
    elif isinstance(first, GreenInfo):
        yield from deployments.greens(items)
    elif isinstance(first, PromotionResult):
        yield from deployments.promotion(first)
    elif isinstance(first, KeyInfo):
        yield from keys.keys(items)
    elif isinstance(first, WatermarkInfo):
        yield from safeguards.watermarks(items)
    elif isinstance(first, Explanation):
        yield from explanation.explanation(first)
    elif isinstance(first, str):
        yield ", ".join(items)
    else:
        yield "OK"


def is_nothing(value: Any) -> bool:
    """Return whether a statement found nothing to show, or nothing to do."""
    return value is False or (isinstance(value, (list, tuple)) and not value)


def nothing(statement: Statement) -> Iterator[RenderableType]:
    """Yield for people that a statement found nothing.

    Args:
        statement: The statement, of whose result `is_nothing` holds.
    """
    from headrace.statements.parsed_statements import (
        DropRefreshGroup,
        DropSink,
        DropSource,
        DropStreamTable,
        RefreshStreamTable,
        RepairStreamTable,
        SetGate,
    )

    match statement:
        case RefreshStreamTable():
            yield from tables.refreshes(())
        case RepairStreamTable():
            yield from tables.repairs(())
        case DropStreamTable() | DropSource() | DropSink() | DropRefreshGroup() | SetGate():
            yield "There was none."
        case _:
            yield "There are none."


def rows(found: Rows, *, lines: bool = False, more: str = "--limit") -> Iterator[RenderableType]:
    """Yield rows as a table, or with `lines` as paragraphs."""
    if not found.columns:
        yield "OK"
        return
    if lines:
        yield from expanded(found)
    else:
        yield _table(found)
    number = len(found.values)
    yield f"{fmt.count(number)} row{'' if number == 1 else 's'}" + (
        f" shown; there are more ({more})" if found.more else ""
    )


def _table(found: Rows) -> RenderableType:
    from rich.text import Text

    table = fmt.grid()
    for name, kind in zip(found.columns, found.types, strict=True):
        table.add_column(Text(name), justify="right" if kind.startswith(NUMBERS) else "left", overflow="fold")
    for row in found.values:
        table.add_row(*(Text(fmt.cell(value)) for value in row))
    return table


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {fmt.cell(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return plain_float(value)
    return value if value is None or isinstance(value, (bool, int, str)) else fmt.cell(value)
