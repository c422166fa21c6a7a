"""deploy: create, auto, status, promote, rollback, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from headrace.cli.console import confirm, show
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import deployments as render
from headrace.cli.render import tables
from headrace.cli.verbs import options
from headrace.cli.verbs.options import pairs, query_text
from headrace.deploy.promotion_options import CHECK, ON_TROUBLE, duration

NAME = click.argument("name", required=False)
CONDITIONS = click.option(
    "--when",
    "conditions",
    multiple=True,
    metavar="KEY=VALUE",
    help="A condition: window, check or check_NAME, verify, force, lag_threshold, rollback_window, keep_fresh, watch, "
    "on_trouble. As often as there are any.",
)
LAG = click.option(
    "--lag-threshold", metavar="DURATION", help="A green that is behind for no longer counts as converged."
)
WHOLE = click.option("--all", "deployment", metavar="DEPLOYMENT", help="All tables of this deployment.")


@click.group()
def deploy() -> None:
    """Build a new version of stream tables beside the running one, promote it, take it back.

    \b
    Examples:
      headrace deploy create shop.revenue -f revenue_v2.sql
      headrace deploy create shop.regions --new -f regions.sql --set pool=finance
      headrace deploy drop shop.old
      headrace deploy status
      headrace deploy promote shop.revenue --dry-run
      headrace deploy promote --all green --watch '10 minutes'
      headrace deploy auto green --when window=02:00-04:00
      headrace deploy rollback --all green
      headrace deploy cancel --all green
    """


@deploy.command("create")
@options.definition(load="by the scheduler")
@click.option("--deployment", "-d", default="green", show_default=True, help="What is promoted together.")
@click.option("--new", is_flag=True, help="There is no public one yet; needs a query.")
@click.option("--auto-promote", is_flag=True, help="Have schedulers promote the deployment once it has converged.")
@CONDITIONS
@pass_invocation
def create(
    asked: Invocation,
    name: str,
    query: str | None,
    file: Path | None,
    schedule: str | None,
    mode: str | None,
    given: tuple[str, ...],
    deployment: str,
    new: bool,
    initialize: bool,
    auto_promote: bool,
    conditions: tuple[str, ...],
) -> None:
    """Build a green of a stream table: what is not given stays as it is.

    Greens of one deployment read each other where the originals read the original. Until it is promoted, the green of
    shop.revenue is queried as shop__green.revenue. Give --auto-promote with the last green of a deployment.
    """
    if conditions and not auto_promote:
        raise click.UsageError("--when belongs to --auto-promote.")
    with asked.open() as hr, following(asked, hr.events):
        result = hr.create_green(
            name,
            query_text(query, file),
            schedule=schedule,
            refresh_mode=mode,
            options=pairs(given) or None,
            deployment=deployment,
            initialize=initialize,
            auto_promote=pairs(conditions) if auto_promote else None,
            new=new,
        )
    if result is None:
        confirm(asked, {"created": name, "deployment": deployment}, f"The green of {name} is defined; not loaded yet.")
    else:
        show(asked, result.as_dict(), lambda: tables.refreshes((result,)))


@deploy.command("auto")
@click.argument("deployment")
@CONDITIONS
@click.option("--off", is_flag=True, help="Leave promoting to you again.")
@pass_invocation
def auto(asked: Invocation, deployment: str, conditions: tuple[str, ...], off: bool) -> None:
    """Have schedulers promote a deployment once it has converged and conditions hold.

    \b
    Examples:
      headrace deploy auto green
      headrace deploy auto green --when window=02:00-04:00 --when verify=true
      headrace deploy auto green --when "check=SELECT * FROM shop.revenue WHERE total < 0"
      headrace deploy auto green --when "watch=10 minutes" --when on_trouble=rollback
      headrace deploy auto green --off

    The window is a time of each day in UTC, or FROM/UNTIL as moments. A check finds rows that must not be; it names
    public tables, for which the greens are read. Why a promotion was refused is an event, and in `deploy status`.
    """
    if off and conditions:
        raise click.UsageError("--off takes no conditions.")
    wanted = None if off else pairs(conditions)
    with asked.open() as hr:
        hr.auto_promote(deployment, wanted)
    said = "does not promote itself any more" if off else "is promoted by schedulers once its conditions hold"
    confirm(asked, {"deployment": deployment, "auto_promote": wanted}, f"Deployment {deployment} {said}.")


@deploy.command("drop")
@options.name
@click.option("--deployment", "-d", default="green", show_default=True, help="What is promoted together.")
@pass_invocation
def drop(asked: Invocation, name: str, deployment: str) -> None:
    """Have the promotion of a deployment drop a public stream table; until then nothing changes.

    Refused at promotion while tables that remain read it. A rollback makes it public again with all that it had;
    `headrace deploy cancel NAME` lets it stay.
    """
    with asked.open() as hr:
        hr.drop_with_green(name, deployment)
    confirm(asked, {"drops": name, "deployment": deployment}, f"The promotion of {deployment} is to drop {name}.")


@deploy.command("status")
@NAME
@WHOLE
@LAG
@pass_invocation
def status(asked: Invocation, name: str | None, deployment: str | None, lag_threshold: str | None) -> None:
    """Show where deployments stand: loading, catching up, converged, blocked, failed, promoted."""
    if name is not None:
        _one_of(name, deployment)
    threshold = None if lag_threshold is None else duration("lag_threshold", lag_threshold)
    with asked.open() as hr:
        found = hr.green_status(name, deployment=deployment, lag_threshold=threshold)
    show(asked, [info.as_dict() for info in found], lambda: render.greens(found))


@deploy.command("promote")
@NAME
@WHOLE
@click.option("--force", is_flag=True, help="Stop stream tables outside that read columns which are gone.")
@click.option("--verify", is_flag=True, help="Refuse a green of the same definition whose rows differ.")
@click.option("--dry-run", is_flag=True, help="Check, and say what would happen.")
@click.option("--rollback-window", metavar="DURATION", default="24 hours", show_default=True, help="Kept for so long.")
@click.option("--frozen", is_flag=True, help="Do not refresh the former generation meanwhile.")
@LAG
@click.option("--check", "checks", multiple=True, metavar="QUERY", help="Refuse if it finds rows among the greens'.")
@click.option("--watch", metavar="DURATION", help="Have schedulers look out for trouble for so long.")
@click.option(
    "--on-trouble", type=click.Choice(ON_TROUBLE), default="rollback", show_default=True, help="What they do then."
)
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
    lag_threshold: str | None,
    checks: tuple[str, ...],
    watch: str | None,
    on_trouble: str,
) -> None:
    """Put greens in the place of the public stream tables, in one transaction.

    Readers see the old whole or the new whole. What was public is kept as NAMESPACE__DEPLOYMENT_previous.TABLE.
    A check names public tables, for which the greens are read.
    """
    _one_of(name, deployment)
    how: dict[str, Any] = {
        "force": force,
        "verify": verify,
        "dry_run": dry_run,
        "rollback_window": duration("--rollback-window", rollback_window),
        "keep_fresh": not frozen,
        "lag_threshold": duration("--lag-threshold", lag_threshold or "0 s"),
        "checks": {f"{CHECK}_{number}": query for number, query in enumerate(checks, 1)},
        "watch": None if watch is None else duration("--watch", watch),
        "on_trouble": on_trouble,
    }
    with asked.open() as hr, following(asked, hr.events):
        result = hr.promote_green(name, **how) if name is not None else hr.promote_all_green(deployment or "", **how)
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
    confirm(asked, {"dropped": list(dropped)}, _ended(dropped))


def _ended(dropped: Sequence[str]) -> str:
    return f"Dropped: {', '.join(dropped)}." if dropped else "Ended; there was nothing to drop."


def _one_of(name: str | None, deployment: str | None) -> None:
    if (name is None) == (deployment is None):
        raise click.UsageError("Name a stream table, or a deployment with --all.")


VERBS = (deploy,)
