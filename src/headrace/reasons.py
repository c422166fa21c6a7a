"""Reasons why a refresh was FULL: a closed list, on whose codes dashboards and tests rely."""

from __future__ import annotations

from enum import StrEnum


class FullReason(StrEnum):
    """The reason a refresh recomputed the whole query."""

    FIRST_LOAD = "FIRST_LOAD"
    FORCED = "FORCED"
    OPERATOR_NOT_MAINTAINED = "OPERATOR_NOT_MAINTAINED"
    NOT_DETERMINISTIC = "NOT_DETERMINISTIC"
    SOURCE_NOT_INCREMENTAL = "SOURCE_NOT_INCREMENTAL"
    HISTORY_EXPIRED = "HISTORY_EXPIRED"
    SCHEMA_CHANGED = "SCHEMA_CHANGED"
    DEFINITION_CHANGED = "DEFINITION_CHANGED"
    FUNCTION_CHANGED = "FUNCTION_CHANGED"
    SOURCE_RECREATED = "SOURCE_RECREATED"
    COST = "COST"
    COMPANION_BEHIND = "COMPANION_BEHIND"
    CYCLE_SHRANK = "CYCLE_SHRANK"
    CHANGE_FAILED = "CHANGE_FAILED"
    STATEMENT_REFUSED = "STATEMENT_REFUSED"
    PROMOTED = "PROMOTED"
    ROLLED_BACK = "ROLLED_BACK"

    @property
    def sentence(self) -> str:
        """Return the reason in words."""
        return _SENTENCES[self]


_SENTENCES: dict[FullReason, str] = {
    FullReason.FIRST_LOAD: "first load",
    FullReason.FORCED: "asked for by the user",
    FullReason.OPERATOR_NOT_MAINTAINED: "the query has an operator that is not maintained incrementally",
    FullReason.NOT_DETERMINISTIC: "the query is not a function of its sources",
    FullReason.SOURCE_NOT_INCREMENTAL: "a source cannot be read incrementally",
    FullReason.HISTORY_EXPIRED: "a source's history since the last refresh has expired",
    FullReason.SCHEMA_CHANGED: "a source's schema changed",
    FullReason.DEFINITION_CHANGED: "the definition changed",
    FullReason.FUNCTION_CHANGED: "a function of the project that the query calls was changed",
    FullReason.SOURCE_RECREATED: "a source was dropped and created again",
    FullReason.COST: "recomputing was estimated to be cheaper",
    FullReason.COMPANION_BEHIND: "what changes are followed with was left behind while recomputing was cheaper",
    FullReason.CYCLE_SHRANK: "a cycle may have lost rows, and its members may only have kept each other's",
    FullReason.CHANGE_FAILED: "the query failed on a row of the change, which it may not read any more",
    FullReason.STATEMENT_REFUSED: "Spark refused a statement that follows the change",
    FullReason.PROMOTED: "a green was promoted, or exchanged for what it replaced",
    FullReason.ROLLED_BACK: "a promotion was taken back",
}
