"""Keys that readers outside a deployment rest on, and that its promotion takes away."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.catalog import Catalog, StreamTable
from headrace.definitions.details import Details, from_json
from headrace.deploy.deployment_results import LostKey
from headrace.names import TableName
from headrace.refresh.definition.source_keys import SourceKeys


def lost_keys(
    catalog: Catalog,
    tables: Mapping[TableName, StreamTable],
    after: Mapping[TableName, Details],
    members: Collection[TableName],
) -> tuple[LostKey, ...]:
    """Return keys that are gone, with the readers that are recomputed once for want of them.

    Args:
        catalog: Knows what is declared.
        tables: All stream tables.
        after: By public table, the definition it would have.
        members: What is promoted along.
    """
    keys = SourceKeys(catalog, after)
    found: list[LostKey] = []
    for name, table in sorted(tables.items()):
        if name in members or after.keys().isdisjoint(table.sources):
            continue
        details = from_json(table.details)
        known = details.source_keys if details.rests_on_keys else {}
        read = [source for source in known if source in after]
        now = keys.of(read)
        found += [
            LostKey(str(name), str(source), key)
            for source in read
            for key in known[source]
            if key not in now.get(source, ())
        ]
    return tuple(found)
