"""Decides when stream tables are refreshed, and has it done.

In come the catalog's state, schedules and the clock. Out go units started in threads by a `Worker`, failures noted
and retried. Door: `loop`.
"""
