"""Groups stream tables that are published together: cycles, diamonds, declared groups.

Mirrors of one database have it in common: its transactions change several of them at once. So ways that part at the
database and meet again make a diamond, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from headrace.catalog import Catalog, DatabaseSource, StreamTable
from headrace.definitions.details import deployment_of
from headrace.graph.dag import Dag
from headrace.graph.diamonds import Diamond, Meetings, Wanted, meetings
from headrace.graph.units import Units, units
from headrace.names import TableName
from headrace.refresh.fuses.fuse import Fuse
from headrace.schedule.options import DEPLOY_POOL, Consistency, Options, Policy, parse_options


@dataclass(frozen=True, slots=True)
class Defaults:
    """The project's options for stream tables that set none.

    Args:
        consistency: Of diamonds.
        policy: Of groups.
        fuse: Of changes.
        allow_cycles: Whether stream tables may read each other in a circle.
        max_cycle_rounds: In how many rounds the members of a cycle may gain rows.
        layout_limit: Tables of more rows get a new layout beside the running one; None for none.
    """

    consistency: Consistency = Consistency.ATOMIC
    policy: Policy = Policy.FASTEST
    fuse: Fuse = field(default_factory=Fuse)
    allow_cycles: bool = False
    max_cycle_rounds: int = 100
    layout_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """Stream tables grouped into units.

    Args:
        graph: Stream tables and sources.
        units: The units; a group is called after its last member.
        meetings: Where diamonds meet, also such as nobody wants kept together.
        options: The options of every stream table.
        defaults: What the project wants.
        across: Diamonds that meet at greens and on which tables of other generations lie: these are in no group with
            them, so that the greens read versions that agree.
    """

    graph: Dag[TableName]
    units: Units[TableName]
    meetings: Meetings[TableName]
    options: Mapping[TableName, Options]
    defaults: Defaults
    across: tuple[Diamond[TableName], ...] = ()

    def members(self, name: TableName) -> tuple[TableName, ...]:
        """Return the unit of a stream table, itself included, producers first."""
        return self.units.members[self.units.unit_of[name]]

    def group(self, unit: TableName) -> str | None:
        """Return the name of a unit's group; None for a single table."""
        return str(unit) if len(self.units.members[unit]) > 1 else None

    def bottoms(self, unit: TableName) -> tuple[TableName, ...]:
        """Return the members at which diamonds meet."""
        return tuple(name for name in self.units.members[unit] if name in self.meetings.kept)

    def declared(self, unit: TableName) -> tuple[str, ...]:
        """Return the groups that users declared among a unit's members."""
        return tuple(sorted({self.options[n].refresh_group for n in self.units.members[unit]} - {""}))

    def policy(self, unit: TableName) -> Policy:
        """Return when a group is due; of several bottoms the strictest (slowest) wins."""
        deciding = self.bottoms(unit) or self.units.members[unit]
        wanted = [self.options[b].diamond_schedule_policy or self.defaults.policy for b in deciding]
        return Policy.SLOWEST if Policy.SLOWEST in wanted else Policy.FASTEST


def grouping(
    tables: Mapping[TableName, StreamTable], defaults: Defaults, databases: Iterable[DatabaseSource] = ()
) -> Grouping:
    """Cut stream tables into units.

    Args:
        tables: All stream tables.
        defaults: What the project wants.
        databases: All database sources.
    """
    mirrors = tuple((_database(d.name), tuple(sorted(m.name for m in d.mirrors))) for d in databases)
    generations = tuple((n, deployment) for n, t in tables.items() if (deployment := deployment_of(t.details)))
    read = tuple((n, t.sources, tuple(sorted(t.options.items()))) for n, t in tables.items())
    return _grouped(read, mirrors, defaults, generations)


def grouping_of(catalog: Catalog, defaults: Defaults) -> Grouping:
    """Group the stream tables of a catalog into units, as they are now."""
    with catalog.reading() as reader:
        tables, databases = {t.name: t for t in reader.stream_tables()}, reader.sources()
    return grouping(tables, defaults, databases)


def forget() -> None:
    """Forget what was grouped, as a new process has."""
    _grouped.cache_clear()


def _database(name: str) -> TableName:
    """Stands for a database above its mirrors; no table is called so."""
    return TableName("", (), name)


