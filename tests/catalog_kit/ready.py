"""SQLite catalogs that are ready at once: copies of one that the migrations made, which takes them 60 ms."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from catalog_kit.databases import sql
from headrace.catalog import Catalog
from headrace.config import Settings
from headrace.project.new_project import init_project


def ready_catalog(file: Path) -> str:
    """Make a catalog that is up to date and empty, and return its URL."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_made())
    return f"sqlite:///{file}"


def ready_project(root: Path) -> Settings:
    """Make a project with such a catalog."""
    ready_catalog(root / "headrace.db")
    return init_project(root)


@cache
def _made() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "headrace.db"
        url = f"sqlite:///{file}"
        Catalog.open(url).close()
        with sql(url) as connection:
            connection.exec_driver_sql("DELETE FROM hr_own_database")  # what is made of it is no copy of a project's
        return file.read_bytes()
