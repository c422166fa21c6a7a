"""Refuses generations by which stream tables would read each other, or a name that is gone.

Looked at in the publication itself: of two that close a cycle together, neither can know of the other before; nor does
an exchange know of readers that were created while it was prepared. A green that was defined before another one of its
deployment still reads the public table, and is going to read the other one.
"""

from __future__ import annotations

from collections import defaultdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from headrace.catalog import schema as t
from headrace.catalog.definitions import greens
from headrace.catalog.publishing.publication import Publication
from headrace.catalog.relations import parse_name
from headrace.graph.dag import Dag, cycle_error
from headrace.names import TableName

_READER, _SOURCE = t.relation.alias("reader"), t.relation.alias("source")
_READS = (
    sa.select(_READER.c.name, _SOURCE.c.name)
    .select_from(t.dependency)
    .join(_READER, _READER.c.id == t.dependency.c.stream_id)
    .join(_SOURCE, _SOURCE.c.id == t.dependency.c.source_id)
)


def refuse_cycles(connection: Connection, publication: Publication) -> None:
    """Refuse a publication of second generations whose definitions close a cycle.

    Raises:
        UserError: `CYCLE`, naming the path.
    """
    if not publication.greens:
        return
    waiting = [g for g in greens.read(connection) if g.promoted_at is None and not g.public]
    of, members = {g.name: g.deployment for g in waiting}, {(g.deployment, g.original): g.name for g in waiting}
    reads: defaultdict[TableName, list[TableName]] = defaultdict(list)
    for texts in connection.execute(_READS):
        reader, source = map(parse_name, texts)
        reads[reader].append(members.get((of.get(reader, ""), source), source))
    graph = Dag(reads)
    for definition in publication.definitions:
        if definition.name in graph and (path := graph.cycle(through=definition.name)):
            raise cycle_error(path, of_greens=True)


def refuse_left_readers(connection: Connection, publication: Publication) -> None:
    """Refuse to rename what stream tables read that are not defined anew along with it.

    Raises:
        EnvironmentFault: `DEPLOYMENT_CHANGED`; tried again, the promotion names the readers.
    """
    former = {rename.new: rename.old for rename in publication.relation_renames}
    if not former:
        return
    defined = {definition.name for definition in publication.definitions}
    for texts in connection.execute(_READS):
        reader, source = map(parse_name, texts)
        if source in former and reader not in defined:
            raise greens.changed(former[source])
