"""A copy of the example over a project of its own; dbt runs in this process, as its own command would."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.adapters.headrace.projects import OpenProject, open_project
from dbt.cli.main import dbtRunner

from headrace.api.facade import Headrace

EXAMPLE = Path(__file__).parents[1] / "example"


@dataclass
class Run:
    """What an invocation of dbt did.

    Args:
        success: Whether dbt calls it one.
        lines: What it printed.
        results: Message of each node, by its name.
    """

    success: bool
    lines: list[str]
    results: dict[str, str]
    statuses: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Shop:
    """The example, over a project of its own."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder

    @property
    def hr(self) -> Headrace:
        project = open_project(self.root.absolute())
        assert isinstance(project, OpenProject)
        return project.hr

    def dbt(self, *args: str, profiles: Path | None = None) -> Run:
        lines: list[str] = []
        runner = dbtRunner(callbacks=[lambda event: event.info.level != "debug" and lines.append(event.info.msg)])
        done = runner.invoke(
            [
                *(*args, "--no-use-colors", "--quiet"),
                *("--project-dir", str(self.folder), "--profiles-dir", str(profiles or self.folder)),
            ]
        )
        found: Any = getattr(done.result, "results", None) or ()
        nodes = [one for one in found if getattr(one, "node", None) is not None]
        if done.exception is not None:
            lines.append(str(done.exception))
        return Run(
            done.success,
            lines,
            {one.node.name: str(one.message) for one in nodes},
            {one.node.name: str(one.status) for one in nodes},
        )

    def model(self, name: str, text: str) -> Path:
        path = self.folder / "models" / f"{name}.sql"
        path.write_text(text, encoding="utf-8")
        return path

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.hr.spark.sql(query).collect())

    def history(self) -> int:
        return len(self.hr.history(limit=None))
