"""Alembic's scripts: how each revision of the catalog becomes the next.

In comes a catalog of an earlier release; out goes the same catalog with today's tables.
"""
