"""Names of tables in a query, as Spark's own parser finds them.

Headrace's reader finds them with their places in the text. A table that it missed would be read by Spark all the same,
unpinned, and its changes would never be noticed: what both find is compared wherever a query is defined.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RELATION = re.compile(r"'UnresolvedRelation \[(.*?)\], \[")
"""Matches a name in the text of a parsed plan, in which a comma and a space stand between its parts."""


def parsed_relations(session: SparkSession, sql: str) -> frozenset[str]:
    """Return the names, those of common table expressions included; none over Connect.

    Args:
        session: The session.
        sql: One query.

    Returns:
        Names as Spark writes them, their parts joined by a comma and a space. Spark Connect does not tell.
    """
    from pyspark.errors import PySparkException

    java: Any = getattr(session, "_jsparkSession", None)
    if java is None:
        return frozenset()
    try:
        plan = java.sessionState().sqlParser().parsePlan(sql).toString()
    except PySparkException:  # its parser goes by options of another session here; the analysis judges
        return frozenset()
    return frozenset(_RELATION.findall(plan))
