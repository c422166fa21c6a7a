"""Copies tables as of an exported snapshot, in parts, and resumes after a kill.

In come tables and a snapshot's name. Out go spooled files and a ledger of what is whole.
"""
