"""Frontiers: which version of each source a stream table's contents reflect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headrace.names import TableName


@dataclass(frozen=True, slots=True)
class Frontier(Mapping[TableName, int]):
    """A map from source relation to version, ordered pointwise.

    Args:
        versions: Version of each source, non-negative.
    """

    versions: Mapping[TableName, int] = field(default_factory=dict)

    def __getitem__(self, source: TableName) -> int:
        return self.versions[source]

    def __iter__(self) -> Iterator[TableName]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)

    def changed(self, to: Frontier) -> frozenset[TableName]:
        """Return the sources whose version differs in `to`, new sources included."""
        return frozenset(s for s, v in to.items() if self.versions.get(s) != v)

    def as_dict(self) -> dict[str, int]:
        """Return plain JSON form, by name as users write it."""
        return {str(s): v for s, v in sorted(self.versions.items())}
