"""Errors of the command line only."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "INTERRUPTED",
        message="Ctrl-C. Nothing of what was under way has been published.",
        cause="",
        remedy="Run it again; the next refresh puts back what was staged.",
        retry="yes",
    ),
)
