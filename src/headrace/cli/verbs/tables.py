"""create, alter, drop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headrace.cli.console import confirm, show
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import tables as render
from headrace.cli.verbs import options
from headrace.cli.verbs.options import query_text


@click.command()
@options.definition(mode="AUTO", load="at its first refresh")
@click.option("--if-not-exists", is_flag=True, help="Do nothing when it exists.")
@click.option("--or-replace", is_flag=True, help="Give an existing one this query.")
@pass_invocation
def create(
    asked: Invocation,
    name: str,
    query: str | None,
    file: Path | None,
    schedule: str | None,
    mode: str,
    given: tuple[str, ...],
    initialize: bool,
    if_not_exists: bool,
    or_replace: bool,
) -> None:
    """Create a stream table from a query and load it.

    \b
    Examples:
      headrace create shop.revenue "SELECT region, sum(amount) AS total FROM shop.orders GROUP BY region"
      headrace create shop.big_orders -f big_orders.sql --schedule '1 minute'
      headrace create shop.revenue -f revenue.sql --or-replace
      headrace create shop.daily -f daily.sql --set pool=finance --set "timeout=10 minutes"

    With --or-replace a table keeps the properties it has, unless --set names any: then it has these only.
    """
    properties = options.pairs(given)
    text = query_text(query, file)
    if text is None or not text.strip():
        raise click.UsageError("The query is missing: give it as an argument or with --file.")
    with asked.open() as hr, following(asked, hr.events):
        result = hr.create_stream_table(
            name,
            text,
            schedule=schedule,
            refresh_mode=mode,
            initialize=initialize,
            if_not_exists=if_not_exists,
            or_replace=or_replace,
            options=properties or None,
        )
    if result is None:
        confirm(asked, {"created": name}, f"{name} is defined; nothing was loaded.")
    else:
        show(asked, result.as_dict(), lambda: render.refreshes((result,)))


@click.command()
@options.name
@click.option("--query", help="A new query.")
@options.query_file
@options.schedule
@click.option(
    "--no-schedule", is_flag=True, help="As if it had never had one: it follows what reads it, or default_schedule."
)
@click.option("--mode", "-m", type=options.MODE, help="How it is refreshed.")
@options.properties
@pass_invocation
def alter(
    asked: Invocation,
    name: str,
    query: str | None,
    file: Path | None,
    schedule: str | None,
    no_schedule: bool,
    mode: str | None,
    given: tuple[str, ...],
) -> None:
    """Change a stream table's schedule, mode, properties or query; what is not named stays.

    \b
    Examples:
      headrace alter shop.revenue --schedule '5 minutes'
      headrace alter shop.revenue --mode FULL --no-schedule
      headrace alter shop.revenue -f revenue_v2.sql
      headrace alter shop.revenue --set tier=cold --set fuse_ceiling=none
    """
    if schedule is not None and no_schedule:
        raise click.UsageError("--schedule and --no-schedule contradict each other.")
    changes: dict[str, Any] = {
        "query": query_text(query, file),
        "schedule": schedule,
        "clear_schedule": no_schedule,
        "refresh_mode": mode,
        "options": options.pairs(given) or None,
    }
    if not any(changes.values()):
        raise click.UsageError("Nothing to change: give --schedule, --no-schedule, --mode, --set, --query or --file.")
    with asked.open() as hr, following(asked, hr.events):
        hr.alter_stream_table(name, **changes)
    confirm(asked, {"altered": name}, f"{name} is altered.")


@click.command()
@options.name
@click.option("--if-exists", is_flag=True, help="No error when there is none.")
@click.option("--cascade", is_flag=True, help="Drop the stream tables that read it, too.")
@pass_invocation
def drop(asked: Invocation, name: str, if_exists: bool, cascade: bool) -> None:
    """Drop a stream table; refused while others read it, unless they go too.

    \b
    Examples:
      headrace drop shop.revenue
      headrace drop shop.orders_clean --cascade
    """
    with asked.open() as hr, following(asked, hr.events):
        dropped = hr.drop_stream_table(name, if_exists=if_exists, cascade=cascade)
    confirm(asked, {"dropped": list(dropped)}, f"Dropped: {', '.join(dropped)}." if dropped else "There was none.")


VERBS = (create, alter, drop)
