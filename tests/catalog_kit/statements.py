"""What is asked of a catalog's database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from headrace.catalog import Catalog


@contextmanager
def statements(catalog: Catalog) -> Iterator[list[str]]:
    """The statements that a catalog sends meanwhile."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    sa.event.listen(catalog._database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        sa.event.remove(catalog._database.engine, "before_cursor_execute", note)
