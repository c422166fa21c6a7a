"""Errors of blue-green deployments."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "DEPLOYMENT_NOT_FOUND",
        message="There is no such deployment, or a stream table is in none.",
        cause="It is misspelt, or was cancelled.",
        remedy="`headrace deploy status` lists deployments.",
        retry="no",
    ),
    ErrorCode(
        "IN_DEPLOYMENT",
        message="A stream table is part of a deployment already.",
        cause=(
            "A second green of it was to be made, it was to be dropped, or its green was to be replaced or dropped by "
            "the statements for public stream tables. Also while a promotion can still be taken back."
        ),
        remedy="Promote it, or end the deployment with `headrace deploy cancel`.",
        retry="no",
    ),
    ErrorCode(
        "GREEN_OF_GREEN",
        message="A green of a green was asked for.",
        cause="The name is that of a second generation, not of the public stream table.",
        remedy="Name the public one.",
        retry="no",
    ),
    ErrorCode(
        "GREEN_IN_CYCLE",
        message="A green of a member of a cycle was asked for.",
        cause="Members of a cycle are computed together, and replaced in place, all at once.",
        remedy="`CREATE OR REPLACE STREAM TABLE`, or the new cycle under other names, and greens of its readers.",
        retry="no",
    ),
    ErrorCode(
        "GREEN_SOURCE",
        message="A query names a green, or a former generation.",
        cause="It ends with its deployment, and its name with it.",
        remedy="Name the public table: a green of the same deployment reads the green for it.",
        retry="no",
    ),
    ErrorCode(
        "DEPLOYMENT_TORN",
        message="One of several generations that read each other was to be exchanged or dropped.",
        cause="What it reads, or what reads it, would stay behind.",
        remedy=(
            "Name the deployment: `--all`, or `DEPLOYMENT name`. Begin again where what it reads is no member now."
        ),
        retry="no",
    ),
    ErrorCode(
        "GROUP_TORN",
        message="A deployment exchanges members of a group, and leaves out one that lies between them.",
        cause="Members of a group are published at one cut. What is left out changes with the first, and would change "
        "the last once more.",
        remedy="Make it part of the deployment: `headrace deploy create`.",
        retry="no",
    ),
    ErrorCode(
        "GROUP_CANNOT_FOLLOW",
        message="Members of a group that a deployment leaves out cannot be brought to what it exchanges.",
        cause="They are refreshed in the publication of the promotion, and that failed; the message has the error.",
        remedy="Mend them, pause them, or make them part of the deployment.",
        retry="no",
    ),
    ErrorCode(
        "GREEN_OUTDATED",
        message="The public stream table was altered since the green was made, or since the promotion.",
        cause="Its query, schedule, refresh mode or properties are others; an exchange would undo that.",
        remedy="Undo it, or cancel the deployment and begin again.",
        retry="no",
    ),
    ErrorCode(
        "GREEN_FAILED",
        message="A green cannot be promoted: it failed, is stopped, its fuse has blown, or changes were skipped.",
        cause="The message has it.",
        remedy="Mend it and refresh it, or cancel the deployment.",
        retry="no",
    ),
    ErrorCode(
        "READERS_BROKEN",
        message="Stream tables that remain read columns, or whole tables, that would be gone or of another type.",
        cause="The message names each with its reader.",
        remedy=(
            "Make the readers part of the deployment, or keep the columns. `force` stops readers of columns, not those "
            "of a table that is to be dropped, or goes because a promotion is taken back."
        ),
        retry="no",
    ),
    ErrorCode(
        "GREEN_DIFFERS",
        message="A green of the same definition has other rows than the public stream table.",
        cause="One of the two is not what its query gives, or the query is no function of its sources.",
        remedy="`headrace verify` both.",
        retry="no",
    ),
    ErrorCode(
        "CHECK_FAILED",
        message="A check of a promotion does not pass.",
        cause="Its query finds rows that must not be among those of the greens, or cannot be run.",
        remedy="Run the check over the greens to see the rows; mend the greens, or leave the check out.",
        retry="no",
    ),
    ErrorCode(
        "PROMOTION_WINDOW_OVER",
        message="A deployment that was to promote itself within a window of time has not done so.",
        cause="A green was not loaded, behind or failed, the promotion was refused, or no scheduler ran.",
        remedy="`headrace deploy status` tells why; set new conditions with `headrace deploy auto`, or promote it.",
        retry="no",
    ),
    ErrorCode(
        "ALREADY_PROMOTED",
        message="The generations have been exchanged already, perhaps by another process just now.",
        cause="A promotion, or its roll-back, was asked for twice.",
        remedy="`headrace deploy status` shows where the deployment stands.",
        retry="no",
    ),
    ErrorCode(
        "NOTHING_TO_PROMOTE",
        message="A deployment that was promoted already was to promote itself.",
        cause="It has no greens any more, only what was public before.",
        remedy="Make new greens, or take the promotion back.",
        retry="no",
    ),
    ErrorCode(
        "NOT_PROMOTED",
        message="Something was to be taken back that was not promoted.",
        cause="The green is still beside the public stream table.",
        remedy="`headrace deploy cancel` ends the deployment.",
        retry="no",
    ),
    ErrorCode(
        "ROLLBACK_EXPIRED",
        message="A promotion can no longer be taken back.",
        cause="Its `rollback_window` is over.",
        remedy="Make a green with the former definition, and promote that.",
        retry="no",
    ),
)

MEANWHILE = (
    ErrorCode(
        "GREEN_LOADING",
        message="A green cannot be promoted before it is loaded.",
        cause="It is being loaded, or waits for a scheduler.",
        remedy="Wait, or refresh it.",
        retry="yes",
    ),
    ErrorCode(
        "GREEN_BEHIND",
        message="A green cannot be promoted while it is behind the public stream table.",
        cause="It does not reflect what the public one does; the message says by how many versions of which sources.",
        remedy="Wait for the scheduler, or refresh it.",
        retry="yes",
    ),
    ErrorCode(
        "NO_COMMON_CUT",
        message="The two generations could not be brought to one cut.",
        cause="Others kept refreshing one of them, or a public stream table of the same group cannot be refreshed.",
        remedy="Try again; pause the scheduler where production never stands still.",
        retry="yes",
    ),
    ErrorCode(
        "LAYOUT_AWAITED",
        message="A stream table stands still, readable, until a deployment has brought its new stored layout.",
        cause="This version of Headrace stores it otherwise, and it has more rows than `layout_limit` of `[deploy]`.",
        remedy="Leave it to a scheduler, or refresh it by name; `refresh --full` loads it in place.",
        retry="yes",
    ),
    ErrorCode(
        "LAYOUT_TOO_NEW",
        message="A stream table was stored by a newer version of Headrace than this one.",
        cause="Two versions work on one catalog: a process that runs since before the upgrade, or another environment. "
        "Each would load the whole table as it stores it, in turns.",
        remedy="Upgrade this one; or end the newer ones and store it as this version does by `refresh --full`.",
        retry="no",
    ),
    ErrorCode(
        "DEPLOYMENT_CHANGED",
        message="A deployment was changed by somebody else at the same time.",
        cause="Two processes made, promoted or cancelled the same green, or dropped its public table.",
        remedy="Look at `headrace deploy status`, then try again.",
        retry="yes",
    ),
)
