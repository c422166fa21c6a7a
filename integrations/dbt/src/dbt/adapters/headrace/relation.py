"""Names of tables and views as dbt knows them; one kind more than dbt-spark has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dbt.adapters.spark import SparkRelation


class HeadraceRelationType(StrEnum):
    """The kind of relation that a name stands for."""

    Table = "table"
    View = "view"
    StreamTable = "stream_table"
    CTE = "cte"
    MaterializedView = "materialized_view"
    Ephemeral = "ephemeral"
    External = "external"
    PointerTable = "pointer_table"
    Function = "function"


@dataclass(frozen=True, eq=False, repr=False)
class HeadraceRelation(SparkRelation):
    """A table, view or stream table of the lake.

    Args:
        type: Which of them.
    """

    type: HeadraceRelationType | None = None
    StreamTable = HeadraceRelationType.StreamTable

    @classmethod
    def get_relation_type(cls) -> Any:
        """Return the class `HeadraceRelationType`."""
        return HeadraceRelationType

    @property
    def is_stream_table(self) -> bool:
        """Return whether Headrace maintains it."""
        return self.type == HeadraceRelationType.StreamTable
