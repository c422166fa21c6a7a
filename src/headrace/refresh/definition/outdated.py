"""Tells which stream tables must be defined again, and defines them again."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import Catalog, Status, StreamTable
from headrace.compiler.layout import LAYOUT
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details, from_json
from headrace.definitions.function_versions import changed_functions
from headrace.errors import HeadraceError
from headrace.graph.dag import Dag
from headrace.names import TableName
from headrace.ports import Session
from headrace.reasons import FullReason
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.define import NONE_STAGED, define, view_locations
from headrace.refresh.definition.source_keys import SourceKeys, out_of_date
from headrace.refresh.definition.table_spec import needs_companion
from headrace.schedule.options import Ties, parse_options


class Outdated:
    """Compares definitions with what they were compiled from.

    Args:
        catalog: The catalog.
        session: The user's session.
        plans: Compiled views.
    """

    def __init__(self, catalog: Catalog, session: Session, plans: CompiledViews) -> None:
        self.catalog = catalog
        self.session = session
        self.plans = plans

    def __call__(self, table: StreamTable, keys: SourceKeys | None = None) -> bool:
        """Return whether a stream table must be defined again.

        A view that it reads through was changed, or a function of the project that it calls, or what is known of keys
        of its sources, or the rules were, or it was altered from FULL to a mode that needs what a table that is always
        recomputed does not store, or what becomes of ties was altered, or it has left its cycle. A green that reads a
        public table of which there is a loaded green in its deployment by now, too.

        Args:
            table: The stream table.
            keys: What is known of keys; who asks about many tables reads it once.

        Raises:
            UserError: `FUNCTION_INVALID`: it calls functions, and they cannot be loaded.
        """
        details = from_json(table.details)
        if self.is_old(details, keys or SourceKeys(self.catalog)) or not self._redirects(details).keys().isdisjoint(
            table.sources
        ):
            return True
        if details.ties is not _ties(table, details):
            return True
        if details.cyclic and not Dag(self.catalog.dependencies()).component(table.name):
            return True
        return table.companion is None and needs_companion(details, table.refresh_mode)

    def _redirects(self, details: Details) -> dict[TableName, TableName]:
        """Return what a green reads in whose place: loaded greens of its deployment."""
        if not details.deployment:
            return {}
        greens = [g for g in self.catalog.greens() if g.deployment == details.deployment]
        own = {g.original: g.name for g in greens if g.promoted_at is None and g.name != g.original}
        if not own.items() & details.redirects.items():
            return {}  # a former generation stays by itself
        new = {t.name for t in self.catalog.stream_tables() if t.status is Status.NEW}
        return {original: name for original, name in own.items() if name not in new}

    def is_old(self, details: Details, keys: SourceKeys) -> bool:
        """Return whether what a stream table was compiled from is not that any more."""
        known = details.view_locations
        if details.layout != LAYOUT or (bool(known) and view_locations(self.catalog, known) != dict(known)):
            return True
        if details.disabled_passes != self.plans.disabled_in_definitions:
            return True
        return out_of_date(details, keys) or bool(changed_functions(details, self.session))

    def reads_new_views(self, details: Details, heads: Cut) -> bool:
        """Return whether views stand where a query reads tables; they count as moved."""
        with self.catalog.reading() as reader:
            bases = [use.name for use in details.sources if reader.find_stream_table(use.name) is None]
        return bool(heads.views_among(bases))

    def reason(self, table: StreamTable) -> FullReason:
        """Return why an outdated stream table is recomputed."""
        function = changed_functions(from_json(table.details), self.session)
        return FullReason.FUNCTION_CHANGED if function else FullReason.DEFINITION_CHANGED

    def defined_again(self, table: StreamTable, staged: Mapping[TableName, Details] = NONE_STAGED) -> Details:
        """Return the details of a stream table, found out anew.

        Args:
            table: The stream table.
            staged: New definitions of stream tables that it may read, whose stored tables are in `staging`.
        """
        details = from_json(table.details)
        again, view = define(
            table.query,
            catalog=self.catalog,
            session=self.session,
            plans=self.plans,
            namespace=details.namespace,
            semantics=details.semantics,
            redirects={**details.redirects, **self._redirects(details)},
            deployment=details.deployment,
            staged=staged,
            ties=_ties(table, details),
        )
        if view is not None and not staged.keys().isdisjoint(use.name for use in again.sources):
            self.plans.keep(table.name, again, view)  # compiled later, it would be over columns that are published now
        return again

    def without_lost_columns(
        self, table: StreamTable, heads: Cut, staged: Mapping[TableName, Details] = NONE_STAGED
    ) -> Details | None:
        """Return details without columns a source has lost.

        Only of a query that is not read as algebra; None when it used such a column, or none is lost. Which columns
        such a query uses is not known, but whether it can still be computed, to the same columns, is.
        """
        if not self.has_lost_columns(table, heads, staged):
            return None
        details = from_json(table.details)
        try:
            again = self.defined_again(table, staged)
        except HeadraceError:
            return None  # the refresh finds what is missing, and says so in the history
        same = [(c.name, c.type) for c in again.output] == [(c.name, c.type) for c in details.output]
        return again if same else None

    def has_lost_columns(
        self, table: StreamTable, heads: Cut, staged: Mapping[TableName, Details] = NONE_STAGED
    ) -> bool:
        """Return whether a source has lost columns of a query that is not read as algebra."""
        details = from_json(table.details)
        if details.incremental:
            return False
        streams = frozenset(t.name for t in self.catalog.stream_tables())
        try:
            now = heads.of([name for name in table.sources if name not in staged], streams)
        except HeadraceError:
            return False  # the refresh finds what is missing, and says so in the history
        there = {name: {c.name for c in head.meta.columns} for name, head in now.items()}
        there |= {name: {c.name for c in staged[name].output} for name in table.sources if name in staged}
        return any({c.name for c in use.columns} - there[use.name] for use in details.sources)


def _ties(table: StreamTable, details: Details) -> Ties:
    """Return what becomes of ties: as its properties say, else as when it was defined."""
    return parse_options(table.options).ties or details.ties
