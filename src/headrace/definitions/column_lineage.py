"""Column lineage of stream tables, from their stored definitions and without Spark.

Queries that are only refreshed FULL have one, too, as far as they are read. What Spark would have to be asked for to
read a query, its output columns and those of its sources, was asked when it was defined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.algebra.lineage import Lineage, Origins, followed, lineage_of
from headrace.algebra.schema import Column
from headrace.catalog import StreamTable
from headrace.definitions.details import Details, from_json
from headrace.definitions.user_text import resolver
from headrace.errors import HeadraceError
from headrace.names import CLOCK, TableName
from headrace.sql.reader.context import ViewText
from headrace.sql.reader.reader import Reading, read


@dataclass(frozen=True, slots=True)
class DefinedLineage:
    """Lineage of a definition.

    Args:
        lineage: Over the relations it reads; None where it is not known.
        unknown: Why it is not known: a construct of the query, in a sentence; "" where it is.
    """

    lineage: Lineage | None
    unknown: str = ""


def lineage_of_definition(details: Details, catalogs: frozenset[str]) -> DefinedLineage:
    """Return where the columns of a definition come from.

    Args:
        details: The definition.
        catalogs: Catalogs that the session knows.
    """
    try:
        found = _reading(details, catalogs)
    except HeadraceError as error:
        return DefinedLineage(None, error.message)
    if found.tree is None:
        constructs = ", ".join(dict.fromkeys(refusal.construct for refusal in found.refusals))
        return DefinedLineage(None, f"Headrace does not read {constructs or 'this query'}.")
    return DefinedLineage(_without_clock(lineage_of(found.tree)))


def _without_clock(lineage: Lineage) -> Lineage:
    """Leave out the clock, which is a relation for Headrace only."""
    if not any(origin.table == CLOCK for origins in (*lineage.columns.values(), lineage.rows) for origin in origins):
        return lineage
    columns = {name: _of_tables(origins) for name, origins in lineage.columns.items()}
    return Lineage(columns, _of_tables(lineage.rows))


def _of_tables(origins: Origins) -> Origins:
    return frozenset(origin for origin in origins if origin.table != CLOCK)


def _reading(details: Details, catalogs: frozenset[str]) -> Reading:
    uses = {use.name: use for use in details.sources}

    def schema(name: TableName) -> tuple[Column, ...] | ViewText:
        if name in details.views:
            return ViewText(details.views[name], resolver((), catalogs, details.redirects))
        use = uses[name]
        types = {column.name: column for column in use.columns}
        return tuple(types.get(each, Column(each, "")) for each in use.all or types)

    return read(
        details.text,
        resolve=resolver(details.namespace, catalogs, details.redirects),
        schema=schema,
        case_sensitive=details.semantics.case_sensitive,
        functions=dict.fromkeys(details.functions, True),
        unusual=details.semantics.read_unusually,
        output=tuple(column.name for column in details.output),
        origins_only=True,
    )


class Lineages:
    """Lineage of a project's stream tables; each definition is read once.

    Args:
        catalogs: Catalogs that the session knows.
    """

    def __init__(self, catalogs: frozenset[str]) -> None:
        self._catalogs = catalogs
        self._known: dict[TableName, tuple[Mapping[str, object], DefinedLineage]] = {}

    def of(self, table: StreamTable) -> DefinedLineage:
        """Return the lineage of a stream table over what it reads."""
        known = self._known.get(table.name)
        if known is None or known[0] != table.details:
            found = lineage_of_definition(from_json(table.details), self._catalogs)
            known = self._known[table.name] = (table.details, found)
        return known[1]

    def to_base(self, table: TableName, tables: Iterable[StreamTable]) -> Lineage:
        """Return the lineage of a stream table, whose own is known, through all other stream tables.

        Args:
            table: The stream table.
            tables: All of them.
        """
        of = {each.name: each for each in tables}
        found: dict[TableName, Lineage] = {}
        waiting = [table]
        while waiting:
            name = waiting.pop()
            lineage = self.of(of[name]).lineage if name in of and name not in found else None
            if lineage is not None:
                found[name] = lineage
                waiting += of[name].sources
        return followed(table, found)
