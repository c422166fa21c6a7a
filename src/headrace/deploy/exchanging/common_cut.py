"""Refuses generations that do not stand at one cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headrace.catalog import Green
from headrace.catalog.state.reader import Reader
from headrace.deploy.root_versions import RootVersions, at_one_cut, behind
from headrace.errors import EnvironmentFault
from headrace.names import TableName

AGAIN = "Try again; a pause of the scheduler (`headrace pause`) helps where production never stands still."


def refuse_apart(
    chosen: Sequence[Green], reader: Reader, units: Mapping[TableName, Collection[TableName]]
) -> dict[TableName, int]:
    """Refuse generations that do not stand at one cut.

    A public table that cannot be refreshed any more may be behind: its green moves it on. Not so where it is published
    together with others, which would stay behind.

    Args:
        chosen: The second generations.
        reader: One state of the catalog.
        units: By public stream table, what is published together with it.

    Returns:
        The versions of root sources at which they stand.

    Raises:
        EnvironmentFault: `NO_COMMON_CUT`, retryable.
    """
    roots, frontiers = RootVersions(reader), reader.frontiers()
    newest = {n: v.version for n, v in reader.newest_versions().items()}
    names, originals = {g.name for g in chosen}, {g.original for g in chosen}
    cut: dict[TableName, int] = {}
    for green in chosen:
        if green.public:
            continue  # it leaves: nobody reads it together with the others afterwards
        own, public = roots.of(green.name), roots.of(green.original)
        alone = set(units.get(green.original, ())) <= originals
        back = [s for s, v in frontiers.get(green.original, {}).items() if frontiers[green.name].get(s, v) < v]
        stale = [s for s, v in frontiers[green.name].items() if s in names and newest[s] != v]
        mixed = [root for root, range_ in own.items() if range_.oldest != range_.newest and public.get(root) != range_]
        together = at_one_cut(own, public) or (alone and not behind(own, public))
        if back or stale or mixed or not together:
            raise _no_common_cut(green.original)
        for root, range_ in own.items():
            if cut.setdefault(root, range_.newest) != range_.newest:
                raise _no_common_cut(green.original)
    return cut


def refuse_followers_apart(followers: Sequence[TableName], reader: Reader, cut: Mapping[TableName, int]) -> None:
    """Refuse an exchange at whose cut those that are published with it do not stand.

    Args:
        followers: What is published with it.
        reader: One state of the catalog.
        cut: The versions of root sources at which they stand.

    Raises:
        EnvironmentFault: `NO_COMMON_CUT`, retryable.
    """
    roots = RootVersions(reader)
    for name in followers:
        if any(root in cut and cut[root] not in own.only for root, own in roots.of(name).items()):
            raise _no_common_cut(name)


def refuse_cut_apart(cut: Mapping[TableName, int], now: Mapping[TableName, int]) -> None:
    """Refuse a cut that is another one than root sources stand at.

    Args:
        cut: The versions of root sources at which generations stand.
        now: Those at which others are refreshed.

    Raises:
        EnvironmentFault: `NO_COMMON_CUT`, retryable.
    """
    if other := next((root for root, version in cut.items() if now.get(root) != version), None):
        raise _no_common_cut(other)


def _no_common_cut(name: TableName) -> EnvironmentFault:
    return EnvironmentFault(
        "NO_COMMON_CUT",
        f"The generations of {name} do not stand at one cut, as its sources moved on; nothing was exchanged.",
        hint=f"{AGAIN} Where its group stands still because a query fails, `CREATE OR REPLACE` mends that in place.",
        retryable=True,
    )
