"""Keys of a stream table's sources: declared, enforced by a mirror's database, or derived.

A database's notion of equal values is never finer than Spark's of what is landed of them (every value has a text of its
own), so that what is a key there is one here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from headrace.catalog import Catalog, Mirror
from headrace.definitions.details import Details, Keys, from_json
from headrace.frontier import Frontier
from headrace.graph.dag import Dag
from headrace.names import TableName, quote
from headrace.ports import Runner

NONE_ANEW: Mapping[TableName, Details] = {}


class SourceKeys:
    """Keys of sources, read from the catalog at first use and not again.

    Args:
        catalog: Knows what is declared, and the stream tables.
        anew: Definitions of stream tables that are not published yet.
    """

    def __init__(self, catalog: Catalog, anew: Mapping[TableName, Details] = NONE_ANEW) -> None:
        self._catalog = catalog
        self._anew = anew

    @cached_property
    def declared(self) -> Mapping[TableName, Keys]:
        """Return the declared keys of sources."""
        found: dict[TableName, Keys] = {}
        for key in self._catalog.declared_keys():
            found[key.source] = (*found.get(key.source, ()), key.columns)
        return found

    @cached_property
    def _mirrors(self) -> Mapping[TableName, Mirror]:
        with self._catalog.reading() as reader:
            mirrors = [mirror for source in reader.sources() for mirror in source.mirrors]
        return {mirror.name: mirror for mirror in mirrors if mirror.key}

    @cached_property
    def _reflected(self) -> tuple[Mapping[TableName, Frontier], Dag[TableName], Mapping[TableName, int]]:
        """Read frontiers, dependencies, and the versions at which gates hold sources."""
        with self._catalog.reading() as reader:
            held = {name: gate.version for name, gate in reader.gates().items()}
            return reader.frontiers(), Dag(reader.dependencies()), held

    def _mirrored(self, name: TableName, sources: Collection[TableName]) -> Keys:
        """Return a mirror's key where it holds in every version still to be read.

        A gate may hold the mirror at a version from before its table had that key, and so may alignment: at what the
        stream tables on other ways from the mirror reflect.
        """
        mirror = self._mirrors.get(name)
        if mirror is None:
            return ()
        if mirror.key_since:
            frontiers, graph, held = self._reflected
            above = {*sources, *(each for source in sources for each in graph.upstream(source))}
            versions = [frontiers[each].get(name) for each in above if each in frontiers]
            if any(v is not None and v < mirror.key_since for v in (*versions, held.get(name))):
                return ()
        return (tuple(sorted(mirror.key)),)

    @cached_property
    def _derived(self) -> Mapping[TableName, Keys]:
        known = {t.name: from_json(t.details).keys for t in self._catalog.stream_tables()}
        return known | {name: details.keys for name, details in self._anew.items()}

    def of(self, sources: Collection[TableName]) -> dict[TableName, Keys]:
        """Return all keys of some relations; those without any are left out."""
        known = (self.declared, {n: self._mirrored(n, sources) for n in sources}, self._derived)
        found = {name: dict.fromkeys(key for each in known for key in each.get(name, ())) for name in sources}
        return {name: tuple(keys) for name, keys in found.items() if keys}


def values_in_several_rows(runner: Runner, rows: str, key: tuple[str, ...]) -> int:
    """Return how many values of a key more than one row has.

    Args:
        runner: Runs the query.
        rows: Table expression of the rows.
        key: The columns.
    """
    columns = ", ".join(quote(c) for c in key)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {rows} GROUP BY {columns} HAVING count(*) > 1)"
    return int(runner.run(sql)[0][0])


def out_of_date(details: Details, keys: SourceKeys) -> bool:
    """Return whether a key was dropped or declared since a table was compiled."""
    known: Mapping[TableName, Keys] = details.source_keys
    if any(not set(keys.declared.get(use.name, ())) <= set(known.get(use.name, ())) for use in details.sources):
        return True
    return bool(lost_keys(details, keys))


def lost_keys(details: Details, keys: SourceKeys) -> frozenset[TableName]:
    """Return the sources with a key that is gone and that a table's plan rests on."""
    known: Mapping[TableName, Keys] = details.source_keys
    if not (known and details.rests_on_keys):
        return frozenset()
    now = keys.of([use.name for use in details.sources])
    return frozenset(name for name, then in known.items() if not set(then) <= set(now.get(name, ())))
