"""Opens a project for pages, looks at it, and does what buttons ask for."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headrace.api.facade import Headrace
from headrace.config import Settings
from headrace.definitions.column_lineage import Lineages
from headrace.error_codes.table import SECTIONS
from headrace.graph.dag import Dag
from headrace.observability.metrics.project_state import ProjectState
from headrace.results.refresh_results import Status, StreamTableInfo
from headrace.serve.caller.ask import ask
from headrace.serve.monitoring.project_monitor import ProjectMonitor
from headrace.web.actions import Actions

REMEDIES: Mapping[str, str] = {code.code: code.remedy for section in SECTIONS for code in section.codes if code.remedy}
"""Remedies of errors, by code."""


@dataclass(frozen=True, slots=True)
class Running:
    """A refresh under way, as somebody told.

    Args:
        table: The stream table.
        mode: How it is refreshed; "" where nobody says.
        stage: Which stage runs; None where nobody says.
        since: When it began; None likewise.
        done: How many stages have ended.
    """

    table: str
    mode: str = ""
    stage: str | None = None
    since: dt.datetime | None = None
    done: int = 0


class Site:
    """A project for pages; starts no Spark.

    Args:
        settings: The project's.
        buttons: Whether there are any.

    Attributes:
        actions: What they do; None where there are none.
        ending: Set when nobody is to wait for news any more.
        project: The project, open.
        lineages: Where columns of stream tables come from.
        monitor: Looks at it, no more often than that pays.
    """

    def __init__(self, settings: Settings, *, buttons: bool = False) -> None:
        self.settings = settings
        self.ending = threading.Event()
        self.project = Headrace(settings, create=False)
        self.actions = Actions(settings.root, self.project) if buttons else None
        self.monitor = ProjectMonitor(settings)
        self.lineages = Lineages(self.project._lazy.catalogs())
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close what was opened."""
        self.monitor.close()
        self.project.close()

    def state(self) -> ProjectState:
        """Return where the project stands.

        Raises:
            HeadraceError: The catalog cannot be read.
        """
        found = self.monitor.state()
        if found.error is not None:
            raise found.error
        return found

    def graph(self, state: ProjectState) -> Dag[str]:
        """Return who reads whom."""
        return self.monitor.graph(state)

    def running(self, state: ProjectState) -> list[Running]:
        """Return what is refreshed now, with stages where a server of the project tells."""
        told = {str(each.get("table")): each for each in self.told()}
        names = [*dict.fromkeys([*told, *state.running])]
        return [_running(name, told.get(name, {})) for name in names]

    def told(self) -> list[Mapping[str, Any]]:
        """Return what a server of the project tells of the refreshes that it runs."""
        with suppress(OSError, ValueError):
            found = ask(str(self.settings.root.resolve()), "GET", "/v1/running", seconds=2.0)
            running = found[1].get("running") if found is not None and found[0] == 200 else None
            return [each for each in running if isinstance(each, dict)] if isinstance(running, list) else []
        return []


def _running(name: str, told: Mapping[str, Any]) -> Running:
    since = dt.datetime.fromisoformat(told["since"]) if told.get("since") else None
    return Running(name, str(told.get("mode", "")), told.get("stage"), since, int(told.get("done", 0)))


def condition(table: StreamTableInfo) -> tuple[str, str]:
    """Return a table's condition: a class of the style sheet, and the word for it."""
    if table.status in (Status.STOPPED, Status.DAMAGED):
        return "bad", table.status.value.lower()
    if table.fuse is not None:
        return "bad", "fuse blown"
    if table.last_error is not None:
        return "bad", "failed"
    if table.held_up is not None:
        return "held", "held up"
    if table.is_late:
        return "late", "late"
    if table.status is Status.NEW:
        return "new", "not loaded"
    if not table.lag:
        return "good", "fresh"
    return "good", "following" if table.target is None else "within target"


def remedy(code: str | None) -> str | None:
    """Return what to do about an error; None where nothing is known."""
    return REMEDIES.get(code or "")
