"""Adds tables to a database source, and takes tables out of it, while the others go on.

Tables that are added are copied at one cut with the changes of all others, and published with them. Until then the
catalog knows nothing of them, so that a failure, or a crash, leaves the source as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from headrace.catalog import DatabaseSource, Publication, SourceMove, SourceStatus
from headrace.catalog.records import Json
from headrace.errors import HeadraceError, UserError
from headrace.events import Notice
from headrace.landing.lander import Lander, not_active, untold
from headrace.landing.source_leases import resources_of
from headrace.names import TableName
from headrace.refresh.held_leases import holding_leases
from headrace.results.source_results import LandingResult

Change = Callable[[Json], Json]
"""Gives a source's options as they are from now on."""


def add_tables(lander: Lander, name: str, change: Change, tables: Iterable[str]) -> LandingResult:
    """Capture further tables of a source.

    Args:
        lander: Lands.
        name: The source.
        change: Puts the tables into its options.
        tables: Names of their mirrors.

    Raises:
        UserError: `SOURCE_NOT_ACTIVE`, `SOURCE_GATED`, `TABLE_EXISTS`, or what the capture finds; nothing was changed
            then.
    """
    source = lander.catalog.source(name)
    if source.status is not SourceStatus.ACTIVE:
        raise not_active(source, "Resume it, or take a new snapshot of a stopped one, and add the tables then.")
    _refuse_gated(lander, source)
    change(source.options)
    mirrors = lander.new_mirrors(name, tables)
    names = [m.name for m in mirrors]

    def become(now: DatabaseSource) -> DatabaseSource:
        return replace(now, options=change(now.options), mirrors=(*now.mirrors, *mirrors))

    return lander.renew(name, lambda capture, now: capture.renew(now.position or {}, names), become)


def _refuse_gated(lander: Lander, source: DatabaseSource) -> None:
    """Refuse to add mirrors while others of the source are gated.

    Readers of both would see a mixture of versions.
    """
    closed = lander.catalog.gates()
    if gated := [str(m.name) for m in source.mirrors if m.name in closed]:
        raise UserError(
            "SOURCE_GATED",
            f"Tables cannot be added to source {source.name} while {gated[0]} is held back.",
            hint=f"Open its gate first: `headrace gate open {' '.join(map(str, gated))}`.",
        )


def drop_tables(lander: Lander, name: str, change: Change, mirrors: Sequence[TableName]) -> tuple[TableName, ...]:
    """Take tables out of a source; their mirrors are dropped.

    Args:
        lander: Lands.
        name: The source.
        change: Takes the tables out of its options.
        mirrors: Their mirrors.

    Raises:
        UserError: `SOURCE_UNKNOWN`, `SOURCE_NOT_ACTIVE`, `HAS_CONSUMERS`, `SOURCE_WITHOUT_TABLES`.
    """
    _refuse_none(lander.catalog.source(name), mirrors)
    lander.refuse_read(name, mirrors)
    with holding_leases(lander.catalog, resources_of(lander.catalog.source(name)), patience=lander.patience) as leases:
        source = lander.catalog.source(name)
        if source.position is None:
            raise not_active(source, f"It was never loaded: `headrace source drop {name}` drops all of it.")
        _refuse_none(source, mirrors)
        stored = tuple(t for m in source.mirrors if m.name in mirrors for t in m.stored)
        options, own = change(source.options), tuple(mirrors)
        move = SourceMove(name, source.position, source.position, options=options, removes=own)
        lander.catalog.reset_staging(stored, held=leases())
        lander.catalog.publish_or_settle(Publication(sources=(move,), deletes=stored, leases=leases()))
        _tidy(lander, lander.catalog.source(name))
    return own


def _refuse_none(source: DatabaseSource, mirrors: Collection[TableName]) -> None:
    if not {m.name for m in source.mirrors} - set(mirrors):
        raise UserError(
            "SOURCE_WITHOUT_TABLES",
            f"Source {source.name} would have no table left.",
            hint=f"Drop the source instead: `headrace source drop {source.name}`.",
        )


def _tidy(lander: Lander, source: DatabaseSource) -> None:
    """Remove what the server keeps for dropped mirrors, or leave it to the next landing."""
    with suppress(HeadraceError):  # its connection string may not be set here
        lander.open_capture(source, untold).tidy()
        return
    lander.events.emit(
        Notice(f"The tables stay in the publication of source {source.name} until its server can be reached again.")
    )
