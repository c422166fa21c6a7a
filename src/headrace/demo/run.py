"""The demonstration, step by step; whoever runs it shows the results."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headrace import config
from headrace.demo import tpch
from headrace.demo.views import VIEWS, View
from headrace.errors import UserError
from headrace.project.new_project import init_project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.api.facade import Headrace
    from headrace.results.refresh_results import RefreshResult, VerifyResult

MARK = ".headrace-demo"
"""A file that says a folder is a demonstration's, which the next one may remove."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One stream table in one round.

    Args:
        refresh: What the refresh did.
        full_seconds: Time of the whole query in the same run, its rows computed and thrown away.
    """

    refresh: RefreshResult
    full_seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**self.refresh.as_dict(), "full_query_seconds": self.full_seconds}


@dataclass(frozen=True, slots=True)
class Round:
    """One round.

    Args:
        number: From 1.
        changes: What was done to the sources.
        refresh_seconds: Time of refreshing all stream tables.
        compared: Stream table by stream table.
    """

    number: int
    changes: tuple[tpch.Change, ...]
    refresh_seconds: float
    compared: tuple[Compared, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        tables = [compared.as_dict() for compared in self.compared]
        return {"round": self.number, "refresh_seconds": self.refresh_seconds, "tables": tables}


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

    def load(self) -> dict[str, int]:
        """Generate the data and load it; returns rows by table."""
        with tempfile.TemporaryDirectory(prefix="headrace-tpch-") as scratch:
            tpch.generate(Path(scratch), self.scale)
            for statement in tpch.load_statements(Path(scratch)):
                self.hr.spark.sql(statement)
        return {table: self.hr.spark.table(f"lake.tpch.{table}").count() for table in tpch.TABLES}

    def create(self, view: View) -> RefreshResult:
        """Create and load one stream table."""
        result = self.hr.create_stream_table(view.name, view.query)
        assert result is not None
        return result

    def change(self, number: int) -> tuple[tpch.Change, ...]:
        """Change the sources: RF1, RF2 and updates."""
        changes = tpch.changes(number)
        for change in changes:
            self.hr.spark.sql(change.sql)
        return changes

    def refresh(self, number: int, changes: tuple[tpch.Change, ...]) -> Round:
        """Refresh all stream tables and time their whole queries beside them."""
        began = time.monotonic()
        refreshed = {result.name: result for result in self.hr.refresh()}
        seconds = time.monotonic() - began
        pinned = self.hr.at()
        compared = tuple(
            Compared(refreshed[view.name], timed(pinned.sql(view.query))) for view in VIEWS if view.name in refreshed
        )
        return Round(number, changes, seconds, compared)

    def verify(self) -> tuple[VerifyResult, ...]:
        """Compare every stream table with its query."""
        return self.hr.verify()


def timed(frame: DataFrame) -> float:
    """Return seconds to compute all rows of a query.

    They are thrown away, so storing them is not counted.
    """
    began = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began