@lru_cache(maxsize=8)
def _grouped(
    tables: tuple[tuple[TableName, tuple[TableName, ...], tuple[tuple[str, str], ...]], ...],
    mirrors: tuple[tuple[TableName, tuple[TableName, ...]], ...],
    defaults: Defaults,
    generations: tuple[tuple[TableName, str], ...] = (),
) -> Grouping:
    """Group the tables; cached, as a scheduler needs it after every refresh."""
    deployments = dict(generations)
    options = {name: parse_options(dict(texts)) for name, _, texts in tables}
    options |= {name: replace(options[name], pool=DEPLOY_POOL) for name in deployments}
    graph = Dag({name: sources for name, sources, _ in tables})
    found = _meetings(graph, options, mirrors, defaults, deployments)
    groups: list[Collection[TableName]] = list(found.groups)
    declared: dict[tuple[str, str | None], set[TableName]] = {}
    for name, own in options.items():
        if own.refresh_group:
            declared.setdefault((own.refresh_group, deployments.get(name)), set()).add(name)
    groups += declared.values()
    divided = units(graph, options, groups)
    while torn := [d for bottom in found.aligned for d in _torn(graph, divided, bottom, found)]:
        groups += ({*d.between, d.bottom} for d in torn)
        divided = units(graph, options, groups)
    return Grouping(graph, divided, found, options, defaults, _across(graph, options, defaults, deployments))


def _torn(
    graph: Dag[TableName], divided: Units[TableName], bottom: TableName, found: Meetings[TableName]
) -> list[Diamond[TableName]]:
    """Return the diamonds of an aligned table that is in a unit with some, not all, of them.

    Other diamonds and declared groups bring that about. What is staged with the table is no version yet to which the
    rest could be held back, so the rest is refreshed with it.
    """
    own = divided.unit_of[bottom]
    if all(divided.unit_of.get(name) != own for name in graph.producers(bottom)):
        return []
    return [d for d in found.aligned[bottom] if any(divided.unit_of.get(name, own) != own for name in d.between)]


def _meetings(
    graph: Dag[TableName],
    options: Mapping[TableName, Options],
    mirrors: tuple[tuple[TableName, tuple[TableName, ...]], ...],
    defaults: Defaults,
    deployments: Mapping[TableName, str],
) -> Meetings[TableName]:
    """Find all diamonds but those that one cut serves.

    That is those between a database and a table that reads its mirrors itself. Of an aligned table those below a
    database are published together: which versions of two mirrors belong together, their landing says, not a version
    of something that both read. And those that have a cycle on their ways: which version of a source its members
    reflect, each other's versions would have to say.

    Public stream tables never wait for a deployment: to one, those of other generations are sources like any others.
    """

    def seen_by(deployment: str | None, name: TableName) -> TableName:
        apart = deployment is not None and name in options and deployments.get(name) != deployment
        return TableName("", (deployment or "",), str(name)) if apart else name

    above = {mirror: (database,) for database, own in mirrors for mirror in own if mirror in graph}
    wanted = Wanted(
        atomic={name for name in options if keeps(options, defaults, name)},
        aligned={name for name in options if _wanted(options, defaults, name) is Consistency.ALIGNED},
        cut_at_once={database for database, _ in mirrors},
        tables=options.keys(),
    )
    if above or deployments:
        reads = {name: tuple(seen_by(deployments.get(name), p) for p in graph.producers(name)) for name in graph.names}
        graph = Dag({**reads, **above})
    return meetings(graph, wanted)


def _across(
    graph: Dag[TableName],
    options: Mapping[TableName, Options],
    defaults: Defaults,
    deployments: Mapping[TableName, str],
) -> tuple[Diamond[TableName], ...]:
    """Return diamonds that meet at greens and lead through other generations."""
    bottoms = {name for name in deployments if _wanted(options, defaults, name) is not Consistency.NONE}
    if not bottoms:
        return ()
    found = meetings(graph, Wanted(aligned=bottoms, tables=options.keys())).aligned
    every = (d for bottom in found for d in found[bottom])
    return tuple(d for d in every if any(deployments.get(n) != deployments[d.bottom] for n in d.between))


def keeps(options: Mapping[TableName, Options], defaults: Defaults, bottom: TableName) -> bool:
    """Return whether the diamonds that meet at a table are kept together."""
    return _wanted(options, defaults, bottom) is Consistency.ATOMIC


def _wanted(options: Mapping[TableName, Options], defaults: Defaults, bottom: TableName) -> Consistency:
    own = options[bottom].diamond_consistency if bottom in options else None
    return own or defaults.consistency
