"""Fuses, gates and watermarks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from headrace.api.project_handle import Names, ProjectHandle
from headrace.names import TableName
from headrace.results.refresh_results import (
    RefreshResult,
)

if TYPE_CHECKING:
    from headrace.api.safeguards.fuses import BlownFuse
    from headrace.api.safeguards.gates import GateInfo
    from headrace.api.safeguards.watermarks import WatermarkInfo


class SafeguardVerbs(ProjectHandle):
    """Verbs that hold changes back."""

    def fuses(self, names: str | Names | None = None) -> tuple[BlownFuse, ...]:
        """Return stream tables whose fuses have blown, with the evidence; reads the catalog only.

        Args:
            names: The stream tables to tell of; None for all.

        Raises:
            UserError: `STREAM_TABLE_NOT_FOUND`.
        """
        from headrace.api.safeguards.fuses import blown_fuses

        blown = blown_fuses(self._catalog)
        wanted = None if names is None else {str(name) for name in self._several(names)}
        return tuple(fuse for fuse in blown if wanted is None or fuse.name in wanted)

    def resolve_fuse(self, name: str, resolution: str) -> tuple[RefreshResult, ...]:
        """Decide about a change that was larger than a stream table's fuse allows, and carry it out.

        Of a group that is published together, all blown fuses are resolved so.

        Args:
            name: The stream table.
            resolution: `apply`: refresh it, to what its sources are now. `reinitialize`: recompute it. `skip`: move its
                frontier and leave its contents, which then are known to differ from its query until it is recomputed.

        Returns:
            The refreshes of the table and of its group.

        Raises:
            UserError: `INVALID_OPTION`, `STREAM_TABLE_NOT_FOUND`, `FUSE_NOT_BLOWN`.
            HeadraceError: It could not be carried out; the fuse stays as it was.
        """
        from headrace.api.safeguards.fuses import parse_resolution, to_resolve
        from headrace.api.safeguards.watermarks import refuse_apart
        from headrace.events import FuseResolved
        from headrace.refresh.fuses.fuse import Resolution

        how, grouping = parse_resolution(resolution), self._grouping()
        wanted = to_resolve(self._catalog, grouping, self._name(name))
        refuse_apart(self._catalog, grouping, wanted)
        results = self._engine().creator.refresh_group(
            grouping.members(wanted[0]),
            self._heads(),
            full=wanted if how is Resolution.REINITIALIZE else (),
            resolved=dict.fromkeys(wanted, how),
        )
        self._decided(*(FuseResolved(str(table), how.value) for table in wanted))
        return results

    def gates(self) -> tuple[GateInfo, ...]:
        """Return sources that are held back; reads the catalog only."""
        from headrace.api.safeguards.gates import gate_infos

        return gate_infos(self._catalog)

    def close_gate(self, sources: str | Names) -> tuple[str, ...]:
        """Hold sources at their present versions, as while they are loaded, until opened.

        No refresh, scheduled or not, and no new stream table reads a later version. Mirrors of one database are held
        back together. One that is held back already stays where it is.

        Args:
            sources: Tables, or database sources.

        Returns:
            The tables that are held back.

        Raises:
            UserError: `TABLE_NOT_FOUND`; `INVALID_OPTION` for a stream table. Then no gate is closed.
        """
        from headrace.api.safeguards.gates import close_gate
        from headrace.events import GateClosed

        wanted = self._gated(sources)
        close_gate(self._catalog, wanted, self._heads())
        names = tuple(str(n) for n in wanted)
        self._decided(GateClosed(names))
        return names

    def open_gate(self, sources: str | Names | None = None) -> tuple[str, ...]:
        """Hold sources back no longer.

        Args:
            sources: Tables, or database sources; all that are held back when None.

        Returns:
            The tables.

        Raises:
            UserError: `GATE_NOT_CLOSED`; then no gate is opened.
        """
        from headrace.events import GateOpened

        wanted = tuple(self._catalog.gates()) if sources is None else self._gated(sources)
        self._catalog.open_gates(wanted)
        names = tuple(str(n) for n in wanted)
        if names:
            self._decided(GateOpened(names))
        return names

    def watermarks(self) -> tuple[WatermarkInfo, ...]:
        """Return groups of sources that must agree, and where they are; reads the catalog only."""
        from headrace.api.safeguards.watermarks import watermark_infos

        return watermark_infos(self._catalog)

    def create_watermark_group(self, name: str, sources: Names, tolerance: dt.timedelta | str) -> None:
        """Refresh readers of several sources only while these are complete to about one moment.

        Args:
            name: The group.
            sources: Its tables, two or more; nothing waits for a table that is in no group.
            tolerance: By how much their watermarks may be apart: a duration, zero or more.

        Raises:
            UserError: `INVALID_OPTION`, `TABLE_NOT_FOUND`, `WATERMARK_GROUP_EXISTS`, `WATERMARK_TAKEN`.
        """
        from headrace.api.safeguards.watermarks import create_group

        wanted = tuple(dict.fromkeys(self._names(sources)))
        create_group(self._catalog, name, wanted, tolerance, self._heads())

    def drop_watermark_group(self, name: str, *, if_exists: bool = False) -> None:
        """Have nothing wait for a group of sources any more.

        Raises:
            UserError: `WATERMARK_GROUP_NOT_FOUND`.
        """
        from headrace.api.safeguards.watermarks import drop_group

        drop_group(self._catalog, name, if_exists=if_exists)

    def advance_watermark(self, source: str, moment: dt.datetime | str) -> None:
        """Say that a source is complete up to a moment.

        Args:
            source: A table that is in a watermark group.
            moment: The moment, with a time zone; as text in ISO format. It may not go back.

        Raises:
            UserError: `INVALID_OPTION`, `WATERMARK_UNKNOWN`, `WATERMARK_BACKWARDS`.
        """
        from headrace.api.safeguards.watermarks import parse_moment
        from headrace.events import WatermarkAdvanced

        name, until = self._name(source), parse_moment(moment)
        self._catalog.advance_watermark(name, until)
        self._decided(WatermarkAdvanced(str(name), until.isoformat()))

    def _gated(self, sources: str | Names) -> tuple[TableName, ...]:
        from headrace.api.safeguards.gates import to_gate

        texts = [sources] if isinstance(sources, str) else sources
        return tuple(dict.fromkeys(n for text in texts for n in to_gate(self._catalog, text, self._name)))
