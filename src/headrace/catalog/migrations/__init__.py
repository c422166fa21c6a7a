"""Alembic's scripts: how each revision of the catalog becomes the next."""
