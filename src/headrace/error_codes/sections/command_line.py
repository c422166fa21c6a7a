"""Errors of the command line only."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "USAGE",
        message="The command line is wrong: a verb, an option or an argument. The exit status is 2.",
        cause="",
        remedy="`headrace VERB --help` shows the form.",
        retry="no",
    ),
    ErrorCode(
        "INTERRUPTED",
        message="Ctrl-C. Nothing of what was under way has been published.",
        cause="",
        remedy="Run it again; the next refresh puts back what was staged.",
        retry="yes",
    ),
)
