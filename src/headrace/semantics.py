"""Settings that change a query's result besides its text; part of every definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
CASE_SENSITIVE = "spark.sql.caseSensitive"


@dataclass(frozen=True, slots=True)
class Semantics:
    """Session settings that are part of a definition.

    Args:
        time_zone: Session time zone, such as `UTC` or `Europe/Vienna`.
        ansi: ANSI mode: errors instead of NULL for overflow, bad casts and division by zero.
        case_sensitive: Whether column names differ by case.
    """

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False

    def options(self) -> Mapping[str, str]:
        """Return the Spark options that establish these semantics."""
        return {
            TIME_ZONE: self.time_zone,
            ANSI: str(self.ansi).lower(),
            CASE_SENSITIVE: str(self.case_sensitive).lower(),
        }
