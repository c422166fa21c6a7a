"""Runs the deployment act of the demonstration and shows it as it goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headrace.cli.console import show
from headrace.cli.invocation import Invocation
from headrace.cli.progress import following, spinning
from headrace.cli.render import demo as loading
from headrace.cli.render import demo_deploy as render
from headrace.cli.render import deployments, tables
from headrace.cli.verbs.demonstration import Teller, program

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.demo.deployment import DeployDemo, Phase, Reader

T = TypeVar("T")


def demonstrate(asked: Invocation, folder: Path, scale: float) -> bool:
    """Run it all; True when nothing was seen mixed or missing, and all is equal at the end."""
    from headrace.demo.deployment import DeployDemo, Reader, Seen

    tell = Teller(asked)
    tell.say(f"[bold]A deployment on TPC-H[/], scale factor {scale:g}, in {folder}")
    with DeployDemo(folder, scale) as demo:
        with spinning(asked, demo.hr.events, "Starting Spark, generating and loading TPC-H"):
            rows = demo.load()
        tell.say(loading.loaded(rows))
        with following(asked, demo.hr.events, "Creating stream tables"):
            created = demo.build()
        tell.say(*render.built(created))
        began = time.monotonic()
        with Reader(demo.hr) as reader:
            phases = _Acts(demo, reader, asked, tell).play()
        seen = dict(reader.seen)
        with spinning(asked, demo.hr.events, "Comparing every stream table with its query"):
            verified = demo.verify()
    tell.say("\n[bold]Verify[/]: every stream table against its query", *tables.verifications(verified))
    tell.say(*render.totals(phases, seen, verified, time.monotonic() - began))
    tell.say(*render.go_on(folder, program()))
    if asked.json:
        document = {
            "project": str(folder),
            "phases": [phase.as_dict() for phase in phases],
            "seen": {kind.value: seen.get(kind, 0) for kind in Seen},
            "verified": [result.as_dict() for result in verified],
        }
        show(asked, document, tuple)
    torn = seen.get(Seen.MIXED, 0) + seen.get(Seen.MISSING, 0)
    return not torn and all(result.ok for result in verified)


class _Acts:
    """Plays the phases one after the other.

    Args:
        demo: The demonstration.
        reader: Reads beside it.
        asked: What was asked of the command.
        tell: Prints.
    """

    def __init__(self, demo: DeployDemo, reader: Reader, asked: Invocation, tell: Teller) -> None:
        self._demo = demo
        self._reader = reader
        self._asked = asked
        self._tell = tell
        self._phases: list[Phase] = []

    def play(self) -> list[Phase]:
        """Play all of them; return what each took, and what the reader saw."""
        demo = self._demo
        self._act("Build the greens", demo.create_greens, deployments.greens)
        self._act("Change the sources, refresh the public tables", demo.fall_behind, deployments.greens)
        self._act("Let the greens catch up", demo.catch_up, deployments.greens)
        self._act("Promote", demo.promote, deployments.promotion)
        self._act("Take it back", demo.roll_back, deployments.promotion)
        return self._phases

    def _act(self, name: str, act: Callable[[], T], drawn: Callable[[T], Iterable[RenderableType]]) -> None:
        with following(self._asked, self._demo.hr.events, name):
            done, phase = self._demo.phase(name, self._reader, act)
        self._phases.append(phase)
        self._tell.say(render.heading(phase), *drawn(done))
