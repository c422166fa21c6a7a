"""Tells that a project's folder was moved or copied.

Iceberg's metadata names files by absolute paths. Only of a project that is whole in one folder, catalog and warehouse
included, can that be known and does it matter: the tables of a moved one are missing, and those of a copy are the
original's own files, which a refresh would write into.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
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
    missing: tuple[str, Path] | None = None
    for location, before in _left_elsewhere(catalog.metadata_outside(str(root)), root, warehouse):
        if not os.path.exists(location):  # or it is not ours to see
            missing = missing or (location, before)
        elif os.path.exists(before / config.FILE_NAME):
            raise UserError(
                "PROJECT_COPIED",
                f"{root} is a copy of {before}: its tables are the files of that project, and would be written there.",
                hint="Work there; or make a new project with `headrace init`, and in it the stream tables, whose "
                f"statements `headrace -p {before} show-create` prints.",
            )
    if missing is not None:
        location, before = missing
        raise UserError(
            "PROJECT_MOVED",
            f"This project was moved: its tables are named as files of {before}, and {root} is another folder.",
            detail=f"There is no {location}.",
            hint=f"Move it back, or let the old name lead here: ln -s {root} {before}. Iceberg's metadata names files "
            "by their whole path, so that the folder cannot change its name.",
        )


def _left_elsewhere(outside: Mapping[str, bool], root: Path, warehouse: Path) -> Iterator[tuple[str, Path]]:
    """Yield metadata files that lie where this project's warehouse was, with its folder then.

    A file of the project was moved or copied with it, so that it is in the warehouse as well; tables that their users
    have elsewhere, or took from another project, are not. Where the warehouse was left behind, what Headrace published
    is known to have been there.
    """
    left_behind = not warehouse.is_dir() or not any(warehouse.iterdir())
    leads_here: dict[Path, bool] = {}
    for location, published in outside.items():
        readings = _readings(location, warehouse.relative_to(root))
        for before, _ in readings:
            if before not in leads_here:
                leads_here[before] = before.resolve() == root.resolve()
        if not readings or any(leads_here[before] for before, _ in readings):
            continue
        found = [before for before, rest in readings if (warehouse / rest).exists()]
        if not found and published and left_behind:
            befores = [before for before, _ in readings]
            found = [before for before in befores if os.path.exists(before / config.FILE_NAME)] or befores[-1:]
        if found:
            yield location, found[0]


def _readings(location: str, warehouse: Path) -> list[tuple[Path, str]]:
    """Return project folders, each with a path in its warehouse, that a path may stand for.

    Args:
        location: The path.
        warehouse: The warehouse, relative to the project folder.
    """
    infix, found = f"/{warehouse}/", list[tuple[Path, str]]()
    at = location.find(infix)
    while at >= 0:
        found.append((Path(location[:at]), location[at + len(infix) :]))
        at = location.find(infix, at + 1)
    return found


def _inside(path: Path, root: Path) -> bool:
    return path.is_absolute() and path.is_relative_to(root)
