"""Follows changes as they come, and times each until every stream table shows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.demo import tpch
from headrace.demo.views import VIEWS
from headrace.errors import EnvironmentFault

if TYPE_CHECKING:
    from headrace.api.facade import Headrace

SHARE = 0.0001
"""Of the orders that a live change touches."""

PATIENCE = 120.0
"""Seconds after which a change that is not followed is an error."""


@dataclass(frozen=True, slots=True)
class Followed:
    """One change of the sources that the schedules followed.

    Args:
        what: What changed.
        seconds: Time from its commit until every stream table showed it.
    """

    what: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"change": self.what, "seconds": round(self.seconds, 3)}


def follow(hr: Headrace, changes: int) -> Iterator[Followed]:
    """Change the sources while schedules run; yield how long each change took.

    Args:
        hr: The project.
        changes: How many changes are made, one after the other.

    Raises:
        EnvironmentFault: `DEMO_NOT_FOLLOWED`.
    """
    for view in VIEWS:
        hr.alter_stream_table(view.name, schedule="ON CHANGE")
    with _scheduler(hr):
        for number in range(changes):
            change = tpch.price_changes(number, SHARE)
            hr.spark.sql(change.sql)
            began = time.monotonic()
            _until_fresh(hr, began)
            yield Followed(change.what, time.monotonic() - began)


@contextmanager
def _scheduler(hr: Headrace) -> Iterator[None]:
    stopping = threading.Event()
    thread = threading.Thread(target=lambda: hr.run(stopping=stopping), name="headrace-demo-run", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _until_fresh(hr: Headrace, began: float) -> None:
    while late := [table.name for table in hr.status() if table.behind]:
        if time.monotonic() - began > PATIENCE:
            names = ", ".join(late)
            raise EnvironmentFault(
                "DEMO_NOT_FOLLOWED",
                f"{PATIENCE:.0f} s after a change, {names} did not show it.",
                hint="headrace events, in the demo's folder, tells why.",
                retryable=True,
            )
        time.sleep(0.05)
