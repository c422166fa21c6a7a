"""Syntax of Headrace's statements as messages show it, and readers of their parts."""

from __future__ import annotations

import re

Name = tuple[str, ...]
"""A table name as written, split and unquoted."""

CREATE = """  CREATE [OR REPLACE] STREAM TABLE [IF NOT EXISTS] namespace.table
    [SCHEDULE '1 minute'] [REFRESH MODE AUTO|FULL|DIFFERENTIAL] [WITH (key = value, …)] [INITIALIZE TRUE|FALSE]
    AS SELECT …"""

ALTER = """  ALTER STREAM TABLE namespace.table SET SCHEDULE '1 minute'
  ALTER STREAM TABLE namespace.table SET REFRESH MODE AUTO|FULL|DIFFERENTIAL
  ALTER STREAM TABLE namespace.table SET PROPERTIES (key = value, …)
  ALTER STREAM TABLE namespace.table SET QUERY AS SELECT …
  ALTER STREAM TABLE namespace.table DROP SCHEDULE
  ALTER STREAM TABLE namespace.table RESOLVE FUSE APPLY|SKIP|REINITIALIZE"""

DROP = "  DROP STREAM TABLE [IF EXISTS] namespace.table [CASCADE]"

REFRESH = """  REFRESH STREAM TABLE namespace.table, … [FULL]
  REFRESH ALL STREAM TABLES [FULL]"""

EXPLAIN = """  EXPLAIN [FULL|DIFFERENTIAL] STREAM TABLE namespace.table
  EXPLAIN [FULL|DIFFERENTIAL] STREAM TABLE AS SELECT …"""

SHOW = "  SHOW STREAM TABLES [IN namespace] [LIKE 'pattern']"

CREATE_SOURCE = """  CREATE SOURCE [IF NOT EXISTS] name FROM POSTGRES 'postgresql://user@host:5432/database'
    TABLES (schema.table [COLUMNS (column, …)] [WHERE (condition)] [AS mirror], …)
    [TEXT COLUMNS (schema.table.column, …)]
    [WITH (capture = 'wal' | 'trigger' | 'auto', failover = true | false)]"""

ALTER_SOURCE = """  ALTER SOURCE name ADD TABLES (schema.table [COLUMNS (column, …)] [WHERE (condition)] [AS mirror], …)
    [TEXT COLUMNS (schema.table.column, …)]
  ALTER SOURCE name DROP TABLES (mirror | schema.table, …)
  ALTER SOURCE name RESNAPSHOT [TABLES (mirror | schema.table, …)]"""

DROP_SOURCE = "  DROP SOURCE [IF EXISTS] name"

SHOW_SOURCES = "  SHOW SOURCES"


CREATE_GROUP = "  CREATE REFRESH GROUP name AS namespace.table, namespace.table, …"

GATE = """  CLOSE GATE ON namespace.table, …
  OPEN GATE ON namespace.table, …
  SHOW GATES"""

KEY = """  DECLARE KEY (column, …) ON namespace.table [NOT CHECKED]
  DROP KEY (column, …) ON namespace.table
  SHOW KEYS"""

WATERMARK = """  CREATE WATERMARK GROUP name (namespace.table, namespace.table, …) TOLERANCE '5 minutes'
  DROP WATERMARK GROUP [IF EXISTS] name
  ADVANCE WATERMARK OF namespace.table TO '2026-03-01T06:00:00Z'
  SHOW WATERMARKS"""

DROP_GROUP = "  DROP REFRESH GROUP [IF EXISTS] name"

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


def unquoted(literal: str) -> str:
    """Return the value of a string literal by Spark's rules."""
    if literal[0] in "rR":
        return literal[2:-1]
    if literal[0] == "$":
        length = literal.index("$", 1) + 1
        return literal[length:-length]
    quote = literal[0]
    return _ESCAPE.sub(_character, literal[1:-1].replace(quote * 2, quote))


def _character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] == "u" and len(code) == 5:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    # LIKE patterns keep these two escaped
    return match.group() if code in "%_" else _ESCAPED.get(code, code)
