"""Leases, heartbeats, schedulers' rows and notifications between processes.

In come resources to lease and what schedulers report. Out go fencing tokens, claims and wake-ups; publishing checks
the tokens.
"""
