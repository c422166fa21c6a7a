"""Gates: sources that are held back while somebody loads them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.api.safeguards.missing_tables import missing_table
from headrace.catalog import Catalog
from headrace.errors import UserError
from headrace.graph.dag import Dag
from headrace.names import TableName, split_identifier
from headrace.refresh.cut.cut import Cut
from headrace.results.refresh_results import Record


@dataclass(frozen=True, slots=True)
class GateInfo(Record):
    """A source that is held back.

    Args:
        source: The source.
        closed_at: Since when.
        version: Its version then; nothing that reads it goes past that.
        holds: The stream tables that read it, directly or through others.
    """

    source: str
    closed_at: dt.datetime
    version: int
    holds: tuple[str, ...]


def gate_infos(catalog: Catalog) -> tuple[GateInfo, ...]:
    """Return the closed gates; see `Headrace.gates`."""
    dag = Dag(catalog.dependencies())
    return tuple(
        GateInfo(str(name), gate.closed_at, gate.version, tuple(str(n) for n in dag.downstream(name)))
        for name, gate in catalog.gates().items()
    )


def gated_above(catalog: Catalog, tables: Sequence[TableName] | None) -> tuple[TableName, ...]:
    """Return the closed gates above some stream tables, or above all of them for None."""
    closed = catalog.gates()
    if not closed:
        return ()
    dag = Dag(catalog.dependencies())
    read = dag.names if tables is None else dag.upstream(*(n for n in tables if n in dag))
    return tuple(name for name in read if name in closed)


def to_gate(catalog: Catalog, text: str, name: Callable[[str], TableName]) -> tuple[TableName, ...]:
    """Return the sources that one gate holds back.

    All mirrors of a database are held together, because otherwise its transactions would be torn apart.

    Args:
        catalog: The catalog.
        text: A table, or a database source.
        name: Resolves a table's name.

    Raises:
        UserError: `INVALID_NAME`; `INVALID_OPTION` for a stream table.
    """
    with catalog.reading() as reader:
        databases, streams = reader.sources(), {t.name for t in reader.stream_tables()}
    if database := next((d for d in databases if (d.name,) == split_identifier(text)), None):
        return tuple(m.name for m in database.mirrors)
    wanted = name(text)
    if wanted in streams:
        raise UserError(
            "INVALID_OPTION",
            f"{wanted} is a stream table; gates hold sources back.",
            hint=f"`headrace pause {wanted}` leaves a stream table as it is.",
        )
    together = next((d.mirrors for d in databases if any(m.name == wanted for m in d.mirrors)), None)
    return (wanted,) if together is None else tuple(m.name for m in together)


def close_gate(catalog: Catalog, sources: Sequence[TableName], heads: Cut) -> None:
    """Hold sources back at what they are now.

    Raises:
        UserError: `TABLE_NOT_FOUND`.
    """
    seen = heads.versions(sources)  # numbers what is there, so that the gate closes at it
    if missing := [source for source in sources if source not in seen]:
        raise missing_table(catalog, missing[0], "could be held back")
    catalog.close_gates(sources)
