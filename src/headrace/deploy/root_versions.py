"""Versions of root sources that stream tables reflect, through all that lies between.

Two generations stand at one cut exactly when they agree on these, whatever numbers their own versions have.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.catalog.state.reader import Reader
from headrace.frontier import Frontier
from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class Range:
    """Versions of a root source that a stream table reflects, by its different ways to it."""

    oldest: int
    newest: int

    @property
    def only(self) -> tuple[int, ...]:
        """Return the one version that it reflects; nothing where it reflects several."""
        return (self.newest,) if self.oldest == self.newest else ()


Roots = Mapping[TableName, Range]


@dataclass(frozen=True, slots=True)
class RootVersions:
    """Follows frontiers to the sources that are no stream tables.

    Args:
        reader: One state of the catalog.
    """

    reader: Reader
    _frontiers: dict[TableName, Frontier] = field(default_factory=dict)
    _newest: dict[TableName, int] = field(default_factory=dict)
    _past: dict[TableName, Mapping[int, Frontier]] = field(default_factory=dict)
    _known: dict[tuple[TableName, int], Roots] = field(default_factory=dict)

    def of(self, name: TableName) -> Roots:
        """Return the versions that a stream table reflects now; none before its first load."""
        self._read()
        return self._joined(self._frontiers.get(name, Frontier()))

    def _read(self) -> None:
        if not self._newest:
            self._frontiers.update(self.reader.frontiers())
            self._newest.update({n: v.version for n, v in self.reader.newest_versions().items()})

    def _joined(self, frontier: Mapping[TableName, int]) -> Roots:
        found: dict[TableName, Range] = {}
        for source, version in frontier.items():
            for root, own in self._at(source, version).items():
                other = found.get(root, own)
                found[root] = Range(min(own.oldest, other.oldest), max(own.newest, other.newest))
        return found

    def _at(self, name: TableName, version: int) -> Roots:
        key = (name, version)
        if key not in self._known:
            frontier = self._frontier_at(name, version)
            self._known[key] = {name: Range(version, version)} if frontier is None else self._joined(frontier)
        return self._known[key]

    def _frontier_at(self, name: TableName, version: int) -> Mapping[TableName, int] | None:
        """Return the newest frontier of a stream table at one of its versions; None for a root."""
        if name not in self._frontiers:
            return None
        if self._newest.get(name) == version:
            return self._frontiers[name]
        if name not in self._past:
            self._past[name] = dict(self.reader.past_frontiers(name))
        return self._past[name].get(version)


def behind(green: Roots, blue: Roots) -> dict[TableName, int]:
    """Return by how many versions of which root sources one generation is behind another."""
    missing = {root: blue[root].newest - own.oldest for root, own in green.items() if root in blue}
    return {root: number for root, number in missing.items() if number > 0}


def behind_seconds(reader: Reader, green: Roots, missing: Mapping[TableName, int], now: dt.datetime) -> float | None:
    """Return for how long a generation has lacked a version that the other one reflects.

    Args:
        reader: The state of the catalog.
        green: Versions of root sources that it reflects.
        missing: By how many versions of which it is behind.
        now: The time.

    Returns:
        0 where it is not behind; None where the versions are not kept any more.
    """
    if not missing:
        return 0.0
    oldest = reader.versions_at({root: green[root].oldest + 1 for root in missing})
    since = min((version.committed_at for version in oldest.values()), default=None)
    return None if since is None else max(0.0, (now - since).total_seconds())


def within_threshold(missing: Mapping[TableName, int], seconds: float | None, threshold: float) -> bool:
    """Return whether a generation that lacks versions for so long counts as converged."""
    return not missing or (seconds is not None and threshold > 0 and seconds <= threshold)


def at_one_cut(one: Roots, other: Roots) -> bool:
    """Return whether two generations agree on every root source that both reflect."""
    return all(one[root] == other[root] for root in one.keys() & other.keys())
