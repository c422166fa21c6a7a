"""Faults of database sources' servers."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "SOURCE_UNREACHABLE",
        message="The source's server cannot be reached.",
        cause="Wrong host or port, or it is down, or has no free connection.",
        remedy="Correct that, or wait: the server keeps what was not landed.",
        retry="yes",
    ),
    ErrorCode(
        "SOURCE_LOGIN_REFUSED",
        message="The source's server does not let Headrace in.",
        cause="Wrong password, user, database or TLS settings; `pg_hba.conf`.",
        remedy="Correct that: the server keeps what was not landed.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_IN_RECOVERY",
        message="The source's server is a standby, or still recovering.",
        cause="The connection string leads to a replica; or a failover is under way.",
        remedy="Name the primary; with several hosts add `target_session_attrs=read-write`.",
        retry="yes",
    ),
    ErrorCode(
        "NODES_DIFFER",
        message="A table was altered on one server of a source with several, and not yet on the others.",
        cause="`ALTER TABLE` runs on one server after the other.",
        remedy="Run the same on the others. Until then nothing of the altered server is landed, nor lost.",
        retry="yes",
    ),
    ErrorCode(
        "KEY_ON_TWO_NODES",
        message="Two servers of a source have a row of the same key; nothing is landed of the one that added it.",
        cause="It was inserted on both; or it moves from one to the other, and has not left the first yet.",
        remedy="Delete one of the two; the other servers go on meanwhile. Or create the source with "
        "`same_key = 'allowed'`.",
        retry="yes",
    ),
    ErrorCode(
        "SOURCE_LOST",
        message="The connection to the source's server broke, or was given up.",
        cause="It restarted, the network failed, or it hangs: a stopped container, a disk that does not answer.",
        remedy="Try again; [how long is waited](postgresql.md#before-you-start).",
        retry="yes",
    ),
    ErrorCode(
        "SOURCE_EXHAUSTED",
        message="The source's server has run out of disk space, memory, connections, or what its configuration allows.",
        cause="The detail has its words: such as that all replication slots are in use.",
        remedy="Give it more, or end what takes it. The next landing goes on; nothing is lost.",
        retry="yes",
    ),
    ErrorCode(
        "SOURCE_CANCELLED",
        message="Somebody cancelled a statement of Headrace's on the source's server.",
        cause="`pg_cancel_backend`, by hand or from a job that ends long statements.",
        remedy="Try again; have such jobs leave out sessions with the application name `headrace`.",
        retry="yes",
    ),
    ErrorCode(
        "SLOT_IN_USE",
        message="Another process reads the source's replication slot.",
        cause=(
            "A subscription or another tool was given the same slot; the detail has the process. Changes "
            "that it consumed stop the source with `SLOT_LOST`."
        ),
        remedy="Give it a slot of its own; `headrace source status` shows which process it is.",
        retry="yes",
    ),
    ErrorCode(
        "SOURCE_BUSY",
        message="Open transactions on the source kept Headrace waiting for too long.",
        cause=(
            "A snapshot begins when the transactions are over that were writing when it was asked for. On a Citus "
            "cluster: distributed transactions could not be held up for a moment, or one is not committed on every "
            "node yet."
        ),
        remedy="End them, and try again.",
        retry="yes",
    ),
    ErrorCode(
        "SOURCE_REFUSED",
        message="The source's server does not allow something.",
        cause="Missing privileges.",
        remedy="`headrace source check` prints the SQL.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_ERROR",
        message="The source's server reported an error.",
        cause="See the message, which is the server's.",
        remedy="",
        retry="no",
    ),
    ErrorCode(
        "DEMO_SERVER_FAILED",
        message="The demo's private PostgreSQL could not be started.",
        cause="See the message.",
        remedy="",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_IN_MOTION",
        message="Tables were altered while others were copied again.",
        cause="On a Citus cluster: or their shards moved.",
        remedy="Land again.",
        retry="yes",
    ),
    ErrorCode(
        "LANDING_OVERTAKEN",
        message="Another process landed or dropped the source in the meantime.",
        cause="Two processes worked on it. Nothing was published.",
        remedy="Refresh again.",
        retry="yes",
    ),
    ErrorCode(
        "SPOOL_NOT_WRITABLE",
        message="Captured rows could not be written.",
        cause="No room, or no right to write, in the warehouse.",
        remedy="Make room.",
        retry="no",
    ),
    ErrorCode(
        "VALUE_NOT_REPRESENTABLE",
        message="A value cannot be held by its mirror.",
        cause=(
            "Such as `infinity` in a `date`, `NaN` in a `numeric(10,2)`, an array of several dimensions, "
            "bytes that are no text in the encoding of their database."
        ),
        remedy=(
            "Correct the value, or delete its row, and land again; where the message says so, take the table anew "
            "(`headrace source resnapshot -t`). Or create the source with that column among `TEXT COLUMNS`."
        ),
        retry="no",
    ),
)
