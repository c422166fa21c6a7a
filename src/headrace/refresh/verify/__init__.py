"""Verifies a stream table against its own query at its frontier.

In comes a name; both sides are read at pinned versions. Out goes a `VerifyResult` with missing and unexpected rows.
"""
