"""refresh, verify, repair, maintain."""

from __future__ import annotations

import datetime as dt
import re

import click

from headrace.cli.console import show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following, spinning
from headrace.cli.render import tables as render
from headrace.cli.verbs import options
from headrace.schedule.durations import HUNDRED_YEARS

UNITS = {"s": "seconds", "min": "minutes", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> dt.timedelta:
    """Read an age such as `7d`, `36h`, `90min` or `0s`."""
    match = re.fullmatch(r"\s*(\d+)\s*(s|min|m|h|d|w)\s*", text)
    if match is None:
        raise click.UsageError(f"'{text}' is no age; write 7d, 36h, 90min or 0s.")
    unit, number = dt.timedelta(**{UNITS[match[2]]: 1}), match[1].lstrip("0")
    if len(number) > 12 or int(number or "0") * unit.total_seconds() > HUNDRED_YEARS:
        raise click.UsageError(f"'{text}' is longer than a hundred years.")
    return int(number or "0") * unit


@click.command()
@options.names
@click.option("--full", is_flag=True, help="Recompute, whatever changed.")
@click.option(
    "--wait",
    metavar="AGE",
    default="1min",
    show_default=True,
    help="How long to wait while another process, such as a scheduler, refreshes one of them.",
)
@click.option("--max-concurrent", type=click.IntRange(1, 32), metavar="N", help="Refreshes at once, 1 to 32.")
@pass_invocation
def refresh(asked: Invocation, names: tuple[str, ...], full: bool, wait: str, max_concurrent: int | None) -> None:
    """Refresh the named stream tables, or all whose sources changed.

    Sources before their readers; what does not read each other side by side.

    \b
    Examples:
      headrace refresh
      headrace refresh shop.revenue shop.big_orders
      headrace refresh shop.revenue --full
    """
    patience = parse_age(wait)
    with asked.open() as hr, following(asked, hr.events):
        results = hr.refresh(names or None, full=full, wait=patience, max_concurrent=max_concurrent)
    show(asked, [result.as_dict() for result in results], lambda: render.refreshes(results))


@click.command()
@options.names
@pass_invocation
def verify(asked: Invocation, names: tuple[str, ...]) -> None:
    """Compare stream tables with their queries; exit status 1 if one differs.

    The queries run at the versions that the tables reflect.

    \b
    Examples:
      headrace verify
      headrace verify shop.revenue --json
    """
    with asked.open() as hr, spinning(asked, hr.events, "Comparing stream tables with their queries"):
        results = hr.verify(names or None)
    show(asked, [result.as_dict() for result in results], lambda: render.verifications(results))
    if not all(result.ok for result in results):
        raise click.exceptions.Exit(FAILED)


@click.command()
@options.names
@click.option("--older-than", metavar="AGE", default="7d", show_default=True, help="Snapshots younger than this stay.")
@click.option(
    "--orphans-older-than",
    metavar="AGE",
    default="3d",
    show_default=True,
    help="Files no table refers to stay until they are this old.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
@pass_invocation
def maintain(
    asked: Invocation, names: tuple[str, ...], older_than: str, orphans_older_than: str, dry_run: bool
) -> None:
    """Expire snapshots, compact files, trim change logs, remove orphan files.

    Of the named stream tables and mirrors, or of all and of what was dropped. Whatever a stream table still needs is
    kept. Where one cannot be maintained the others are, and the exit status is 1.

    \b
    Examples:
      headrace maintain --dry-run
      headrace maintain shop.revenue
      headrace maintain --older-than 36h --orphans-older-than 7d
    """
    ages = parse_age(older_than), parse_age(orphans_older_than)
    with asked.open() as hr, spinning(asked, hr.events, "Maintaining tables"):
        results = hr.maintain(names or None, older_than=ages[0], orphans_older_than=ages[1], dry_run=dry_run)
    show(asked, [result.as_dict() for result in results], lambda: render.maintenance(results))
    if any(result.failed for result in results):
        raise click.exceptions.Exit(FAILED)


@click.command()
@options.names
@pass_invocation
def repair(asked: Invocation, names: tuple[str, ...]) -> None:
    """Bring back stream tables and mirrors that others dropped or wrote, or that are lost.

    The named ones, or all that are damaged. What Headrace had published is shown again, which takes no Spark; where its
    files are gone, a stream table is made anew from its sources, and a mirror from its database. All files are looked
    for of tables that are named, of others the metadata.

    \b
    Examples:
      headrace repair
      headrace repair shop.revenue
    """
    with asked.open() as hr, spinning(asked, hr.events, "Repairing"):
        results = hr.repair(names or None)
    show(asked, [result.as_dict() for result in results], lambda: render.repairs(results))


VERBS = (refresh, verify, repair, maintain)
