"""run, pause, resume, drain, diamonds, events."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import click

from headrace.addresses import parse_address
from headrace.cli.console import confirm, show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import running as render
from headrace.cli.surroundings import stdout
from headrace.cli.verbs import options
from headrace.cli.verbs.serving import watched
from headrace.events import PASSING, Event, Events, fields_of, kind_of

FOLLOW_SECONDS = 1.0
"""Time between two looks for events; one small query each."""

FOLLOW_EVENTS = 1000
"""Events that one look takes."""

MOST_GRACE = 366 * 86400.0
"""A year, as for schedules; more overflows when it becomes a point in time."""


def _grace(_context: click.Context, _option: click.Parameter, seconds: float) -> float:
    if 0 <= seconds <= MOST_GRACE:  # a range of click's own lets "nan" through
        return seconds
    raise click.BadParameter(f"{seconds} is not between 0 and {MOST_GRACE:.0f}.")


@click.command()
@click.option("--once", is_flag=True, help="Refresh what is due now, then end; exit status 1 if something failed.")
@click.option("--dry-run", is_flag=True, help="Show what would be refreshed now, in which order, and why.")
@click.option("--max-concurrent", type=click.IntRange(1, 32), metavar="N", help="Refreshes at once, 1 to 32.")
@click.option(
    "--grace",
    type=float,
    callback=_grace,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="What runs at SIGTERM or Ctrl-C is given that long, then it is cancelled.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Answer Prometheus there, at /metrics, and orchestrators at /healthz and /readyz; a port alone is loopback.",
)
@pass_invocation
def run(
    asked: Invocation, once: bool, dry_run: bool, max_concurrent: int | None, grace: float, metrics: str | None
) -> None:
    """Keep stream tables fresh by their schedules until stopped.

    Ctrl-C, SIGTERM and `headrace drain` stop it, a second Ctrl-C at once. Meanwhile other commands of the project use
    its Spark (docs/serve.md).

    With --json each event is a line of JSON on stdout.

    \b
    Examples:
      headrace run
      headrace run --once
      headrace run --dry-run
      headrace run --metrics 127.0.0.1:9464
    """
    alone = once or dry_run
    if alone and metrics:
        raise click.UsageError("--metrics goes with a run that stays.")
    wanted = parse_address(metrics, "--metrics") if metrics else None
    with (
        asked.open() as hr,
        nullcontext() if alone else watched(asked, hr, wanted or hr.settings.serve_metrics),
        _telling(asked, hr.events, dry_run),
    ):
        summary = hr.run(once=once, dry_run=dry_run, max_concurrent=max_concurrent, grace=dt.timedelta(seconds=grace))
    if dry_run:
        show(asked, [p.as_dict() for p in summary.planned], lambda: render.planned(summary.planned))
    if once and (summary.failed or not summary.landed or not summary.written):
        raise click.exceptions.Exit(FAILED)


@contextmanager
def _telling(asked: Invocation, events: Events, dry_run: bool) -> Iterator[None]:
    if not asked.json or dry_run:
        with following(asked, events, "Waiting for changes", goes_on=True):
            yield
        return
    lock = threading.Lock()

    def tell(event: Event) -> None:
        if isinstance(event, PASSING):
            return
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        with lock:  # lines of two threads must not run into each other
            _print_line({"at": now, "event": kind_of(event), **fields_of(event)})

    unsubscribe = events.subscribe(tell)
    try:
        yield
    finally:
        unsubscribe()


def _print_line(document: dict[str, Any]) -> None:
    stdout().write(json.dumps(document, ensure_ascii=False, default=str) + "\n")
    stdout().flush()


def _act(asked: Invocation, names: tuple[str, ...], method: str, done: Callable[[str], str]) -> None:
    with asked.open() as hr:
        acted = getattr(hr, method)(names or None)
    confirm(asked, list(acted), done(", ".join(acted)) if acted else "There are no stream tables.")


@click.command()
@options.names
@pass_invocation
def pause(asked: Invocation, names: tuple[str, ...]) -> None:
    """Have schedules leave stream tables alone: those named, or all. What reads them waits.

    \b
    Examples:
      headrace pause shop.revenue
      headrace pause
    """
    _act(asked, names, "pause", lambda who: f"Paused {who}.")


@click.command()
@options.names
@pass_invocation
def resume(asked: Invocation, names: tuple[str, ...]) -> None:
    """Refresh stream tables by their schedules again.

    Ends pauses, suspensions and waits for a retry; they are due at once.

    \b
    Examples:
      headrace resume shop.revenue
      headrace resume
    """
    _act(asked, names, "resume", lambda who: f"Resumed {who}.")


@click.command()
@pass_invocation
def drain(asked: Invocation) -> None:
    """Have every `headrace run` of the project finish what runs and end.

    Nothing more is started; for deployments.

    \b
    Examples:
      headrace drain
    """
    with asked.open() as hr:
        owners = hr.drain()
    confirm(asked, list(owners), f"Asked {', '.join(owners)}." if owners else "No schedules are run at the moment.")


@click.command()
@pass_invocation
def diamonds(asked: Invocation) -> None:
    """Show the groups of stream tables that are refreshed and published together, and why.

    \b
    Examples:
      headrace diamonds
    """
    with asked.open() as hr:
        groups = hr.diamond_groups()
    show(asked, [group.as_dict() for group in groups], lambda: render.groups(groups))


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on showing events as they happen, until interrupted.")
@options.limit(20, "How many at first.")
@pass_invocation
def events(asked: Invocation, follow: bool, limit: int) -> None:
    """Show schedulers' events and users' decisions, oldest first.

    With --json each event is a line of JSON on stdout.

    \b
    Examples:
      headrace events
      headrace events --follow --json
    """
    with asked.open() as hr:
        found, after = hr.event_log(None, limit), 0
        while True:
            for event in found:
                after = event.id
                if asked.json:
                    _print_line(event.as_dict())
                else:
                    stdout().write(render.event_line(event) + "\n")
            stdout().flush()
            if not follow:
                if not found and not asked.json:
                    stdout().write("There are no events yet; schedulers write them, see `headrace run`.\n")
                return
            if len(found) < FOLLOW_EVENTS:  # else there may be more already
                time.sleep(FOLLOW_SECONDS)
            found = hr.event_log(after, FOLLOW_EVENTS)


VERBS = (run, pause, resume, drain, diamonds, events)
