"""Errors of refreshing, reading and scheduling."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "SOURCE_NOT_FOUND",
        message="A source of a stream table is gone.",
        cause="It was dropped or renamed.",
        remedy="Create it again, or drop what reads it.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_NOT_LOADED",
        message="A stream table that is read was never loaded.",
        cause="It was created with `INITIALIZE FALSE`.",
        remedy="Refresh it first.",
        retry="no",
    ),
    ErrorCode(
        "SOURCE_SCHEMA_CHANGED",
        message="The stream table is stopped: a column that it uses was dropped, renamed or retyped.",
        cause="Its contents stay as they are; other stream tables go on.",
        remedy="Undo the change to the source and refresh, or `CREATE OR REPLACE` the stream table.",
        retry="no",
    ),
    ErrorCode(
        "STOPPED",
        message="The stream table is stopped.",
        cause="An earlier refresh stopped it; `status` says why.",
        remedy="Follow the remedy that `status` shows.",
        retry="no",
    ),
    ErrorCode(
        "NOT_LOADED",
        message="A stream table that was never loaded cannot be verified, and no sink of it be resynced.",
        cause="",
        remedy="Refresh it first.",
        retry="no",
    ),
    ErrorCode(
        "HISTORY_EXPIRED",
        message="A table can no longer be read as of a past state.",
        cause="Its snapshot was expired, or the table was recreated since.",
        remedy=(
            "If a closed gate holds it at that state, open the gate; of what an "
            "[aligned](scheduling.md#aligned) table reads, refresh all in one call. Keep snapshots longer: "
            "`headrace maintain --older-than`."
        ),
        retry="no",
    ),
    ErrorCode(
        "PUBLICATION_NOT_FOUND",
        message="There is no publication of that number.",
        cause="",
        remedy="`headrace history` shows the number of each.",
        retry="no",
    ),
    ErrorCode(
        "NOT_PINNABLE",
        message="A table outside `lake` cannot be read through `hr.at()`.",
        cause="Only the pointers of `lake` are taken together.",
        remedy="Read it with `VERSION AS OF` in Spark SQL.",
        retry="no",
    ),
    ErrorCode(
        "SCHEDULER_RUNNING",
        message="Schedules of this project are run already.",
        cause="With a SQLite catalog one process does so at a time; the message names it.",
        remedy="Stop that process, or `headrace drain` it; or keep the catalog in PostgreSQL.",
        retry="no",
    ),
    ErrorCode(
        "GROUP_EXISTS",
        message="A refresh group of that name exists.",
        cause="",
        remedy="Drop it first, or use another name.",
        retry="no",
    ),
    ErrorCode(
        "GROUP_NOT_FOUND",
        message="There is no refresh group of that name.",
        cause="Misspelt, or dropped.",
        remedy="`headrace diamonds` shows groups.",
        retry="no",
    ),
    ErrorCode(
        "ROLLED_BACK",
        message="A member of a group was refreshed, and that came to nothing.",
        cause="Another member failed; they are published together or not at all. Found in history only.",
        remedy="See to the member that the message names.",
        retry="no",
    ),
    ErrorCode(
        "GROUP_MEMBER_TAKEN",
        message="A stream table is in another refresh group.",
        cause="It can be declared to be in one only.",
        remedy="Drop that group first, or declare one of all of them.",
        retry="no",
    ),
    ErrorCode(
        "GATE_NOT_CLOSED",
        message="A source is not held back.",
        cause="Its gate was never closed, or is open again.",
        remedy="`headrace gate list` shows closed gates.",
        retry="no",
    ),
    ErrorCode(
        "WATERMARK_GROUP_EXISTS",
        message="A watermark group of that name exists.",
        cause="",
        remedy="Drop it first, or use another name.",
        retry="no",
    ),
    ErrorCode(
        "WATERMARK_GROUP_NOT_FOUND",
        message="There is no watermark group of that name.",
        cause="Misspelt, or dropped.",
        remedy="`headrace watermark list` shows groups.",
        retry="no",
    ),
    ErrorCode(
        "WATERMARK_TAKEN",
        message="A source is in another watermark group.",
        cause="It can be in one only.",
        remedy="Drop that group first, or make one of all of them.",
        retry="no",
    ),
    ErrorCode(
        "WATERMARK_UNKNOWN",
        message="A source without a watermark cannot be advanced.",
        cause="It is in no watermark group.",
        remedy="Make one.",
        retry="no",
    ),
    ErrorCode(
        "WATERMARK_BACKWARDS",
        message="A watermark cannot go back.",
        cause="The moment is earlier than the one it is at.",
        remedy="If it was advanced by mistake, drop the group and create it again.",
        retry="no",
    ),
    ErrorCode(
        "FUSE_NOT_SKIPPABLE",
        message="A change cannot be left out.",
        cause=(
            "The stream table must be recomputed anyway, because a view that it reads, a source's "
            "columns, a function or Headrace's own rules changed: that would bring in all."
        ),
        remedy="Repair the source and refresh; or `headrace fuse NAME apply`.",
        retry="no",
    ),
    ErrorCode(
        "FUSE_NOT_BLOWN",
        message="There is no change to decide about.",
        cause="The stream table's fuse has not blown, or was resolved.",
        remedy="`headrace fuse` lists those that have.",
        retry="no",
    ),
)
