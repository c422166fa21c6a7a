"""Refuses to move a project that somebody works on, or that is not as it was published."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from headrace.catalog import Catalog, Lease, resource_of
from headrace.errors import EnvironmentFault, UserError
from headrace.landing.source_leases import resources_of
from headrace.refresh.held_leases import owner_is_dead

MOVING = "move-catalog"
"""Lease of whoever moves the project."""

_SETTLED = 70.0
"""Seconds within which whoever publishes without a lease has ended, or is taken to have."""


def resources(catalog: Catalog) -> list[str]:
    """Return the leases of all that is published in a project."""
    with catalog.reading() as reader:
        streams, sources = reader.stream_tables(), reader.sources()
    found = {MOVING, *(resource_of(table.name) for table in streams)}
    return sorted(found.union(*map(resources_of, sources)))


def refuse_running(catalog: Catalog) -> None:
    """Refuse while schedulers run.

    Raises:
        UserError: `LAKE_MOVE_REFUSED`.
    """
    running = [s.owner for s in catalog.schedulers() if not owner_is_dead(s.owner)]
    if running:
        raise _refused(
            f"`headrace run` is at work: {', '.join(running)}.",
            "Run `headrace drain`, wait until it has ended, move, and start it again.",
        )


def refuse_deployments(catalog: Catalog) -> None:
    """Refuse while there are deployments, also such as were promoted and can be taken back.

    Raises:
        UserError: `LAKE_MOVE_REFUSED`.
    """
    with catalog.reading() as reader:
        found = {g.deployment for g in reader.greens()} | {d.name for d in reader.auto_deployments()}
    if found:
        raise _refused(
            f"There are deployments under way, or that can still be taken back: {', '.join(sorted(found))}.",
            "Promote them; `headrace deploy cancel` ends one, and after a promotion drops what was public before.",
        )


def refuse_unpublished(catalog: Catalog, leases: Callable[[], Sequence[Lease]]) -> None:
    """Put back what dead refreshes left; refuse what others are at, or have changed.

    Raises:
        UserError: `LAKE_MOVE_REFUSED`.
        EnvironmentFault: `FOREIGN_WRITER`.
    """
    catalog.reset_staging(held=leases())
    if dirty := catalog.dirty_staging():
        raise _refused(
            f"Somebody is writing {', '.join(map(str, dirty[:5]))}.",
            "Wait until it has been published or has failed, and move then.",
        )
    refuse_changed(catalog)


def refuse_changed(catalog: Catalog) -> None:
    """Refuse while stored tables are not what was published.

    Raises:
        EnvironmentFault: `FOREIGN_WRITER`.
    """
    if changed := catalog.foreign_writes():
        raise EnvironmentFault(
            "FOREIGN_WRITER",
            f"Another program than Headrace changed {', '.join(str(w.name) for w in changed[:5])}; nothing was moved.",
            detail="; ".join(f"{write.name} {write.what}" for write in changed[:5]),
            hint="With [lake] as it was before, `headrace repair` brings back what was published. Move then.",
        )


def wait_for_publications(catalog: Catalog) -> None:
    """Wait until no publication is undecided.

    Raises:
        EnvironmentFault: `PUBLICATION_PENDING`.
    """
    until = time.monotonic() + _SETTLED
    while pending := catalog.pending_publications():
        catalog.look(pending)
        if time.monotonic() >= until:
            raise EnvironmentFault(
                "PUBLICATION_PENDING",
                f"A publication of {', '.join(sorted(map(str, pending)))} is not decided yet; nothing was moved.",
                hint="Move again in a minute: it is decided by reading the tables.",
                retryable=True,
            )
        time.sleep(0.5)


def not_named() -> UserError:
    """Return the error for a project whose settings name no server."""
    return _refused(
        "headrace.toml names no REST catalog.",
        'Write [lake] with type = "rest" and uri; the way back needs it, too, until it is done.',
    )


def restless(names: Sequence[str]) -> EnvironmentFault:
    """Return the error for tables that others go on writing while they are moved."""
    listed = ", ".join(names[:5])
    return EnvironmentFault(
        "LAKE_BUSY",
        f"Tables were written again and again while they were moved: {listed}; nothing was moved.",
        hint="Stop what writes them for a moment: from the move on it has to use the other catalog anyhow.",
        retryable=True,
    )


def _refused(message: str, hint: str) -> UserError:
    return UserError("LAKE_MOVE_REFUSED", message, detail="Nothing was moved.", hint=hint)
