"""Sets a capture up: options, preflight checks, column lists and row filters.

In come what a user wrote and what the server says. Out go options that the catalog keeps, opened captures, and checks
with their remedies.
"""
