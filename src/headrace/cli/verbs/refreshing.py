"""refresh, verify, maintain."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated

import typer

from headrace.cli.console import show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import invocation
from headrace.cli.progress import following, spinning
from headrace.cli.render import tables as render

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Stream tables, namespace.table; none means all.")
]
UNITS = {"s": "seconds", "min": "minutes", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> dt.timedelta:
    """Read an age such as `7d`, `36h`, `90min` or `0s`."""
    match = re.fullmatch(r"\s*(\d+)\s*(s|min|m|h|d|w)\s*", text)
    if match is None:
        raise typer.BadParameter(f"'{text}' is no age; write 7d, 36h, 90min or 0s.")
    return dt.timedelta(**{UNITS[match[2]]: int(match[1])})


def refresh(
    context: typer.Context,
    names: Names = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute, whatever changed.")] = False,
) -> None:
    """Bring stream tables up to date: those named, or all whose sources changed, sources before consumers.

    \b
    Examples:
      headrace refresh
      headrace refresh shop.revenue shop.big_orders
      headrace refresh shop.revenue --full
    """
    asked = invocation(context)
    with asked.open() as hr, following(asked, hr.events):
        results = hr.refresh(names or None, full=full)
    show(asked, [result.as_dict() for result in results], lambda: render.refreshes(results))


def verify(context: typer.Context, names: Names = None) -> None:
    """Prove that stream tables equal their queries at the versions they reflect; exit status 1 if one does not.

    \b
    Examples:
      headrace verify
      headrace verify shop.revenue --json
    """
    asked = invocation(context)
    with asked.open() as hr, spinning(asked, hr.events, "Comparing stream tables with their queries"):
        results = hr.verify(names or None)
    show(asked, [result.as_dict() for result in results], lambda: render.verifications(results))
    if not all(result.ok for result in results):
        raise typer.Exit(FAILED)


def maintain(
    context: typer.Context,
    older_than: Annotated[str, typer.Option(metavar="AGE", help="Snapshots younger than this stay.")] = "7d",
    orphans_older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Files no table refers to stay until they are this old.")
    ] = "3d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
) -> None:
    """Expire snapshots, compact files, trim change logs, remove orphan files; never what a stream table still needs.

    \b
    Examples:
      headrace maintain --dry-run
      headrace maintain --older-than 36h --orphans-older-than 7d
    """
    asked = invocation(context)
    ages = parse_age(older_than), parse_age(orphans_older_than)
    with asked.open() as hr, spinning(asked, hr.events, "Maintaining tables"):
        results = hr.maintain(older_than=ages[0], orphans_older_than=ages[1], dry_run=dry_run)
    show(asked, [result.as_dict() for result in results], lambda: render.maintenance(results))


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (refresh, verify, maintain):
        app.command(rich_help_panel="Keeping fresh")(verb)
