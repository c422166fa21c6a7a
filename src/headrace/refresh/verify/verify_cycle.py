"""Computes the fixed point of a cycle by the users' own texts, for `verify`.

Naive iteration: from nothing, every text over what the texts gave in the round before, until no round differs from the
one before. It shares neither reader nor rules with how cycles are refreshed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.algebra.plain_values import in_plain_values
from headrace.algebra.relations import Stored
from headrace.algebra.schema import no_rows_sql
from headrace.definitions.details import Details
from headrace.definitions.read_columns import held_to
from headrace.definitions.user_text import bind_text
from headrace.errors import UserError
from headrace.ivm.consolidate import difference
from headrace.names import TableName, quote
from headrace.ports import Runner
from headrace.sql.lower import lower

OLD, NEW = "old", "new"


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a member.

    Args:
        details: Its definition.
        outside: Table expressions of its sources that are not in the cycle.
    """

    details: Details
    outside: Mapping[TableName, str]


class TextFixpoint:
    """One naive iteration; `close` frees its temporary results.

    Args:
        texts: The members.
        runner: Runs Spark SQL under the semantics that all members share.
        catalogs: Catalogs of the session.
        limit: So many rounds may make a difference.
    """

    def __init__(
        self, texts: Mapping[TableName, Text], runner: Runner, catalogs: frozenset[str], *, limit: int
    ) -> None:
        self.texts = texts
        self.runner = runner
        self.catalogs = catalogs
        self.limit = limit
        self._tag = uuid.uuid4().hex[:8]
        self._views: dict[TableName, str] = {}

    def close(self) -> None:
        """Free what the last round gave."""
        self._release(self._views)
        self._views = {}

    def run(self) -> Mapping[TableName, str]:
        """Iterate; the views that have the members' rows then.

        Raises:
            UserError: `CYCLE_NOT_SETTLED`.
        """
        self._views = {name: self._view(name, 0) for name in self.texts}
        for name, text in self.texts.items():
            self.runner.view(self._views[name], no_rows_sql(text.details.output))
        for number in range(1, self.limit + 2):
            before, self._views = self._views, {name: self._view(name, number) for name in self.texts}
            try:
                for name, text in self.texts.items():
                    self.runner.materialize(self._views[name], self._query(text, before))
                settled = not any(self._differs(name, before[name]) for name in self.texts)
            finally:
                self._release(before)
            if settled:
                return self._views
        raise UserError(
            "CYCLE_NOT_SETTLED",
            f"The cycle of {', '.join(map(str, self.texts))} still changed after {self.limit} rounds.",
            hint="Raise max_cycle_rounds in headrace.toml.",
        )

    def _query(self, text: Text, views: Mapping[TableName, str]) -> str:
        details = text.details
        uses = {use.name: use for use in details.sources}

        def bind(name: TableName) -> str:
            if name not in views:
                return text.outside[name]
            held = held_to(quote(views[name]), uses[name].held_to(self.texts[name].details.output))
            return held if held.startswith("(") else f"(SELECT * FROM {held})"

        query = bind_text(
            details.text,
            namespace=details.namespace,
            catalogs=self.catalogs,
            views=details.views,
            bind=bind,
            case_sensitive=details.semantics.case_sensitive,
        )
        rows = f"SELECT * FROM (\n{query}\n) AS q({', '.join(quote(c.name) for c in details.output)})"
        return in_plain_values(rows, details.output)  # what other members read is as it is stored

    def _differs(self, name: TableName, before: str) -> bool:
        columns = tuple(c.name for c in self.texts[name].details.output)
        at = {OLD: quote(before), NEW: quote(self._views[name])}
        relation = difference(Stored(OLD, columns), Stored(NEW, columns))
        change = lower(relation, lambda leaf: at[getattr(leaf, "name", "")])
        return bool(self.runner.run(f"SELECT 1 FROM ({change}) LIMIT 1"))

    def _view(self, name: TableName, number: int) -> str:
        return f"__hr_{self._tag}_v{tuple(self.texts).index(name)}_{number}"

    def _release(self, views: Mapping[TableName, str]) -> None:
        for view in views.values():
            self.runner.release(view)
