"""Settings that change a query's result besides its text; part of every definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
CASE_SENSITIVE = "spark.sql.caseSensitive"
QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"
RELATION_PRECEDENCE = "spark.sql.ansi.relationPrecedence"
CTE_PRECEDENCE = "spark.sql.legacy.ctePrecedencePolicy"
SET_OPERATIONS_IN_ORDER = "spark.sql.legacy.setopsPrecedence.enabled"
ORDER_BY_ORDINAL = "spark.sql.orderByOrdinal"
TIMESTAMP_TYPE = "spark.sql.timestampType"

READING: Mapping[str, str] = {
    QUOTED_NAMES: "false",
    RELATION_PRECEDENCE: "false",
    CTE_PRECEDENCE: "CORRECTED",
    SET_OPERATIONS_IN_ORDER: "false",
    ORDER_BY_ORDINAL: "true",
    TIMESTAMP_TYPE: "TIMESTAMP_LTZ",
}
"""Options by which Spark finds another meaning in the same text, each with its usual value."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """Session settings that are part of a definition.

    Args:
        time_zone: Session time zone, such as `UTC` or `Europe/Vienna`.
        ansi: ANSI mode: errors instead of NULL for overflow, bad casts and division by zero.
        case_sensitive: Whether column names differ by case.
        unusual: Options among `READING` that have another value than usual, each with that, in their order.
    """

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    unusual: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def established_by(option: Callable[[str], object]) -> Semantics:
        """Return the semantics of Spark options.

        Args:
            option: Gives an option's text, as somebody wrote it: Spark reads `TRUE` as it does `true`.
        """

        def value(name: str, like: str = "true") -> str:
            text = str(option(name)).strip()
            return text.upper() if like.isupper() else text.lower()

        reading = {name: value(name, usual) for name, usual in READING.items()}
        unusual = tuple((name, found) for name, found in reading.items() if found != READING[name])
        return Semantics(str(option(TIME_ZONE)), value(ANSI) == "true", value(CASE_SENSITIVE) == "true", unusual)

    @property
    def read_unusually(self) -> frozenset[str]:
        """Return the options by which a text is read in another way than usual."""
        return frozenset(name for name, _ in self.unusual)

    def options(self) -> Mapping[str, str]:
        """Return the Spark options that establish these semantics."""
        return {
            TIME_ZONE: self.time_zone,
            ANSI: str(self.ansi).lower(),
            CASE_SENSITIVE: str(self.case_sensitive).lower(),
            **READING,
            **dict(self.unusual),
        }
