"""Shortens long lists of literals in a query of which only types are needed.

What `x IN (…)` gives is true, false or NULL however long the list is, but Spark takes 25 seconds to analyse one of
200,000 literals, and types are asked for several times while a query is compiled. The user's own text is analysed once
as it is, so that what is wrong with a literal is told.
"""

from __future__ import annotations

import re

LONG = 20_000
"""Characters of a text that is worth looking through."""

_STRING = r"'(?:[^'\\]|\\.|'')*+'"
_LITERAL = rf"(?:[+-]?\d[\w.]*+|{_STRING})"
_LIST = rf"\bIN\s*\((?P<list>\s*{_LITERAL}(?:\s*,\s*{_LITERAL}){{20,}}+\s*)\)"
_LOOKED_AT = re.compile(
    rf"""{_LIST}|--[^\n]*|/\*.*?\*/|`(?:``|[^`])*+`|\br'[^']*'|\br"[^"]*"|{_STRING}|"(?:[^"\\]|\\.|"")*+\"""",
    re.IGNORECASE | re.DOTALL,
)


def shortened(sql: str) -> str:
    """Return the text with one number and one text left of each long list behind IN."""
    return sql if len(sql) < LONG else _LOOKED_AT.sub(_cut, sql)


def _cut(found: re.Match[str]) -> str:
    listed = found["list"]
    if listed is None:
        return found[0]
    literals = re.findall(_LITERAL, listed)
    number = next((each for each in literals if not each.startswith("'")), None)
    text = next((each for each in literals if each.startswith("'")), None)
    return f"IN ({', '.join(each for each in (number, text) if each is not None)})"
