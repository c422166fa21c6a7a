"""Keys of the relations that a stream table reads: those that users declare, and those that follow from queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.catalog import Catalog
from headrace.engine.details import Details, Keys, from_json
from headrace.engine.ports import Runner
from headrace.names import TableName, quote


def declared_keys(catalog: Catalog) -> dict[TableName, Keys]:
    """The declared keys of sources."""
    found: dict[TableName, Keys] = {}
    for key in catalog.declared_keys():
        found[key.source] = (*found.get(key.source, ()), key.columns)
    return found


def keys_of_sources(catalog: Catalog, sources: Collection[TableName]) -> dict[TableName, Keys]:
    """All keys that are known of some relations; those without any are left out.

    Args:
        catalog: Knows what is declared, and the stream tables.
        sources: What a query reads.
    """
    declared = declared_keys(catalog)
    derived = {t.name: from_json(t.details).keys for t in catalog.stream_tables() if t.name in sources}
    found = {name: (*declared.get(name, ()), *derived.get(name, ())) for name in sources}
    return {name: keys for name, keys in found.items() if keys}


def values_in_several_rows(runner: Runner, rows: str, key: tuple[str, ...]) -> int:
    """How many values of a key more than one row has.

    Args:
        runner: Runs the query.
        rows: Table expression of the rows.
        key: The columns.
    """
    columns = ", ".join(quote(c) for c in key)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {rows} GROUP BY {columns} HAVING count(*) > 1)"
    return int(runner.run(sql)[0][0])


def out_of_date(details: Details, catalog: Catalog) -> bool:
    """Whether a stream table must be compiled again: it rests on a key that is gone, or one was declared since."""
    declared = declared_keys(catalog)
    known: Mapping[TableName, Keys] = details.source_keys
    if any(not set(declared.get(use.name, ())) <= set(known.get(use.name, ())) for use in details.sources):
        return True
    if not (known and details.rests_on_keys):
        return False
    now = keys_of_sources(catalog, known.keys())
    return any(not set(keys) <= set(now.get(name, ())) for name, keys in known.items())
