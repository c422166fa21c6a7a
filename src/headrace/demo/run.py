"""A demonstration's project: a folder of its own, and TPC-H loaded into it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headrace import config
from headrace.demo import tpch
from headrace.demo.views import View
from headrace.errors import UserError
from headrace.project.new_project import init_project

if TYPE_CHECKING:
    from headrace.api.facade import Headrace
    from headrace.results.refresh_results import RefreshResult, VerifyResult

MARK = ".headrace-demo"
"""A file that says a folder is a demonstration's, which the next one may remove."""

GENERATED = Path("warehouse", "generated")
"""Folder of TPC-H's files, in the project."""

PARTS = 8
"""Files of each table: as many as such a table has once a few days have written to it."""

TABLES = ("customer", "part", "orders", "lineitem")
"""Tables of TPC-H that the demonstration's queries read."""


def prepare_folder(folder: Path) -> config.Settings:
    """Make the demonstration's project, in place of a former one.

    Raises:
        UserError: `FOLDER_NOT_EMPTY` for a folder that is not a former demonstration's.
    """
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise UserError(
                "FOLDER_NOT_EMPTY",
                f"{folder} holds something that is no earlier demo.",
                hint="Name another folder: headrace demo <folder>.",
            )
        shutil.rmtree(folder)
    settings = init_project(folder)
    (folder / MARK).touch()
    return settings


class Demo:
    """A demonstration in a project of its own.

    Args:
        folder: The project folder; see `prepare_folder`.
        scale: TPC-H scale factor.
    """

    def __init__(self, folder: Path, scale: float) -> None:
        import headrace

        self.folder = folder
        self.scale = scale
        self.hr: Headrace = headrace.open(prepare_folder(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hr.close()

    def load(self, tables: Sequence[str] = TABLES) -> dict[str, int]:
        """Generate the data while Spark starts, as the tables' own files; returns rows by table."""
        files = self.folder.absolute() / GENERATED
        with ThreadPoolExecutor(1) as beside:
            generated = beside.submit(tpch.generate, files, self.scale, tables, PARTS)
            spark = self.hr.spark
            generated.result()
        for statement in tpch.adopt_statements(files, tables=tables):
            spark.sql(statement)
        return {table: spark.table(f"lake.tpch.{table}").count() for table in tables}

    def create(self, view: View) -> RefreshResult:
        """Create and load one stream table."""
        result = self.hr.create_stream_table(view.name, view.query)
        assert result is not None
        return result

    def verify(self) -> tuple[VerifyResult, ...]:
        """Compare every stream table with its query."""
        return self.hr.verify()
