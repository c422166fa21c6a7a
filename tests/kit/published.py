"""What holds in every state that was ever published, and in the history of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.catalog import Catalog, Version
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults, grouping

Frontiers = Mapping[TableName, Frontier]


def groups_of(catalog: Catalog) -> list[tuple[TableName, ...]]:
    """The groups of several stream tables."""
    cut = grouping({t.name: t for t in catalog.stream_tables()}, Defaults())
    return [members for members in cut.units.members.values() if len(members) > 1]


def check_groups(
    groups: Iterable[tuple[TableName, ...]], frontiers: Frontiers, newest: Mapping[TableName, Version]
) -> None:
    """Members of a group reflect each other as they are, and the same versions of all else."""
    for group in groups:
        seen: dict[TableName, set[int]] = {}
        for member in group:
            for source, version in frontiers.get(member, {}).items():
                seen.setdefault(source, set()).add(version)
        for source, versions in seen.items():
            expected = {newest[source].version} if source in group else versions
            assert versions == expected, f"{group} see {source} at {versions}"
            assert len(versions) == 1, f"{group} see {source} at {versions}"


def check_onward(before: Frontiers, after: Frontiers) -> None:
    """No frontier went back."""
    for name, frontier in before.items():
        assert all(after[name][source] >= version for source, version in frontier.items()), f"{name} went back"


def check_history(catalog: Catalog) -> None:
    """No table went back from one of its refreshes to the next."""
    reached: dict[TableName, Mapping[TableName, int]] = {}
    for entry in reversed(catalog.history()):
        if entry.frontier is not None:
            before = reached.get(entry.stream, {})
            assert all(version >= before.get(source, -1) for source, version in entry.frontier.items()), entry
            reached[entry.stream] = dict(entry.frontier)
