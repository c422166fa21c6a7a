"""Finds where ways part that meet again, for many bottoms at once.

Ways down to a bottom make a dominator tree with the bottom at its root: a name dominates another when it lies on all
ways from that to the bottom. The label of a name is the dominator of it at depth one, or itself where it stands
there. Names that the bottom reads stand at depth one; any other name takes the label of those that read it where they
agree, and stands at depth one itself where they differ: there ways part that have nothing but both ends in common.
That is all-pairs two-reachability; writing labels in bits, to compare many by one operation, is due to Georgiadis,
Graf, Italiano, Parotsidis, Uznański: All-Pairs 2-Reachability in O(n^w log n) Time (2017).

A row is the labels of one name for a block of bottoms: a Python integer of fields side by side, a field per bottom and
in it a number. Taking over a reader's labels costs three operations on integers, however many bottoms there are. The
highest bit of a field, its flag, is no part of the number: sets of bottoms are integers with flags only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BLOCK = 512
"""Bottoms that are looked at together: rows of 10,000 names stay below 40 MB."""

Row = tuple[int, int, int]
"""Of a name: its labels, 0 where it does not lead to a bottom; the same with ones there; ones where it does."""


@dataclass(frozen=True, slots=True)
class Ways:
    """A graph by numbers, in topological order.

    Args:
        producers: By number, what it reads.
        consumers: By number, what reads it.
    """

    producers: Sequence[Sequence[int]]
    consumers: Sequence[Sequence[int]]

    def blocks(self, bottoms: Sequence[int]) -> Iterator[Block]:
        """Yield bottoms in blocks, each with where the ways part that meet there."""
        for start in range(0, len(bottoms), BLOCK):
            yield Block(self, bottoms[start : start + BLOCK])


class Block:
    """Finds where ways part that meet at some bottoms; sets of bottoms are integers of flags.

    Args:
        ways: The graph.
        bottoms: Numbers, ascending.

    Attributes:
        parted: By number, the bottoms at which ways meet that part there.
        leads: By number, the bottoms that it leads to, itself left out.
    """

    def __init__(self, ways: Ways, bottoms: Sequence[int]) -> None:
        self.ways = ways
        self.bottoms = bottoms
        self.size = bottoms[-1] + 1  # what comes later leads to none of them
        self.bits = len(ways.producers).bit_length()
        self.ones = sum(1 << i * (self.bits + 1) for i in range(len(bottoms)))
        self.flags = self.ones << self.bits
        self.parted = [0] * self.size
        self.leads = [0] * self.size
        self._sweep()

    def flag(self, place: int) -> int:
        """Return the set of one bottom, by its place in the block."""
        return 1 << place * (self.bits + 1) + self.bits

    def members(self, flags: int) -> Iterator[int]:
        """Yield the numbers of a set of bottoms."""
        while flags:
            lowest = flags & -flags
            yield self.bottoms[lowest.bit_length() // (self.bits + 1) - 1]
            flags ^= lowest

    def below(self, parted: Sequence[int]) -> list[int]:
        """Return by number the bottoms above which it lies on ways that part: between both ends.

        Args:
            parted: By number, bottoms with ways that part there; as `Block.parted` or less.
        """
        passed = [0] * self.size
        between = [0] * self.size
        for number in range(self.size):
            above = 0
            for producer in self.ways.producers[number]:
                above |= passed[producer]
            between[number] = above & self.leads[number]
            passed[number] = above | parted[number]
        return between

    def through(self, marked: Sequence[bool]) -> list[int]:
        """Return by number the bottoms that it leads to through a marked name or being one.

        A marked bottom does not count.

        Args:
            marked: By number, whether it is marked.
        """
        found = [0] * self.size
        for number in reversed(range(self.size)):
            if marked[number]:
                found[number] = self.leads[number]
                continue
            for consumer in self.ways.consumers[number]:
                if consumer < self.size:
                    found[number] |= found[consumer]
        return found

    def _sweep(self) -> None:
        bits, ones, flags = self.bits, self.ones, self.flags
        full = flags - ones  # every bit of every number
        read, own = self._direct()
        rows: list[Row | None] = [None] * self.size
        for number in reversed(range(self.size)):
            every, common, led = 0, full, 0
            for consumer in self.ways.consumers[number]:
                if consumer < self.size and (row := rows[consumer]) is not None:
                    every |= row[0]
                    common &= row[1]
                    led |= row[2]
            field = own.get(number, 0)
            if not led and not field:
                continue
            differ = (((every ^ common) & led) + full) & flags
            self.parted[number] = differ
            self.leads[number] = (led << 1) & flags
            depth_one = (differ - (differ >> bits)) | read.get(number, 0)
            labels = every ^ ((every ^ number * ones) & depth_one) | (number * ones & field)
            led |= field
            rows[number] = (labels, labels | (full ^ led), led)

    def _direct(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return by number the fields of the bottoms that read it, and of the bottom it is."""
        read: dict[int, int] = {}
        own: dict[int, int] = {}
        for place, bottom in enumerate(self.bottoms):
            own[bottom] = ((1 << self.bits) - 1) << place * (self.bits + 1)
            for producer in self.ways.producers[bottom]:
                read[producer] = read.get(producer, 0) | own[bottom]
        return read, own
