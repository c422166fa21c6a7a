"""What belongs to the definition of a stream table."""

from __future__ import annotations

from headrace.api.facade import Headrace
from headrace.catalog import StreamTable
from headrace.names import TableName


def defined(hr: Headrace, name: TableName) -> tuple[object, ...]:
    """Its definition; which incarnation of a source it reads is no part of that."""
    table: StreamTable = hr._catalog.stream_table(name)
    details = {**table.details, "sources": [{**use, "uuid": None} for use in table.details["sources"]]}
    return (table.query, table.sources, table.refresh_mode, table.schedule, details, table.options, table.status)
