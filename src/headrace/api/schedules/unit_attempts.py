"""Begins units that are refreshed by hand, some of them a second time, at a new cut.

That is where somebody else was ahead of the first cut, or where a new stored layout has to be loaded beside the running
one before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headrace.catalog import Catalog
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.api.schedules.refresh_units import Begin
    from headrace.names import TableName
    from headrace.refresh.cut.cut import Cut
    from headrace.refresh.groups.side_by_side import Together


class UnitAttempts:
    """Begins units once more that failed; called from several threads at once.

    Args:
        catalog: The catalog.
        begin: Makes the refresh of a unit at a cut.
        heads: Returns a new cut.
        bring_layout: Loads the new stored layout of a unit, and exchanges the two.
    """

    def __init__(
        self,
        catalog: Catalog,
        begin: Callable[[TableName, Cut], Together],
        heads: Callable[[], Cut],
        bring_layout: Callable[[TableName], None],
    ) -> None:
        self._catalog = catalog
        self._begin = begin
        self._heads = heads
        self._bring_layout = bring_layout
        self._loading = threading.Lock()
        self._awaiting: set[TableName] = set()

    def again(self, unit: TableName, error: HeadraceError) -> Begin | None:
        """Return how a unit that failed is begun once more, None where its failure stands."""
        if error.code == "LAYOUT_AWAITED":
            self._awaiting.add(unit)
            return lambda: self._after_layout(unit)
        if error.code == "CUT_OVERTAKEN":  # whoever was waited for had seen more
            return lambda: self._begin(unit, self._heads())
        return None

    def loaded_for(self, names: Sequence[TableName]) -> tuple[TableName, ...]:
        """Return the second generations of stream tables that may be loaded for a new layout."""
        if not self._awaiting:
            return ()
        return tuple(green.name for green in self._catalog.greens() if green.original in names)

    def _after_layout(self, unit: TableName) -> Together:
        with self._loading:  # one at a time: whoever notes how far loads are hears all of them
            self._bring_layout(unit)
        return self._begin(unit, self._heads())
