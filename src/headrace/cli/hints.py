"""Says hints in the words of the command line, where they name statements.

Errors are raised below the command line and name statements, as all ways to Headrace know these. Whoever typed a
command is shown the command that does the same.
"""

from __future__ import annotations

import re

_NAME = r"((?:[\w-]+|`[^`]+`)(?:\.(?:[\w-]+|`[^`]+`))*)"

WORDS: tuple[tuple[str, str], ...] = (
    (rf"REPAIR STREAM TABLE(?: {_NAME})? \((`headrace[^`]*`)\)", r"\2"),
    (r"SHOW STREAM TABLES \(or (`headrace status`)\)", r"\1"),
    (rf"REFRESH STREAM TABLE {_NAME} FULL", r"`headrace refresh \1 --full`"),
    (rf"REFRESH STREAM TABLE {_NAME}", r"`headrace refresh \1`"),
    (rf"DROP STREAM TABLE {_NAME} CASCADE", r"`headrace drop \1 --cascade`"),
    (rf"DROP STREAM TABLE {_NAME}", r"`headrace drop \1`"),
    (r"CREATE OR REPLACE STREAM TABLE, or IF NOT EXISTS", "--or-replace, or --if-not-exists"),
    (r"CREATE OR REPLACE or IF NOT EXISTS", "--or-replace or --if-not-exists"),
    (rf"CREATE OR REPLACE STREAM TABLE {_NAME} AS …", r"`headrace create \1 --or-replace …`"),
    (rf"ALTER STREAM TABLE {_NAME} SET REFRESH MODE (AUTO|FULL|DIFFERENTIAL)", r"`headrace alter \1 --mode \2`"),
    (rf"ALTER SOURCE {_NAME} DROP TABLES \(([^)]*)\)", r"`headrace source drop-tables \1 -t \2`"),
    (rf"ALTER SOURCE {_NAME} RESNAPSHOT TABLES \(([^)]*)\)", r"`headrace source resnapshot \1 -t \2`"),
    (r"ALTER SOURCE … ADD TABLES", "`headrace source add-tables`"),
    (rf"DROP SOURCE {_NAME}", r"`headrace source drop \1`"),
    (rf"DROP SINK {_NAME}", r"`headrace sink drop \1`"),
    (rf"DROP WATERMARK GROUP {_NAME}", r"`headrace watermark drop \1`"),
    (
        rf"(?<!\")((?:CREATE NAMESPACE|DROP REFRESH GROUP|DROP TABLE|DROP VIEW|SHOW TABLES IN) (?!IF\b){_NAME})(?!\")",
        r'`headrace sql "\1"`',
    ),
    (r", or run USE lake\.<namespace> first", ""),
    (r"(?<!\w)IF NOT EXISTS", "--if-not-exists"),
    (r"(?<!\w)IF EXISTS", "--if-exists"),
)
"""Patterns in hints and their replacements on the command line, in the order of replacement."""


def as_commands(hint: str) -> str:
    """Return a hint with commands and options in the place of statements.

    Args:
        hint: The hint.
    """
    for pattern, words in WORDS[:2]:
        hint = re.sub(pattern, words, hint)
    parts = re.split(r"(`headrace[^`]*`|headrace sql \"[^\"]*\")", hint)
    return "".join(part if at % 2 else _said(part) for at, part in enumerate(parts))


def _said(part: str) -> str:
    for pattern, words in WORDS[2:]:
        pieces = re.split(r"(`headrace[^`]*`)", part)
        part = "".join(piece if at % 2 else re.sub(pattern, words, piece) for at, piece in enumerate(pieces))
    return part
