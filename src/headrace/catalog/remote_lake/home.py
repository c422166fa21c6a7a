"""Which lake a project's tables are in, so that nobody looks for them in another one."""

from __future__ import annotations

import sqlalchemy as sa

from headrace.catalog import schema as t
from headrace.catalog.database import Database
from headrace.errors import UserError
from headrace.names import LAKE


def bind(database: Database, identity: str | None) -> None:
    """Hold a project to the lake that it began in; see `Catalog.bind_lake`."""
    with database.read() as connection:
        known = connection.execute(sa.select(t.lake_home.c.identity)).scalar()
    if known == identity:
        return
    if known is not None or identity is None:
        raise _another(known, identity)
    own = sa.select(t.iceberg_tables.c.table_name).where(t.iceberg_tables.c.catalog_name == LAKE).limit(1)
    with database.write() as connection:
        if connection.execute(own).first() is not None:
            raise _another(None, identity)
        if connection.execute(sa.select(t.lake_home.c.identity)).first() is None:
            connection.execute(sa.insert(t.lake_home).values(identity=identity))


def _another(known: str | None, wanted: str | None) -> UserError:
    return UserError(
        "LAKE_CHANGED",
        f"The tables of this project are in {_shown(known)}, and headrace.toml says {_shown(wanted)}.",
        hint="Put [lake] in headrace.toml back to what it was. A project is not moved from one lake to another: make a "
        "new one, and create its stream tables there.",
    )


def _shown(identity: str | None) -> str:
    return "the catalog's own database" if identity is None else f"the REST catalog {identity}"
