"""Progress on stderr: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.console import stderr
from headrace.cli.invocation import Invocation
from headrace.cli.render import format as fmt
from headrace.cli.surroundings import served
from headrace.errors import HeadraceError
from headrace.events import (
    Event,
    Events,
    Notice,
    RefreshFailed,
    RefreshFinished,
    RefreshGivenUp,
    RefreshStarted,
    SparkStarted,
    SparkStarting,
    StageProgressed,
    StageStarted,
)
from headrace.observability.event_words import news, plain_line, reason_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FINISHED_SHOWN = 12
"""Refreshes that are done and still shown: with those that run they fit on a terminal."""


@dataclass(slots=True)
class Line:
    """One table's refresh as shown so far."""

    table: str
    mode: str
    started: float
    stage: str = "planning"
    finished: RefreshFinished | RefreshFailed | None = None


class Board:
    """Collects events by table; refreshing threads write, the display's thread reads.

    Attributes:
        starting: Whether Spark is being started.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, Line] = {}
        self.starting = False

    def note(self, event: Event) -> None:
        """Take an event in."""
        with self._lock:
            match event:
                case SparkStarting() | SparkStarted():
                    self.starting = isinstance(event, SparkStarting)
                case RefreshStarted():
                    self._lines.pop(event.table, None)
                    self._lines[event.table] = Line(event.table, event.mode, time.monotonic())
                case StageStarted() if event.table in self._lines:
                    self._lines[event.table].stage = event.stage
                case StageProgressed() if event.table in self._lines:
                    self._lines[event.table].stage = event.progress
                case RefreshGivenUp():
                    self._lines.pop(event.table, None)
                case RefreshFinished() | RefreshFailed():
                    line = self._lines.setdefault(event.table, Line(event.table, "", time.monotonic()))
                    line.finished = event

    def lines(self) -> list[Line]:
        """Return the lines, in the order refreshes began."""
        with self._lock:
            return list(self._lines.values())


class Display:
    """Draws a board: running tables with their stages, finished ones, elapsed time."""

    def __init__(self, board: Board, title: str) -> None:
        from rich.spinner import Spinner

        self._board = board
        self._title = title
        self._began = time.monotonic()
        self._spinner = Spinner("dots")

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table

        lines = self._board.lines()
        done = [line for line in lines if line.finished]
        running = [line for line in lines if not line.finished]
        table = Table.grid(padding=(0, 2))
        table.add_column(width=1)
        for _ in range(3):
            table.add_column()
        table.add_column(justify="right")
        for line in done[-FINISHED_SHOWN:]:
            table.add_row(*finished_cells(line))
        now = time.monotonic()
        for line in running:
            table.add_row(self._spinner, line.table, line.mode, line.stage, fmt.seconds(now - line.started))
        if not running:
            title = "Starting Spark" if self._board.starting else self._title
            table.add_row(self._spinner, f"[dim]{title}[/]", "", "", fmt.seconds(now - self._began))
        hidden = len(done) - FINISHED_SHOWN
        return Group(f"[dim]… {hidden} more finished[/]", table) if hidden > 0 else table


def finished_cells(line: Line) -> tuple[str, str, str, str, str]:
    """Mark, table, mode, rows or error, and time of a finished refresh."""
    end = line.finished
    if isinstance(end, RefreshFailed):
        return ("[bold red]✗[/]", line.table, line.mode, f"[red]{end.code}[/]", "")
    assert end is not None
    rows = fmt.signed(end.rows_inserted, end.rows_deleted)
    return ("[green]✓[/]", line.table, end.mode, rows, fmt.seconds(end.seconds))


@contextmanager
def following(asked: Invocation, events: Events, title: str = "Working", *, goes_on: bool = False) -> Iterator[None]:
    """Show refreshes while the block runs; a failure leaves what was done on the screen.

    Args:
        asked: What was asked of the command.
        events: Where refreshes are told of.
        title: What is shown while there are none.
        goes_on: Whether the block goes on after failures, so that they are told in full at once. Else its error is told
            by whoever gets it, and what is shown here says only where it was.
    """
    if asked.quiet or asked.json:
        yield
        return
    console = stderr()
    shown = _live(console, events, title) if console.is_terminal else _lines(console, events, goes_on)
    with shown:
        yield


@contextmanager
def _lines(console: Console, events: Events, goes_on: bool) -> Iterator[None]:
    from rich.text import Text

    failures: list[RefreshFailed] = []

    def show(line: str) -> None:
        console.print(Text(line), soft_wrap=True)

    def tell(event: Event) -> None:
        if isinstance(event, RefreshFailed) and not goes_on:
            failures.append(event)
            show(f"{event.table}: failed")
        elif (line := plain_line(event)) is not None:
            show(line)

    unsubscribe = events.subscribe(tell)
    raised: HeadraceError | None = None
    try:
        yield
    except HeadraceError as error:
        raised = error
        raise
    finally:
        unsubscribe()
        for failure in failures:  # the one that is raised is told in full by whoever gets it
            if raised is None or (failure.code, failure.message) != (raised.code, raised.message):
                show(f"{failure.table}: {reason_of(failure)}")


@contextmanager
def _live(console: Console, events: Events, title: str) -> Iterator[None]:
    from rich.live import Live
    from rich.text import Text

    from headrace.spark.starting import telling_by

    board = Board()
    display = Display(board, title)
    own = not served()  # what a server's other commands say must not be caught
    with Live(
        display,
        console=console,
        refresh_per_second=10,
        transient=True,
        redirect_stdout=own,
        redirect_stderr=own,
    ) as live:

        def tell(event: Event) -> None:
            if (line := event.message if isinstance(event, Notice) else news(event)) is not None:
                live.console.print(Text(line))
            else:
                board.note(event)

        unsubscribe = events.subscribe(tell)
        heard = telling_by(lambda line: live.console.print(Text(line))) if own else nullcontext()
        try:
            with heard:
                yield
        except BaseException:
            done = [line for line in board.lines() if line.finished]
            for line in done:
                live.console.print("  ".join(cell for cell in finished_cells(line) if cell))
            raise
        finally:
            unsubscribe()


@contextmanager
def spinning(asked: Invocation, events: Events, title: str) -> Iterator[None]:
    """Show that something runs that is not a refresh."""
    with following(asked, events, title):
        yield
