"""Tells that a project's folder was moved or copied.

Iceberg's metadata names files by absolute paths. Only of a project that is whole in one folder, catalog and warehouse
included, can that be known and does it matter: the tables of a moved one are missing, and those of a copy are the
original's own files, which a refresh would write into.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace import config
from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.catalog import Catalog


def refuse_moved(settings: config.Settings, catalog: Catalog) -> None:
    """Refuse a project whose tables lie where its folder was before.

    Args:
        settings: The project's.
        catalog: Its catalog.

    Raises:
        UserError: `PROJECT_MOVED`, `PROJECT_COPIED`.
    """
    root, warehouse = settings.root, Path(settings.warehouse.removeprefix("file:"))
    database = Path(settings.catalog_url.removeprefix("sqlite:///"))
    if settings.lake is not None or not (_inside(warehouse, root) and _inside(database, root)):
        return
    found = catalog.metadata_outside(str(root))
    before = None if found is None else former_root(found, warehouse.relative_to(root))
    if found is None or before is None or before.resolve() == root.resolve():
        return
    if not Path(found).exists():
        raise UserError(
            "PROJECT_MOVED",
            f"This project was moved: its tables are named as files of {before}, and {root} is another folder.",
            detail=f"There is no {found}.",
            hint=f"Move it back, or let the old name lead here: ln -s {root} {before}. Iceberg's metadata names files "
            "by their whole path, so that the folder cannot change its name.",
        )
    if (before / config.FILE_NAME).exists():
        raise UserError(
            "PROJECT_COPIED",
            f"{root} is a copy of {before}: its tables are the files of that project, and would be written there.",
            hint="Work there; or make a new project with `headrace init`, and in it the stream tables, whose "
            f"statements `headrace -p {before} show-create` prints.",
        )


def former_root(location: str, warehouse: Path) -> Path | None:
    """Return the project folder that a metadata file was written in; None: nobody can tell.

    Args:
        location: The metadata file, a path.
        warehouse: The warehouse, relative to the project folder.
    """
    before, found, _ = location.partition(f"/{warehouse}/")
    return Path(before) if found else None


def _inside(path: Path, root: Path) -> bool:
    return path.is_absolute() and path.is_relative_to(root)
