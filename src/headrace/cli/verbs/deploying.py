"""deploy: create, status, promote, rollback, cancel."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from headrace.cli.console import confirm, show
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import deployments as render
from headrace.cli.render import tables
from headrace.cli.verbs import options
from headrace.cli.verbs.options import query_text
from headrace.schedule.durations import parse_duration

NAME = click.argument("name", required=False)
WHOLE = click.option("--all", "deployment", metavar="DEPLOYMENT", help="All tables of this deployment.")


@click.group()
def deploy() -> None:
    """Build a new version of stream tables beside the running one, promote it, take it back.

    \b
    Examples:
      headrace deploy create shop.revenue -f revenue_v2.sql
      headrace deploy status
      headrace deploy promote shop.revenue --dry-run
      headrace deploy promote --all green
      headrace deploy rollback --all green
      headrace deploy cancel --all green
    """


@deploy.command("create")
@options.name
@click.argument("query", required=False)
@options.query_file
@options.schedule
@click.option("--mode", "-m", type=options.MODE, help="How it is refreshed; else as the public one.")
@click.option("--deployment", "-d", default="green", show_default=True, help="What is promoted together.")
@click.option("--load/--no-load", "initialize", default=True, help="Load it now (the default), or by the scheduler.")
@pass_invocation
def create(
    asked: Invocation,
    name: str,
    query: str | None,
    file: Path | None,
    schedule: str | None,
    mode: str | None,
    deployment: str,
    initialize: bool,
) -> None:
    """Build a green of a stream table: what is not given stays as it is.

    Greens of one deployment read each other where the originals read the original. Until it is promoted, the green of
    shop.revenue is queried as shop__green.revenue.
    """
    with asked.open() as hr, following(asked, hr.events):
        result = hr.create_green(
            name,
            query_text(query, file),
            schedule=schedule,
            refresh_mode=mode,
            deployment=deployment,
            initialize=initialize,
        )
    if result is None:
        confirm(asked, {"created": name, "deployment": deployment}, f"The green of {name} is defined; not loaded yet.")
    else:
        show(asked, result.as_dict(), lambda: tables.refreshes((result,)))


@deploy.command("status")
@NAME
@WHOLE
@pass_invocation
def status(asked: Invocation, name: str | None, deployment: str | None) -> None:
    """Show where deployments stand: loading, catching up, converged, failed, promoted."""
    if name is not None:
        _one_of(name, deployment)
    with asked.open() as hr:
        found = hr.green_status(name, deployment=deployment)
    show(asked, [info.as_dict() for info in found], lambda: render.greens(found))


@deploy.command("promote")
@NAME
@WHOLE
@click.option("--force", is_flag=True, help="Stop stream tables outside that read columns which are gone.")
@click.option("--verify", is_flag=True, help="Refuse a green of the same definition whose rows differ.")
@click.option("--dry-run", is_flag=True, help="Check, and say what would happen.")
@click.option("--rollback-window", metavar="DURATION", default="24 hours", show_default=True, help="Kept for so long.")
@click.option("--frozen", is_flag=True, help="Do not refresh the former generation meanwhile.")
@pass_invocation
def promote(
    asked: Invocation,
    name: str | None,
    deployment: str | None,
    force: bool,
    verify: bool,
    dry_run: bool,
    rollback_window: str,
    frozen: bool,
) -> None:
    """Put greens in the place of the public stream tables, in one transaction.

    Readers see the old whole or the new whole. What was public is kept as NAMESPACE__DEPLOYMENT_previous.TABLE.
    """
    _one_of(name, deployment)
    window = dt.timedelta(seconds=parse_duration(rollback_window) or 0)
    with asked.open() as hr, following(asked, hr.events):
        if name is not None:
            result = hr.promote_green(
                name,
                force=force,
                verify=verify,
                dry_run=dry_run,
                rollback_window=window,
                keep_fresh=not frozen,
            )
        else:
            result = hr.promote_all_green(
                deployment or "",
                force=force,
                verify=verify,
                dry_run=dry_run,
                rollback_window=window,
                keep_fresh=not frozen,
            )
    show(asked, result.as_dict(), lambda: render.promotion(result))


@deploy.command("rollback")
@NAME
@WHOLE
@pass_invocation
def rollback(asked: Invocation, name: str | None, deployment: str | None) -> None:
    """Take a promotion back: former generations, brought up to date, become public again."""
    _one_of(name, deployment)
    with asked.open() as hr, following(asked, hr.events):
        result = hr.rollback_green(name, deployment=deployment)
    show(asked, result.as_dict(), lambda: render.promotion(result))


@deploy.command("cancel")
@NAME
@WHOLE
@pass_invocation
def cancel(asked: Invocation, name: str | None, deployment: str | None) -> None:
    """Drop greens, or, after a promotion, what is kept to take it back."""
    _one_of(name, deployment)
    with asked.open() as hr:
        dropped = hr.cancel_green(name, deployment=deployment)
    confirm(asked, {"dropped": list(dropped)}, f"Dropped: {', '.join(dropped)}.")


def _one_of(name: str | None, deployment: str | None) -> None:
    if (name is None) == (deployment is None):
        raise click.UsageError("Name a stream table, or a deployment with --all.")


VERBS = (deploy,)
