"""Tells verbs from statements that begin with the same word."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from headrace.sql.reader.syntax.tokens import words

OPENING = words("""
ADD ADVANCE ALTER ANALYZE BEGIN CACHE CALL CANCEL CLEAR CLOSE COMMENT COMMIT CREATE DECLARE DELETE DESC DESCRIBE DFS
DROP EXECUTE EXPLAIN EXPORT FROM GRANT IMPORT INSERT LIST LOAD LOCK MAP MERGE MSCK OPEN PROMOTE REDUCE REFRESH REPAIR
REPLACE RESET REVOKE ROLLBACK SELECT SET SHOW START TABLE TRUNCATE UNCACHE UNLOCK UPDATE USE VALUES VERIFY WITH
""")
"""First words of Spark's statements and of Headrace's."""

_OBJECTS = words("""
CATALOG DATABASE DEPLOYMENT EXTERNAL FUNCTION GLOBAL GREEN INDEX KEY MATERIALIZED NAMESPACE NEW OR REFRESH ROLE SCHEMA
SINK SOURCE STREAM STREAMING TABLE TEMP TEMPORARY VARIABLE VIEW WATERMARK
""")

SECOND: Mapping[str, frozenset[str]] = {
    "create": _OBJECTS,
    "alter": _OBJECTS,
    "drop": _OBJECTS,
    "explain": OPENING | words("CODEGEN COST DIFFERENTIAL EXTENDED FORMATTED FULL LOGICAL STREAM"),
    "refresh": words("ALL FUNCTION MATERIALIZED STREAM TABLE"),
    "repair": words("ALL STREAM TABLE"),
    "verify": words("SINK"),
}
"""Verbs that statements begin with, too, and the second words that make them a statement."""

_FIRST = re.compile(r"[^\W\d][\w-]*(?=\s|;|$)")
_SECOND = re.compile(r"\s+(?:(\w+)(?![\w-]*\.|-)|(\())")


def verb_of(text: str, verbs: Collection[str]) -> str | None:
    """Return the verb that a text begins with; None where it is a statement, or neither.

    Where both are possible it is a statement: `EXPLAIN SELECT …` is Spark's, `explain shop.revenue` is the verb. The
    name of the command may stand before a verb, as in a shell: then it is one for certain.

    Args:
        text: What was typed, from its first word on.
        verbs: All verbs.
    """
    if (called := re.match(r"headrace(?=\s)\s*", text)) is not None:
        first = _FIRST.match(text, called.end())
        return first.group().lower() if first is not None else ""
    if (first := _FIRST.match(text)) is None or (word := first.group().lower()) not in verbs:
        return None
    second = _SECOND.match(text, first.end())
    if second is not None and word in SECOND and (second[2] or second[1].upper() in SECOND[word]):
        return None
    return word


def neither(text: str, verbs: Collection[str]) -> str | None:
    """Return what to say of a text that is neither verb nor statement; None if it may be one.

    Extensions of Spark bring statements that are not known here: only single words, and what resembles a known word,
    are taken for a slip.

    Args:
        text: What was typed, from its first word on.
        verbs: All verbs.
    """
    from headrace.suggestions import did_you_mean

    first = _FIRST.match(text)
    if first is None or (word := first.group()).upper() in OPENING or word.lower() in verbs:
        return None
    meant = did_you_mean(word, (*verbs, *(each.lower() for each in OPENING)))
    alone = not text[first.end() :].strip().rstrip(";").strip()
    if not meant and not alone:
        return None
    return f"There is no verb or statement {word}. {meant}help; lists all."
