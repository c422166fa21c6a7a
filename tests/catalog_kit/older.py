"""Catalogs of another age."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

import headrace.catalog
from catalog_kit.databases import sql
from headrace.catalog.schema import VERSION_TABLE


def alembic_config(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(headrace.catalog.__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def make(url: str, revision: str) -> None:
    """Make a catalog as the code of that revision did."""
    with sql(url) as connection:
        command.upgrade(alembic_config(connection), revision)


def pretend(url: str, revision: str) -> None:
    """Let a catalog say that it is of another revision."""
    with sql(url) as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = :revision"), {"revision": revision})


def tables(url: str) -> set[str]:
    with sql(url) as connection:
        return set(sa.inspect(connection).get_table_names())
