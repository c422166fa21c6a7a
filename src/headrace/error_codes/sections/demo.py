"""Faults of the demonstration."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "GENERATOR_MISSING",
        message="`tpchgen-cli` was not found.",
        cause="",
        remedy="`pip install 'headrace[demo]'`.",
        retry="no",
    ),
    ErrorCode(
        "GENERATOR_FAILED",
        message="TPC-H data could not be generated.",
        cause="See the detail.",
        remedy="",
        retry="no",
    ),
    ErrorCode(
        "DEMO_NOT_FOLLOWED",
        message="The demo's stream tables did not show a change in time.",
        cause="The machine is very busy, or a refresh failed.",
        remedy="`headrace events` in the demo's folder tells.",
        retry="yes",
    ),
    ErrorCode(
        "DEMO_CHILD_FAILED",
        message="The demo's second process, which is killed in the middle of a refresh, ended before it wrote.",
        cause="See the detail.",
        remedy="",
        retry="no",
    ),
)
