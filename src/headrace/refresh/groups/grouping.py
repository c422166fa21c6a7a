"""Groups stream tables that are published together: cycles, diamonds, declared groups.

Mirrors of one database have it in common: its transactions change several of them at once. So ways that part at the
database and meet again make a diamond, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from headrace.catalog import DatabaseSource, StreamTable
from headrace.graph.dag import Dag
from headrace.graph.diamonds import Diamond, diamonds
from headrace.graph.units import Units, atomic_groups, units
from headrace.names import TableName
from headrace.refresh.fuses.fuse import Fuse
from headrace.schedule.options import Consistency, Options, Policy, parse_options


@dataclass(frozen=True, slots=True)
class Defaults:
    """The project's options for stream tables that set none.

    Args:
        consistency: Of diamonds.
        policy: Of groups.
        fuse: Of changes.
        allow_cycles: Whether stream tables may read each other in a circle.
        max_cycle_rounds: In how many rounds the members of a cycle may gain rows.
    """

    consistency: Consistency = Consistency.ATOMIC
    policy: Policy = Policy.FASTEST
    fuse: Fuse = field(default_factory=Fuse)
    allow_cycles: bool = False
    max_cycle_rounds: int = 100


@dataclass(frozen=True, slots=True)
class Grouping:
    """Stream tables cut into units.

    Args:
        graph: Stream tables and sources.
        units: The units; a group is called after its last member.
        diamonds: All diamonds, also such as nobody wants kept together.
        options: The options of every stream table.
        defaults: What the project wants.
    """

    graph: Dag[TableName]
    units: Units[TableName]
    diamonds: tuple[Diamond[TableName], ...]
    options: Mapping[TableName, Options]
    defaults: Defaults

    def members(self, name: TableName) -> tuple[TableName, ...]:
        """Return the unit of a stream table, itself included, producers first."""
        return self.units.members[self.units.unit_of[name]]

    def group(self, unit: TableName) -> str | None:
        """Return the name of a unit's group; None for a single table."""
        return str(unit) if len(self.units.members[unit]) > 1 else None

    def bottoms(self, unit: TableName) -> tuple[TableName, ...]:
        """Return the members at which diamonds meet."""
        inside = set(self.units.members[unit])
        met = {d.bottom for d in self.diamonds if d.bottom in inside and kept(self.options, self.defaults, d)}
        return tuple(name for name in self.units.members[unit] if name in met)

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
    return _cut(tuple((n, t.sources, tuple(sorted(t.options.items()))) for n, t in tables.items()), mirrors, defaults)


def _database(name: str) -> TableName:
    """Stands for a database above its mirrors; no table is called so."""
    return TableName("", (), name)


@lru_cache(maxsize=8)
def _cut(
    tables: tuple[tuple[TableName, tuple[TableName, ...], tuple[tuple[str, str], ...]], ...],
    mirrors: tuple[tuple[TableName, tuple[TableName, ...]], ...],
    defaults: Defaults,
) -> Grouping:
    """Group the tables; cached, as a scheduler needs it after every refresh."""
    options = {name: parse_options(dict(texts)) for name, _, texts in tables}
    graph = Dag({name: sources for name, sources, _ in tables})
    found = _diamonds(graph, options, mirrors)
    groups = atomic_groups(d for d in found if kept(options, defaults, d))
    for declared in {o.refresh_group for o in options.values()} - {""}:
        groups.append({name for name, own in options.items() if own.refresh_group == declared})
    cut = units(graph, options, groups)
    while torn := [d for d in found if _is_torn(graph, cut, options, defaults, d)]:
        groups += atomic_groups(torn)
        cut = units(graph, options, groups)
    return Grouping(graph, cut, found, options, defaults)


def _is_torn(
    graph: Dag[TableName],
    cut: Units[TableName],
    options: Mapping[TableName, Options],
    defaults: Defaults,
    diamond: Diamond[TableName],
) -> bool:
    """Return whether an aligned table is in a unit with some, not all, of its diamond.

    Other diamonds and declared groups bring that about. What is staged with the table is no version yet to which the
    rest could be held back, so the rest is refreshed with it.
    """
    if diamond.bottom not in options or _wanted(options, defaults, diamond.bottom) is not Consistency.ALIGNED:
        return False
    own = cut.unit_of[diamond.bottom]
    staged = any(cut.unit_of.get(name) == own for name in graph.producers(diamond.bottom))
    return staged and any(cut.unit_of.get(name, own) != own for name in diamond.between)


def _diamonds(
    graph: Dag[TableName],
    tables: Collection[TableName],
    mirrors: tuple[tuple[TableName, tuple[TableName, ...]], ...],
) -> tuple[Diamond[TableName], ...]:
    """Return all diamonds but those that one cut serves.

    That is those between a database and a table that reads its mirrors itself.
    """
    reads = {name: graph.producers(name) for name in graph.names}
    above = {mirror: (database,) for database, own in mirrors for mirror in own if mirror in graph}
    whole = Dag({**reads, **above})
    return tuple(d for d in diamonds(whole) if d.top.catalog or any(n in tables for n in d.between))


def kept(options: Mapping[TableName, Options], defaults: Defaults, diamond: Diamond[TableName]) -> bool:
    """Return whether what lies on a diamond is published together.

    Of an aligned table also what lies below a database: which versions of two mirrors belong together, their landing
    says, not a version of something that both read. And what has a cycle on its ways: which version of a source its
    members reflect, each other's versions would have to say.
    """
    if keeps(options, defaults, diamond.bottom):
        return True
    together = diamond.cyclic or not diamond.top.catalog
    return _wanted(options, defaults, diamond.bottom) is Consistency.ALIGNED and together


def keeps(options: Mapping[TableName, Options], defaults: Defaults, bottom: TableName) -> bool:
    """Return whether the diamonds that meet at a table are kept together."""
    return _wanted(options, defaults, bottom) is Consistency.ATOMIC


def _wanted(options: Mapping[TableName, Options], defaults: Defaults, bottom: TableName) -> Consistency:
    own = options[bottom].diamond_consistency if bottom in options else None
    return own or defaults.consistency
