"""Refuses queries that read Iceberg's metadata columns.

They say where and when rows were stored. A compaction, or the maintenance of a stream table, changes that without
changing a row, so that results that show it, or go by it, would not follow from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.definitions.details import Details
from headrace.errors import Unsupported, UserError, place_at
from headrace.names import METADATA_COLUMNS
from headrace.sql.reader.syntax.tokens import Token, tokenize


def refuse_metadata_columns(details: Details, analyse_without: Callable[[], object]) -> None:
    """Refuse a query that reads metadata columns; its own columns may be called so.

    Args:
        details: The definition; Spark accepts its query.
        analyse_without: Has Spark analyse the query over sources that have none of them.

    Raises:
        Unsupported: `METADATA_COLUMN`.
    """
    found = [token for text in (details.query, *details.views.values()) for token in _named(text)]
    if not found:
        return
    try:
        analyse_without()
    except UserError as error:
        own = next(_named(details.query), None)
        raise Unsupported(
            "METADATA_COLUMN",
            f"A stream table cannot read {found[0].name}, which is no column of its source, but Iceberg's own.",
            hint="Read columns of the table: what tells its rows apart, or a time that is written with them.",
            place=None if own is None else place_at(details.query, own.start),
        ) from error


def _named(text: str) -> Iterator[Token]:
    """Yield the words of a text that may be names of metadata columns."""
    return (token for token in tokenize(text) if token.name.strip("'\"").lower() in METADATA_COLUMNS)
