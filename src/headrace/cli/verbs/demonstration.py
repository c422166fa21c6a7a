"""Runs the demonstration and shows it as it goes."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.cli.console import show, write
from headrace.cli.invocation import Invocation
from headrace.cli.progress import following, spinning
from headrace.cli.render import demo as render
from headrace.cli.render import tables

if TYPE_CHECKING:
    from headrace.demo.against_spark import ComparingDemo, Round
    from headrace.demo.killed import Killed
    from headrace.demo.live import Followed

LIVE_CHANGES = 3
"""They also warm the session up, as one that follows changes has been for long."""


def demonstrate(asked: Invocation, folder: Path, scale: float, rounds: int) -> bool:
    """Run it all; True when every stream table equals its query at the end."""
    from headrace.demo.against_spark import ComparingDemo, totals

    began = time.monotonic()
    tell = Teller(asked)
    tell.say(f"[bold]Headrace on TPC-H[/], scale factor {scale:g}, in {folder}")
    with ComparingDemo(folder, scale) as demo:
        _build(demo, asked, tell)
        followed = _live(demo, tell)
        done = [_round(demo, number, asked, tell) for number in range(1, rounds + 1)]
        found = totals(done)
        tell.say(*render.bars(found))
        dead = _killed(demo, asked, tell)
        with spinning(asked, demo.hr.events, "Comparing every stream table with its query"):
            verified = demo.verify()
    tell.say("\n[bold]Verify[/]: every stream table against its query", *tables.verifications(verified))
    tell.say(*render.totals(done, found, verified, time.monotonic() - began))
    tell.say(*render.go_on(folder, program()))
    if asked.json:
        document = {
            "project": str(folder),
            "rounds": [one.as_dict() for one in done],
            "live": [change.as_dict() for change in followed],
            "killed": dead.as_dict(),
            "verified": [result.as_dict() for result in verified],
        }
        show(asked, document, tuple)
    return all(result.ok for result in verified)


class Teller:
    """Prints unless only JSON is wanted."""

    def __init__(self, asked: Invocation) -> None:
        self._silent = asked.json

    def say(self, *parts: Any) -> None:
        """Print some parts."""
        if not self._silent:
            write(parts)


def program() -> str:
    """Return how the user's shell calls Headrace: by name, else by path."""
    return "headrace" if shutil.which("headrace") else str(Path(sys.argv[0]).absolute())


def _build(demo: ComparingDemo, asked: Invocation, tell: Teller) -> None:
    from headrace.demo.views import VIEWS

    with spinning(asked, demo.hr.events, "Starting Spark, generating and loading TPC-H"):
        rows = demo.load()
    tell.say(render.loaded(rows))
    with following(asked, demo.hr.events, "Creating stream tables"):
        created = [(view, demo.create(view)) for view in VIEWS]
    demo.create_plain()
    tell.say(*render.created(created))


def _round(demo: ComparingDemo, number: int, asked: Invocation, tell: Teller) -> Round:
    with spinning(asked, demo.hr.events, f"Round {number}: changing the sources"):
        changes = demo.change(number)
    with following(asked, demo.hr.events, f"Round {number}: overwriting with plain Spark"):
        done = demo.compare(number, changes)
    tell.say(*render.round_of(done))
    return done


def _live(demo: ComparingDemo, tell: Teller) -> list[Followed]:
    from headrace.demo.live import follow

    tell.say("\n[bold]Live[/]: schedules ON CHANGE, one change after the other")
    followed = []
    for change in follow(demo.hr, LIVE_CHANGES):
        tell.say(render.live(change))
        followed.append(change)
    return followed


def _killed(demo: ComparingDemo, asked: Invocation, tell: Teller) -> Killed:
    from headrace.demo.killed import kill_a_refresh

    with spinning(asked, demo.hr.events, "Changing the sources; another process refreshes, and is killed as it writes"):
        before = demo.rows()
        demo.change(0)
        dead = kill_a_refresh(demo.folder)
        after = demo.rows()
    tell.say(*render.killed(dead, after, before))
    with following(asked, demo.hr.events, "Refreshing after the kill"):
        began = time.monotonic()
        demo.hr.refresh()
        seconds = time.monotonic() - began
    tell.say(render.taken_over(seconds))
    return dead
