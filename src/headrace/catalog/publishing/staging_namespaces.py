"""Removes namespaces of `staging` whose last table is gone.

Making a table makes its namespace again. Iceberg's SQL catalog keeps a row for a namespace that was created. In `lake`
Headrace creates none: there a namespace is what its tables are called after.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.coordination.leases import is_live, lease_of
from headrace.catalog.records import Lease
from headrace.names import LAKE, STAGING, SYSTEM_NAMESPACE

_C, _TABLES = t.iceberg_namespaces.c, t.iceberg_tables.c
_HAS_TABLES = sa.exists().where(_TABLES.catalog_name == STAGING, _TABLES.table_namespace == _C.namespace)
_EMPTY = sa.select(_C.namespace).distinct().where(_C.catalog_name == STAGING, _C.namespace != SYSTEM_NAMESPACE)


def empty(connection: Connection, namespaces: Iterable[str] | None = None) -> set[str]:
    """Return namespaces of `staging` without a table, of all or of some."""
    query = _EMPTY.where(~_HAS_TABLES)
    if namespaces is not None:
        query = query.where(_C.namespace.in_(sorted(namespaces)))
    return set(connection.execute(query).scalars())


def remove_empty(
    connection: Connection, namespaces: Iterable[str] | None, held: Sequence[Lease], now: dt.datetime
) -> None:
    """Remove namespaces of `staging` without a table, unless somebody may be making one in them.

    Args:
        connection: Inside the transaction.
        namespaces: Those that may be empty; None for all.
        held: Leases of the caller; others on a table in a namespace keep it.
        now: The time.
    """
    if not (found := empty(connection, namespaces)):
        return
    ours = {(lease.resource, lease.token) for lease in held}
    leases = map(lease_of, connection.execute(sa.select(t.lease).where(t.lease.c.owner.is_not(None))))
    busy = [x.resource for x in leases if is_live(x, now) and (x.resource, x.token) not in ours]
    free = [name for name in found if not any(resource.startswith(f"{LAKE}.{name}.") for resource in busy)]
    gone = sa.delete(t.iceberg_namespaces).where(_C.catalog_name == STAGING, _C.namespace.in_(sorted(free)))
    connection.execute(gone)
