"""Explains stream tables and queries: how they would be refreshed, and what a refresh did."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from headrace.api.refresh_mode import parse_mode
from headrace.api.refreshing import RefreshVerbs
from headrace.errors import UserError
from headrace.names import TableName

if TYPE_CHECKING:
    from headrace.results.refresh_results import Explanation, TableSettings


class ExplainVerbs(RefreshVerbs):
    """Verbs that explain; analysing refreshes."""

    def explain(
        self,
        name_or_query: str,
        *,
        refresh_mode: str | None = None,
        passes: bool = False,
        analyze: bool = False,
    ) -> Explanation:
        """Say how a stream table's next refresh would run, or how a query would be maintained.

        Args:
            name_or_query: A stream table's name, or a query.
            refresh_mode: Explain this mode instead of the table's own.
            passes: Report the optimiser's passes: which fired, what each changed, and estimated costs before and after.
            analyze: Refresh the stream table now, as `refresh` does, and report what each step did.

        Raises:
            UserError: `INVALID_OPTION`: `analyze` of a query, or together with another option.
            HeadraceError: With `analyze`, as `refresh` does; where only a database that is read failed to be landed,
                what could be refreshed was, and `history` has it.
        """
        if analyze and (refresh_mode or passes):
            raise UserError(
                "INVALID_OPTION",
                "Analysing a refresh cannot be combined with a refresh mode, or with passes.",
                hint="It reports the refresh that is due, in the mode that is chosen for it.",
            )
        try:
            name = self._name(name_or_query.strip())
        except UserError:
            if analyze:
                raise UserError(
                    "INVALID_OPTION",
                    "Only a stream table can be analysed: analysing is refreshing it.",
                    hint="Name a stream table; without `analyze`, a query is explained as it would be maintained.",
                ) from None
            return self.explain_query(name_or_query, refresh_mode=refresh_mode, passes=passes)
        return self._analyze(name) if analyze else self._explain(name, refresh_mode, passes)

    def _analyze(self, name: TableName) -> Explanation:
        from headrace.refresh.explain.analysis import analysis

        name = self._catalog.stream_table(name).name
        with self._engine().refresher.recording() as recorded:
            result = self.refresh(str(name))
        return dataclasses.replace(analysis(result, recorded.get(name)), settings=self._set_for(name))

    def explain_query(self, query: str, *, refresh_mode: str | None = None, passes: bool = False) -> Explanation:
        """Say how a query would be maintained, were it a stream table; arguments as for `explain`."""
        return self._explain(query, refresh_mode, passes)

    def _explain(self, subject: TableName | str, refresh_mode: str | None, passes: bool) -> Explanation:
        from headrace.refresh.explain.gather_explanation import explain

        plans, refresher, _ = self._engine()
        mode = parse_mode(refresh_mode) if refresh_mode else None
        found = explain(
            subject,
            mode,
            catalog=self._catalog,
            session=self._lazy,
            plans=plans,
            heads=refresher.heads(),
            statistics=refresher.statistics,
            changes=refresher.changes,
            passes=passes,
        )
        if isinstance(subject, str):
            return found
        settings = self._set_for(subject)
        shown = () if passes else (("settings", str(settings)),)
        return dataclasses.replace(found, settings=settings, sections=(*shown, *found.sections))

    def _set_for(self, name: TableName) -> TableSettings:
        """Return what is set for a stream table, and the group that this makes it a member of."""
        from headrace.results.refresh_results import TableSettings

        table, grouping = self._catalog.stream_table(name), self._grouping()
        unit = grouping.units.unit_of[table.name]
        group = grouping.group(unit)
        return TableSettings(
            schedule=table.schedule,
            refresh_mode=table.refresh_mode,
            properties=dict(table.options),
            pool=grouping.options[table.name].pool or None,
            group=group,
            members=() if group is None else tuple(map(str, grouping.members(table.name))),
            policy=None if group is None else grouping.policy(unit).value,
        )
