"""Syntax of Headrace's statements as messages show it."""

from __future__ import annotations

from headrace.sinks.registry import KINDS as SINK_KINDS
from headrace.sources.registry import KINDS

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
  ALTER STREAM TABLE namespace.table DROP PROPERTIES (key, …)
  ALTER STREAM TABLE namespace.table RESOLVE FUSE APPLY|SKIP|REINITIALIZE"""

DROP = """  DROP STREAM TABLE [IF EXISTS] namespace.table [CASCADE]
  DROP STREAM TABLE namespace.table IN DEPLOYMENT name"""

REFRESH = """  REFRESH STREAM TABLE namespace.table, … [FULL]
  REFRESH ALL STREAM TABLES [FULL]"""

REPAIR = """  REPAIR STREAM TABLE namespace.table, …
  REPAIR ALL STREAM TABLES"""

EXPLAIN = """  EXPLAIN [FULL|DIFFERENTIAL] STREAM TABLE namespace.table
  EXPLAIN [FULL|DIFFERENTIAL] STREAM TABLE AS SELECT …
  EXPLAIN ANALYZE STREAM TABLE namespace.table"""

SHOW = "  SHOW STREAM TABLES [IN namespace] [LIKE 'pattern']"

SHOW_CREATE = "  SHOW CREATE STREAM TABLE namespace.table, …"

DEPLOYMENT = """  CREATE [NEW] GREEN STREAM TABLE namespace.table [IN DEPLOYMENT name]
    [SCHEDULE '1 minute'] [REFRESH MODE AUTO|FULL|DIFFERENTIAL] [WITH (key = value, …)] [INITIALIZE TRUE|FALSE]
    [AUTO PROMOTE [(key = value, …)]] [AS SELECT …]
  DROP STREAM TABLE namespace.table IN DEPLOYMENT name
  ALTER DEPLOYMENT name {AUTO PROMOTE [(key = value, …)] | NO AUTO PROMOTE}
  PROMOTE {GREEN STREAM TABLE namespace.table | DEPLOYMENT name} [FORCE] [VERIFY] [DRY RUN] [WITH (key = value, …)]
  ROLLBACK {GREEN STREAM TABLE namespace.table | DEPLOYMENT name}
  CANCEL {GREEN STREAM TABLE namespace.table | DEPLOYMENT name}
  SHOW DEPLOYMENTS [WITH (lag_threshold = '1 minute')]"""

CREATE_SOURCE = "\n".join(kind.create_form for kind in KINDS)

ALTER_SOURCE = (
    "\n".join(kind.add_form for kind in KINDS)
    + """
  ALTER SOURCE name DROP TABLES (mirror | schema.table, …)
  ALTER SOURCE name RESNAPSHOT [TABLES (mirror | schema.table, …)] [SHARDS (shard, …)]
  ALTER SOURCE name ADD SHARD 'postgresql://user@host:5432/database' [AS shard] [CAPTURE WAL | TRIGGER | AUTO]
  ALTER SOURCE name DROP SHARD shard
  ALTER SOURCE name MOVE SHARD shard TO 'postgresql://user@host:5432/database'"""
)

DROP_SOURCE = "  DROP SOURCE [IF EXISTS] name"

SHOW_SOURCES = "  SHOW SOURCES"


CREATE_SINK = "\n".join(kind.create_form for kind in SINK_KINDS)

ALTER_SINK = """  ALTER SINK name SET SCHEDULE '1 minute'
  ALTER SINK name SET ON CONFLICT REFUSE | OVERWRITE
  ALTER SINK name SET PLACEMENT AUTO | LOCAL | REFERENCE | DISTRIBUTED BY (column) [COLOCATED WITH schema.table]
  ALTER SINK name DROP SCHEDULE
  ALTER SINK name RESYNC | PAUSE | RESUME"""

DROP_SINK = "  DROP SINK [IF EXISTS] name"

VERIFY_SINK = "  VERIFY SINK name"

SHOW_SINKS = "  SHOW SINKS"

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
