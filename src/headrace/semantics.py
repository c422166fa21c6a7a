"""Settings that change a query's result besides its text; part of every definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    @staticmethod
    def established_by(option: Callable[[str], object]) -> Semantics:
        """Return the semantics of Spark options.

        Args:
            option: Gives an option's text, as somebody wrote it: Spark reads `TRUE` as it does `true`.
        """

        def on(name: str) -> bool:
            return str(option(name)).strip().lower() == "true"

        return Semantics(str(option(TIME_ZONE)), on(ANSI), on(CASE_SENSITIVE))

    def options(self) -> Mapping[str, str]:
        """Return the Spark options that establish these semantics."""
        return {
            TIME_ZONE: self.time_zone,
            ANSI: str(self.ansi).lower(),
            CASE_SENSITIVE: str(self.case_sensitive).lower(),
        }
