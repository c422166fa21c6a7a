"""Decides which stream tables get a new stored layout beside the running one.

Loading them in place would take long. Until then they stand still, as the rules of now cannot maintain what older ones
have stored.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from headrace.catalog import Catalog, Green, Status, StreamTable
from headrace.catalog.state.reader import Reader
from headrace.compiler.layout import LAYOUT
from headrace.definitions.details import deployment_of
from headrace.errors import EnvironmentFault
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults, Grouping, grouping
from headrace.results.refresh_results import RefreshMode

_DEPLOYMENT = re.compile(r"layout_\d+_\w+", re.ASCII)

_LENGTH = 63
"""Characters that the name of a deployment may have."""


def is_layout_deployment(name: str) -> bool:
    """Return whether a name is reserved for deployments that bring new layouts."""
    return _DEPLOYMENT.fullmatch(name) is not None


def is_old(table: StreamTable) -> bool:
    """Return whether a stream table was stored by rules of an older layout."""
    return bool(table.details) and _layout(table) < LAYOUT


def is_newer(table: StreamTable) -> bool:
    """Return whether a stream table was stored by rules of a layout that is not known yet."""
    return bool(table.details) and _layout(table) > LAYOUT


def waiting_in(catalog: Catalog, defaults: Defaults) -> dict[TableName, str]:
    """Return stream tables that wait for a new layout, each with the deployment that brings it.

    Args:
        catalog: The catalog.
        defaults: What the project wants, its limit among that.
    """
    with catalog.reading() as reader:
        tables = {t.name: t for t in reader.stream_tables()}
        if not any(is_old(table) for table in tables.values()):
            return {}
        return waiting_for_layout(reader, tables, grouping(tables, defaults, reader.sources()))


def waiting_for_layout(
    reader: Reader, tables: Mapping[TableName, StreamTable], grouping: Grouping
) -> dict[TableName, str]:
    """Return the same from one state of the catalog.

    A unit waits as a whole: a member that is loaded in place would have to be published with those that stand still.
    Loaded in place are units below the limit, cycles, tables that are recomputed each time or were never loaded, and
    what has two generations already.

    Args:
        reader: The state of the catalog.
        tables: All stream tables.
        grouping: The units.
    """
    limit = grouping.defaults.layout_limit
    old = [n for n, t in tables.items() if is_old(t) and t.refresh_mode is not RefreshMode.FULL]
    if limit is None or not old:
        return {}
    rows = {name: version.row_count or 0 for name, version in reader.newest_versions().items()}
    greens = reader.greens()
    found: dict[TableName, str] = {}
    for unit in dict.fromkeys(grouping.units.unit_of[name] for name in old):
        members = grouping.units.members[unit]
        moved = [rows.get(n, 0) for name in members if name in old for n in (name, *tables[name].sources)]
        if max(moved) > limit and all(name in rows and _can_wait(tables[name]) for name in members):
            deployment = _deployment(unit, members, greens)
            found |= dict.fromkeys(members, deployment) if deployment is not None else {}
    return found


def refuse_waiting(names: Sequence[TableName], waiting: Mapping[TableName, str]) -> None:
    """Refuse to load in place what waits for its new layout.

    Raises:
        EnvironmentFault: `LAYOUT_AWAITED`, retryable.
    """
    if name := next((name for name in names if name in waiting), None):
        raise EnvironmentFault(
            "LAYOUT_AWAITED",
            f"{name} keeps its rows and stands still until deployment {waiting[name]} has brought its new layout.",
            hint=f"A scheduler does that, or `headrace refresh {name}`; `headrace deploy status --all {waiting[name]}` "
            f"shows how far it is. `headrace refresh --full {name}` loads it in place.",
            retryable=True,
        )


def refuse_newer(tables: Iterable[StreamTable]) -> None:
    """Refuse to store anew what a newer version has stored.

    The two would load it in turns, each time they refresh it.

    Raises:
        EnvironmentFault: `LAYOUT_TOO_NEW`.
    """
    if table := next(filter(is_newer, tables), None):
        raise EnvironmentFault(
            "LAYOUT_TOO_NEW",
            f"{table.name} was stored by a newer version of Headrace, in layout {_layout(table)}; this one "
            f"knows layouts up to {LAYOUT}.",
            hint="Upgrade this one. To go back to it, end all newer processes, and store the table again by "
            f"`headrace refresh --full {table.name}`.",
        )


def _layout(table: StreamTable) -> int:
    return int(table.details.get("layout", 1))  # the first ones said nothing


def _can_wait(table: StreamTable) -> bool:
    details = table.details
    return not (deployment_of(details) or details.get("cyclic") or table.status is not Status.ACTIVE)


def _deployment(unit: TableName, members: Collection[TableName], greens: Sequence[Green]) -> str | None:
    """Return the deployment of a unit; None where a user has one under way with its members."""
    there = {g.deployment for g in greens if g.original in members or g.name in members}
    if not all(map(is_layout_deployment, there)) or len(there) > 1:
        return None
    return next(iter(there), _named_after(unit))


def _named_after(unit: TableName) -> str:
    """Return the name of a unit's deployment; no two units share one."""
    plain = "__".join((*unit.namespace, unit.table))
    name = f"layout_{LAYOUT}_" + re.sub(r"\W", "_", plain, flags=re.ASCII)
    if name.endswith(plain) and len(name) <= _LENGTH:
        return name
    digest = hashlib.sha256(str(unit).encode()).hexdigest()[:8]
    return f"{name[: _LENGTH - 9]}_{digest}"
