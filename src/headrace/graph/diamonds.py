"""Diamonds: paths that part at one name and meet at another, perhaps at different ages.

A name `top` and a name `bottom` make a diamond when two ways lead from `top` to `bottom` that have nothing else in
common. That is so exactly when every way has left `top` by several consumers and no single name lies on all of them
(`meeting_ways` finds that for many bottoms at once). A graph has up to as many diamonds as pairs of names, each with up
to as many names between; so they are never listed, save those at one bottom.

Ways from two different tops make no diamond: without a common source there is nothing to disagree about.

The members of a cyclic component are published together whatever else is wanted, so ways inside it count for nothing:
a component is one place, that stands under the name of its last member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from headrace.graph.dag import Dag, Name
from headrace.graph.meeting_ways import Block, Ways


@dataclass(frozen=True, slots=True)
class Diamond(Generic[Name]):
    """Ways that part and meet again.

    Args:
        top: Where they part: a source or a stream table.
        bottom: Where they meet.
        between: What lies on them, producers first, without both ends.
        cyclic: Whether members of a cycle are where they part, or lie on them.
    """

    top: Name
    bottom: Name
    between: tuple[Name, ...]
    cyclic: bool = False


@dataclass(frozen=True, slots=True)
class Wanted(Generic[Name]):
    """Diamonds that are to be kept together, and those that are none.

    Args:
        atomic: Bottoms all of whose diamonds are kept together.
        aligned: Bottoms whose diamonds are, where ways part at what is cut at once, or where a cycle lies on them; and
            whose outermost diamonds are listed.
        cut_at_once: Names that are no relations, such as databases: ways that part there make a diamond only if one of
            `tables` lies between.
        tables: What can be refreshed for itself.
    """

    atomic: Collection[Name] = frozenset()
    aligned: Collection[Name] = frozenset()
    cut_at_once: Collection[Name] = frozenset()
    tables: Collection[Name] = frozenset()


@dataclass(frozen=True, slots=True)
class Meetings(Generic[Name]):
    """The names at which ways of a graph meet, and what is kept together for that.

    Args:
        bottoms: Names at which diamonds meet.
        kept: Those at which one meets that is to be kept together.
        groups: What lies on diamonds that are kept together, each with its bottom; overlapping ones merged.
        aligned: By bottom that is to be aligned, the outermost diamonds there: what lies on any other one, lies on one
            of these. They are followed when they are asked for, since together they may be of millions of members.
    """

    bottoms: frozenset[Name]
    kept: frozenset[Name]
    groups: tuple[frozenset[Name], ...]
    aligned: Mapping[Name, tuple[Diamond[Name], ...]]


class Outermost(Mapping[Name, tuple[Diamond[Name], ...]]):
    """The outermost diamonds by the bottom at which they meet, followed when asked for.

    Args:
        places: The graph.
        tops: By bottom, where the diamonds part; by number.
    """

    def __init__(self, places: _Places[Name], tops: Mapping[int, Sequence[int]]) -> None:
        self._places = places
        self._tops = {places.names[bottom]: (bottom, parts) for bottom, parts in sorted(tops.items())}
        self._found: dict[Name, tuple[Diamond[Name], ...]] = {}

    def __getitem__(self, bottom: Name) -> tuple[Diamond[Name], ...]:
        """Return the diamonds that meet at a name."""
        if bottom not in self._found:
            self._found[bottom] = tuple(self._places.diamonds(*self._tops[bottom]))
        return self._found[bottom]

    def __iter__(self) -> Iterator[Name]:
        """Yield the bottoms, producers first."""
        return iter(self._tops)

    def __len__(self) -> int:
        """Return how many bottoms there are."""
        return len(self._tops)


def meetings(dag: Dag[Name], wanted: Wanted[Name]) -> Meetings[Name]:
    """Find where the ways of a graph meet, and which names this ties together.

    Args:
        dag: The graph.
        wanted: Which diamonds are kept together.
    """
    places = _Places(dag)
    found = _Found(len(places.names))
    for block in places.ways.blocks(places.bottoms):
        _look(places, wanted, block, found)
    names = places.names
    return Meetings(
        frozenset(names[b] for b in found.bottoms),
        frozenset(names[b] for b in found.kept),
        tuple(found.groups(places)),
        Outermost(places, found.outermost),
    )


def tops(dag: Dag[Name], bottom: Name) -> frozenset[Name]:
    """Return where ways part that meet again at a name and on which no cycle lies."""
    places = _Places(dag)
    number = places.number_of.get(bottom)
    if number is None or len(places.ways.producers[number]) < 2:
        return frozenset()
    block = Block(places.ways, [number])
    around = places.around(block)
    return frozenset(places.names[n] for n in range(block.size) if block.parted[n] & ~around[n])


class _Places(Generic[Name]):
    """A graph by numbers, its cyclic components each one place."""

    def __init__(self, dag: Dag[Name]) -> None:
        self.parts = dag.parts
        self.names = tuple(part[-1] for part in dag.parts)
        self.number_of = {name: number for number, name in enumerate(self.names)}
        self.cyclic = [bool(dag.component(name)) for name in self.names]
        place = {name: number for number, part in enumerate(dag.parts) for name in part}
        producers: list[list[int]] = []
        consumers: list[list[int]] = [[] for _ in self.names]
        for number, part in enumerate(dag.parts):
            read = {place[name] for member in part for name in dag.producers(member)} - {number}
            producers.append(sorted(read))
            for producer in read:
                consumers[producer].append(number)
        self.ways = Ways(producers, consumers)
        self.bottoms = [number for number, read in enumerate(producers) if len(read) > 1]

    def around(self, block: Block) -> list[int]:
        """Return, by name, the bottoms of a block to which a cycle lies on the way."""
        return block.through(self.cyclic) if any(self.cyclic) else [0] * block.size

    def diamonds(self, bottom: int, at: Iterable[int]) -> list[Diamond[Name]]:
        """Return the diamonds of one bottom, by tops; all ways are followed once."""
        outer = sorted(at, key=lambda top: str(self.names[top]))
        above = self._above(bottom)
        passed = {top: 1 << i for i, top in enumerate(outer)}
        between: list[list[int]] = [[] for _ in outer]
        for number in sorted(above):
            through = 0
            for producer in self.ways.producers[number]:
                through |= passed.get(producer, 0)
            passed[number] = passed.get(number, 0) | through
            while through:
                lowest = through & -through
                between[lowest.bit_length() - 1].append(number)
                through ^= lowest
        return [
            Diamond(
                self.names[top],
                self.names[bottom],
                tuple(name for number in inside for name in self.parts[number]),
                any(self.cyclic[number] for number in (top, *inside)),
            )
            for top, inside in zip(outer, between, strict=True)
        ]

    def _above(self, bottom: int) -> set[int]:
        found: set[int] = set()
        waiting = list(self.ways.producers[bottom])
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self.ways.producers[number]
        return found


@dataclass(slots=True)
class _Found:
    """The findings of the blocks so far, by number."""

    size: int
    bottoms: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    inside: set[int] = field(default_factory=set)
    outermost: dict[int, list[int]] = field(default_factory=dict)
    leader: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leader = list(range(self.size))

    def lead(self, number: int) -> int:
        """Return the number that stands for all those joined with one."""
        leader = self.leader
        while leader[number] != number:
            leader[number] = number = leader[leader[number]]
        return number

    def groups(self, places: _Places[Name]) -> list[frozenset[Name]]:
        """Return what was joined; of a component that only meets, its last member stands for it."""
        groups: dict[int, set[Name]] = {}
        for number in sorted(self.inside | self.kept):
            names = places.parts[number] if number in self.inside else (places.names[number],)
            groups.setdefault(self.lead(number), set()).update(names)
        return [frozenset(group) for group in groups.values()]


def _look(places: _Places[Name], wanted: Wanted[Name], block: Block, found: _Found) -> None:
    """Note what meets at the bottoms of a block, and join what is kept together."""
    parted = _real(places, wanted, block)
    met = 0
    for flags in parted:
        met |= flags
    found.bottoms.update(block.members(met))
    atomic = _those(places, block, wanted.atomic)
    aligned = _those(places, block, wanted.aligned) & met
    kept = [flags & atomic for flags in parted]
    if aligned:
        around = places.around(block)
        for number in range(block.size):
            every = places.names[number] in wanted.cut_at_once
            kept[number] |= parted[number] & aligned & (aligned if every else around[number])
        between = block.below(parted)
        for number in range(block.size):
            for bottom in block.members(parted[number] & aligned & ~between[number]):
                found.outermost.setdefault(bottom, []).append(number)
    _join(block, kept, found)


def _real(places: _Places[Name], wanted: Wanted[Name], block: Block) -> list[int]:
    """Return where ways part, without those that one cut serves."""
    above = [n for name in wanted.cut_at_once if (n := places.number_of.get(name, block.size)) < block.size]
    if not above:
        return block.parted
    parted = list(block.parted)
    apart = block.through([name in wanted.tables for name in places.names])
    for number in above:
        parted[number] &= apart[number]
    return parted


def _those(places: _Places[Name], block: Block, names: Collection[Name]) -> int:
    """Return the bottoms of a block that are among some names."""
    flags = 0
    for place, bottom in enumerate(block.bottoms):
        if places.names[bottom] in names:
            flags |= block.flag(place)
    return flags


def _join(block: Block, kept: list[int], found: _Found) -> None:
    """Join each name with the bottoms above which it lies between."""
    met = 0
    for flags in kept:
        met |= flags
    found.kept.update(block.members(met))
    joined: dict[int, int] = {}
    for place, bottom in enumerate(block.bottoms):
        lead = found.lead(bottom)
        joined[lead] = joined.get(lead, 0) | block.flag(place)
    for number, flags in enumerate(block.below(kept)):
        if not flags:
            continue
        found.inside.add(number)
        lead = found.lead(number)
        missing = flags & ~joined.get(lead, 0)
        while missing:
            other = found.lead(next(block.members(missing)))
            found.leader[other] = lead
            joined[lead] = joined.get(lead, 0) | joined.pop(other, 0)
            missing &= ~joined[lead]
