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
    from headrace.demo.run import Demo, Round
    from headrace.results.refresh_results import VerifyResult


def demonstrate(asked: Invocation, folder: Path, scale: float, rounds: int) -> bool:
    """Run it all; True when every stream table equals its query at the end."""
    from headrace.demo.run import Demo

    began = time.monotonic()
    tell = Teller(asked)
    tell.say(f"[bold]Headrace on TPC-H[/], scale factor {scale:g}, in {folder}")
    with Demo(folder, scale) as demo:
        _build(demo, asked, tell)
        done = [_round(demo, number, asked, tell) for number in range(1, rounds + 1)]
        with spinning(asked, demo.hr.events, "Comparing every stream table with its query"):
            verified = demo.verify()
    tell.say("\n[bold]Verify[/]: every stream table against its query", *tables.verifications(verified))
    tell.say(*render.totals(done, verified, time.monotonic() - began))
    tell.say(*render.go_on(folder, program()))
    if asked.json:
        show(asked, _document(folder, done, verified), tuple)
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


def _build(demo: Demo, asked: Invocation, tell: Teller) -> None:
    from headrace.demo.views import VIEWS

    with spinning(asked, demo.hr.events, "Starting Spark, generating and loading TPC-H"):
        rows = demo.load()
    tell.say(render.loaded(rows))
    with following(asked, demo.hr.events, "Creating stream tables"):
        created = [(view, demo.create(view)) for view in VIEWS]
    tell.say(*render.created(created))


def _round(demo: Demo, number: int, asked: Invocation, tell: Teller) -> Round:
    with spinning(asked, demo.hr.events, f"Round {number}: changing the sources"):
        changes = demo.change(number)
    with following(asked, demo.hr.events, f"Round {number}: timing the whole queries"):
        done = demo.refresh(number, changes)
    tell.say(*render.round_of(done))
    return done


def _document(folder: Path, rounds: list[Round], verified: tuple[VerifyResult, ...]) -> dict[str, Any]:
    return {
        "project": str(folder),
        "rounds": [done.as_dict() for done in rounds],
        "verified": [result.as_dict() for result in verified],
    }
