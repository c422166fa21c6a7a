"""Registry of kinds of database sources, used by everything above `sources`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import UserError
from headrace.sources.postgres.postgres_kind import POSTGRES

if TYPE_CHECKING:
    from headrace.sources.source_kind import KindOfNodes, SourceKind
    from headrace.sql.reader.syntax.statement_cursor import StatementCursor

KINDS: tuple[SourceKind, ...] = (POSTGRES,)
"""The first is meant where none is named."""


def kind_of(name: str) -> SourceKind:
    """Find a kind by its name.

    Raises:
        UserError: `SOURCE_KIND_UNKNOWN`.
    """
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise UserError(
        "SOURCE_KIND_UNKNOWN",
        f"There is no kind of database source {name}.",
        hint=f"This version of Headrace has {', '.join(kind.name for kind in KINDS)}.",
    )


def nodes_kind_of(name: str) -> KindOfNodes:
    """Find a kind whose sources may have several nodes.

    Raises:
        UserError: `SOURCE_KIND_UNKNOWN`, `SHARD_UNKNOWN`.
    """
    from headrace.sources.source_kind import KindOfNodes

    kind = kind_of(name)
    if not isinstance(kind, KindOfNodes):
        raise UserError(
            "SHARD_UNKNOWN", f"A source of kind {name} has no shards.", hint="Create a source for each server."
        )
    return kind


def read_kind(cursor: StatementCursor) -> SourceKind:
    """Step over the word for a kind, as after FROM; later errors show the kind's own form.

    Raises:
        UserError: `SYNTAX_ERROR`.
    """
    for kind in KINDS:
        if cursor.take(kind.name.upper()):
            cursor.form = kind.create_form
            return kind
    raise cursor.fail(f"{' or '.join(kind.name.upper() for kind in KINDS)} was expected here")
