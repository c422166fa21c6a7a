"""Errors of sinks: what users can mend, and what is wrong at their servers."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "SINK_UNKNOWN",
        message="There is no sink of that name.",
        cause="Misspelt, or dropped.",
        remedy="`headrace sink list` lists those that exist.",
        retry="no",
    ),
    ErrorCode(
        "SINK_EXISTS",
        message="A sink of that name exists.",
        cause="`CREATE SINK` without `IF NOT EXISTS`.",
        remedy="Use that, or another name.",
        retry="no",
    ),
    ErrorCode(
        "SINK_DIFFERS",
        message="A sink exists, but not as `headrace.toml` declares it.",
        cause="Another stream table, database, table or key.",
        remedy="Correct the file, or drop the sink and apply again.",
        retry="no",
    ),
    ErrorCode(
        "HAS_SINKS",
        message="A stream table that a sink writes cannot be dropped.",
        cause="`DROP STREAM TABLE`, also with `CASCADE`, or a deployment that drops it.",
        remedy="Drop the sink first; its rows stay.",
        retry="no",
    ),
    ErrorCode(
        "SINK_HELD",
        message="A sink, or one that is written with it, is paused or stopped.",
        cause="Sinks of one group into one database are written together, or not at all.",
        remedy="`headrace sink resume`, or `headrace sink resync` where it is stopped.",
        retry="no",
    ),
    ErrorCode(
        "SINK_NOT_ACTIVE",
        message="Only a sink that is written can be paused.",
        cause="It is NEW or STOPPED.",
        remedy="`headrace sink status` says why.",
        retry="no",
    ),
    ErrorCode(
        "SINK_NOT_LOADED",
        message="A sink that was never written cannot be compared.",
        cause="Its stream table was never loaded, or every write failed.",
        remedy="`headrace sink write`.",
        retry="no",
    ),
    ErrorCode(
        "SINK_URL_INVALID",
        message="The sink's connection string cannot be used.",
        cause="It cannot be read, its environment variable is not set, or it holds a password or another secret.",
        remedy="Write `postgresql://user@host:5432/database`; give the password by `PGPASSWORD` or `~/.pgpass`.",
        retry="no",
    ),
    ErrorCode(
        "SINK_LOOP",
        message="The target is a table that a source of the project captures.",
        cause="What is written there would come back as a change.",
        remedy="Name another table.",
        retry="no",
    ),
    ErrorCode(
        "SINK_TARGET_UNFIT",
        message="The target is no ordinary table.",
        cause="A view, a partitioned or foreign table, a partition, a columnar table; or its schema is missing.",
        remedy="Name another table; Headrace makes it if there is none.",
        retry="no",
    ),
    ErrorCode(
        "SINK_TARGET_DIFFERS",
        message="The target has other columns than the stream table.",
        cause="A column is missing, of another type, generated, or one too many.",
        remedy="Alter the target as the detail says, or name another table.",
        retry="no",
    ),
    ErrorCode(
        "SINK_TARGET_NOT_EMPTY",
        message="The target has rows that the sink has not written.",
        cause="A new sink never overwrites rows unasked.",
        remedy="Empty it, or write `ON CONFLICT OVERWRITE`.",
        retry="no",
    ),
    ErrorCode(
        "SINK_TARGET_TAKEN",
        message="The target is that of another sink.",
        cause="Two sinks name one table, perhaps of two projects.",
        remedy="Give each a table of its own.",
        retry="no",
    ),
    ErrorCode(
        "SINK_TARGET_CHANGED",
        message="Somebody else has changed the target.",
        cause="A row that is to be deleted or updated is not what was written; the table was dropped or made anew.",
        remedy="`headrace sink verify` shows what differs; `headrace sink resync` makes it equal.",
        retry="no",
    ),
    ErrorCode(
        "SINK_COLUMNS_CHANGED",
        message="The stream table has other columns than when the sink was last written.",
        cause="It was replaced, or a deployment with other columns was promoted.",
        remedy="`headrace sink resync`; a target that Headrace did not make is altered first.",
        retry="no",
    ),
    ErrorCode(
        "SINK_STREAM_RECREATED",
        message="The stream table is another one of the same name.",
        cause="The catalog was made anew.",
        remedy="`headrace sink resync`.",
        retry="no",
    ),
    ErrorCode(
        "SINK_CATALOG_SET_BACK",
        message="The version that the target has is not in the catalog, or is another one there.",
        cause="A backup of the catalog was put back, or a replica promoted that lacks what was published last; or two "
        "copies of the project write the same sink.",
        remedy="`headrace sink resync`; `ON CONFLICT OVERWRITE` compares by itself.",
        retry="no",
    ),
    ErrorCode(
        "SINK_KEY_UNKNOWN",
        message="The sink's key names a column that the stream table has not.",
        cause="Misspelt; or the stream table was replaced by one without it.",
        remedy="Use a column that the hint lists; a key cannot be altered: drop the sink, and create it again.",
        retry="no",
    ),
    ErrorCode(
        "SINK_KEY_MISSING",
        message="The target has no unique index of just the sink's key.",
        cause="It was made by somebody else, or the index was dropped.",
        remedy="`CREATE UNIQUE INDEX` as the hint says.",
        retry="no",
    ),
    ErrorCode(
        "SINK_KEY_NOT_UNIQUE",
        message="Two rows of the stream table have the same key.",
        cause="The key is not one of its result.",
        remedy="Name a key that is, or none.",
        retry="no",
    ),
    ErrorCode(
        "SINK_KEY_NULL",
        message="A row of the stream table has NULL in the sink's key.",
        cause="The target's unique index takes any number of NULLs.",
        remedy="Make it anew with `NULLS NOT DISTINCT` (PostgreSQL 15 and newer).",
        retry="no",
    ),
    ErrorCode(
        "SINK_PLACEMENT_IMPOSSIBLE",
        message="The target cannot be where the sink's `PLACEMENT` says.",
        cause="No Citus cluster, or a worker of one; a distribution column that is missing or no part of the key; a "
        "table to be co-located with that is not distributed, or by another type.",
        remedy="Change `PLACEMENT` as the hint says, or leave it out.",
        retry="no",
    ),
    ErrorCode(
        "SINK_PLACEMENT_DIFFERS",
        message="A table that exists is placed otherwise than the sink's `PLACEMENT` says.",
        cause="Headrace moves only what it made.",
        remedy="Run the SQL of the hint on the coordinator, or leave `PLACEMENT` out.",
        retry="no",
    ),
    ErrorCode(
        "SINK_VALUE_REFUSED",
        message="The target does not take a value.",
        cause="A text with the character of code 0, a number out of range, a constraint of the table; NULL in the "
        "column that a table of Citus is distributed by.",
        remedy="Correct the query, or alter the target.",
        retry="no",
    ),
)

SERVERS = (
    ErrorCode(
        "SINK_UNREACHABLE",
        message="The sink's server cannot be reached.",
        cause="It does not run, or network and address are wrong.",
        remedy="Headrace tries again; nothing is lost.",
        retry="yes",
    ),
    ErrorCode(
        "SINK_LOGIN_REFUSED",
        message="The sink's server does not let Headrace in.",
        cause="User, password, database, TLS, `pg_hba.conf`.",
        remedy="Correct them; nothing is lost.",
        retry="no",
    ),
    ErrorCode(
        "SINK_LOST",
        message="The connection to the sink's server broke, or was given up.",
        cause="It, or a node of its Citus cluster, was restarted, or the network failed; or it hangs: a stopped "
        "container, a disk that does not answer.",
        remedy="Headrace tries again, and finds out first what was written.",
        retry="yes",
    ),
    ErrorCode(
        "SINK_EXHAUSTED",
        message="The sink's server has run out of disk space, memory, connections, or what its configuration allows.",
        cause="The detail has its words.",
        remedy="Give it more, or end what takes it. Headrace tries again; nothing is lost.",
        retry="yes",
    ),
    ErrorCode(
        "SINK_CANCELLED",
        message="Somebody cancelled a statement of Headrace's on the sink's server.",
        cause="`pg_cancel_backend`, by hand or from a job that ends long statements.",
        remedy="Headrace tries again; have such jobs leave out sessions with the application name `headrace sink`.",
        retry="yes",
    ),
    ErrorCode(
        "SINK_BUSY",
        message="Somebody else had the target locked for too long.",
        cause="A long transaction, `VACUUM FULL`, an `ALTER TABLE`; or a node of a Citus cluster that was killed has "
        "not committed yet what is decided.",
        remedy="Headrace tries again.",
        retry="yes",
    ),
    ErrorCode(
        "SINK_REFUSED",
        message="The sink's role lacks a privilege, or the server is a standby.",
        cause="The detail says which.",
        remedy="Run the SQL of the hint.",
        retry="no",
    ),
    ErrorCode(
        "SINK_ERROR",
        message="The sink's server reported an error.",
        cause="The detail has its words.",
        remedy="See there.",
        retry="no",
    ),
    ErrorCode(
        "LAKE_UNREADABLE",
        message="Files of a stream table cannot be read.",
        cause="Sinks read them from Headrace's own process, which has no access to the warehouse, or they are gone.",
        remedy="Give it access as Spark has.",
        retry="yes",
    ),
)
