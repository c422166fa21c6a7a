"""Reads several tables as of one published state: `hr.at()`."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from headrace.api.session import LazySpark
from headrace.catalog import Catalog
from headrace.names import qualify, split_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Pinned:
    """One published state of the lake; everything read through it belongs together."""

    def __init__(self, catalog: Catalog, lazy: LazySpark, when: dt.datetime | int | None) -> None:
        from headrace.refresh.cut.pinned_state import PinnedState

        self._state = PinnedState(catalog, when, lambda text: lazy.runner().describe(text))
        self._lazy = lazy

    def table(self, name: str) -> DataFrame:
        """Return a table in this state.

        Raises:
            UserError: `TABLE_NOT_FOUND`, `HISTORY_EXPIRED`.
        """
        catalogs = self._lazy.catalogs()
        full_name = qualify(split_identifier(name), self._lazy.namespace(), catalogs)
        expression = self._state.expression(full_name, catalogs, case_sensitive=self._case_sensitive)
        return self._lazy.session().sql(f"SELECT * FROM {expression}")

    def sql(self, query: str) -> DataFrame:
        """Return a query over tables in this state."""
        from headrace.spark.errors import translated

        catalogs = self._lazy.catalogs()
        text = self._state.sql(query, self._lazy.namespace(), catalogs, case_sensitive=self._case_sensitive)
        with translated(query):
            return self._lazy.session().sql(text)

    @property
    def _case_sensitive(self) -> bool:
        return self._lazy.runner().semantics.case_sensitive
