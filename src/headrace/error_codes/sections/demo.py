"""Faults of the demonstration."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "GENERATOR_MISSING",
        message="`tpchgen-cli` was not found.",
        cause="",
        remedy="Install that package into Headrace's environment.",
        retry="no",
    ),
    ErrorCode(
        "GENERATOR_FAILED",
        message="TPC-H data could not be generated.",
        cause="See the detail.",
        remedy="",
        retry="no",
    ),
)
