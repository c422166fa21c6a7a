"""Conflicts with other writers."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "LEASE_HELD",
        message="Another process is refreshing that stream table.",
        cause="It holds the lease; one that died loses it within 30 seconds, at once if it ran on this host.",
        remedy="Wait: `headrace refresh` does for a minute, `hr.refresh(wait=…)` as long as you say.",
        retry="yes",
    ),
    ErrorCode(
        "CUT_OVERTAKEN",
        message="The stream table reflects newer sources than this refresh read, or a source is another one by now.",
        cause="Another refresh read the sources later and published first; contents never go back. Or a stream table "
        "that is read was defined anew, without a key that the plan rested on.",
        remedy="Refresh again.",
        retry="yes",
    ),
    ErrorCode(
        "LEASE_LOST",
        message="This process lost its lease, and published nothing.",
        cause="It stalled for so long that another took over.",
        remedy="Refresh again.",
        retry="yes",
    ),
    ErrorCode(
        "STORED_TABLE_DROPPED",
        message="A stream table, its companion or its change log was dropped with plain SQL.",
        cause="Headrace's tables may be dropped with `DROP STREAM TABLE` only.",
        remedy="`headrace repair` brings it back; `DROP STREAM TABLE` removes the rest.",
        retry="no",
    ),
    ErrorCode(
        "FOREIGN_WRITER",
        message="Another program wrote to a stream table, or made a table of its name before anything was published.",
        cause="Its pointer is not the one that Headrace published. Nothing was overwritten.",
        remedy="Stop that writer; `headrace repair` brings back what was published. Where nothing was, drop or rename "
        "the other table.",
        retry="no",
    ),
    ErrorCode(
        "NOTHING_AGREES",
        message="An [aligned](scheduling.md#aligned) stream table cannot be loaded.",
        cause="No versions of its sources reflect the same versions of the tables below them.",
        remedy="Refresh those sources in one call.",
        retry="yes",
    ),
    ErrorCode(
        "WATERMARKS_APART",
        message="A stream table waits for the sources below it.",
        cause=(
            "Their [watermarks](scheduling.md#watermarks) are further apart than their group tolerates, "
            "or one has none; the detail has them."
        ),
        remedy="Advance the watermarks that are behind.",
        retry="yes",
    ),
    ErrorCode(
        "FUSE_BLOWN",
        message="A change of the sources is larger than the stream table's [fuse](scheduling.md#fuses) allows.",
        cause=(
            "A load that ran twice, a source that was emptied, or really so much. Nothing was applied; "
            "the detail has the rows by source."
        ),
        remedy="Repair the source and refresh; or `headrace fuse` with `apply`, `reinitialize` or `skip`.",
        retry="no",
    ),
    ErrorCode(
        "STAGING_CHANGED",
        message="What was staged is not what this refresh wrote, or wrote to.",
        cause=(
            "Another process reset it, or one that was killed, or lost its lease, committed once more. "
            "Nothing was published."
        ),
        remedy="Refresh again.",
        retry="yes",
    ),
    ErrorCode(
        "DEFINITION_CHANGED",
        message="The definition changed while the table was refreshed.",
        cause="It was replaced in the meantime. Nothing was published.",
        remedy="Refresh again.",
        retry="yes",
    ),
    ErrorCode(
        "INPUT_NOT_READY",
        message="A group had begun before all that it reads was published, and was given up.",
        cause=(
            "Members of a group start when what they read themselves is published. Another table that the group reads "
            "failed then, or was defined anew; or the group has to be. Nothing was published, and nothing counts as a "
            "failure of the group; members that were computed already have a line `ROLLED_BACK` in history."
        ),
        remedy="None: schedulers refresh the group again, when what it reads can be refreshed.",
        retry="yes",
    ),
    ErrorCode(
        "COMMIT_CONFLICT",
        message="Another writer changed a table meanwhile.",
        cause="Iceberg refused the commit.",
        remedy="Try again.",
        retry="yes",
    ),
    ErrorCode(
        "COMMIT_UNKNOWN",
        message="It is not known whether a commit to a table succeeded.",
        cause="The connection broke.",
        remedy="Try again: what was not published is rolled back first.",
        retry="yes",
    ),
    ErrorCode(
        "PUBLISH_OUTCOME_UNKNOWN",
        message="It is not known whether a publication succeeded.",
        cause="The connection to the catalog, or to the REST catalog of the lake, broke while it was committed; or the "
        "latter answered with a failure of its own (500, 502, 503 and the like), as a proxy may after the commit.",
        remedy="Refresh again: the outcome is read from the catalog first.",
        retry="yes",
        outage=True,
    ),
    ErrorCode(
        "PUBLICATION_PENDING",
        message="An earlier publication of the same tables into a REST catalog is not decided yet.",
        cause="Its publisher still holds its leases, or has died a moment ago.",
        remedy="Refresh again: when the leases have expired it is decided by reading the tables.",
        retry="yes",
    ),
)
