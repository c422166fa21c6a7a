"""create, alter, drop."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.console import confirm, show
from headrace.cli.invocation import invocation
from headrace.cli.progress import following
from headrace.cli.render import tables as render

Name = Annotated[str, typer.Argument(metavar="NAME", help="The stream table, namespace.table.")]
QueryFile = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="A file that holds the query; - is stdin.")
]
Schedule = Annotated[str | None, typer.Option("--schedule", "-s", help="When to refresh, such as '1 minute'.")]


class Mode(StrEnum):
    """Refresh modes, as users write them."""

    AUTO = "AUTO"
    FULL = "FULL"
    DIFFERENTIAL = "DIFFERENTIAL"


ModeOption = Annotated[
    Mode | None,
    typer.Option(
        "--mode", "-m", case_sensitive=False, help="AUTO chooses per refresh; DIFFERENTIAL refuses what cannot be."
    ),
]


def query_text(query: str | None, file: Path | None) -> str | None:
    """The query from the argument, a file or stdin; None when none was given."""
    if query is not None and file is not None:
        raise typer.BadParameter("Give the query as an argument or with --file, not both.")
    if file is not None and str(file) != "-":
        return read_text(file)
    if file is not None or query == "-":
        return sys.stdin.read()
    return query


def read_text(file: Path) -> str:
    """The text of a file named on the command line."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}") from error


def create(
    context: typer.Context,
    name: Name,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="The defining query; - is stdin.")] = None,
    file: QueryFile = None,
    schedule: Schedule = None,
    mode: ModeOption = Mode.AUTO,
    initialize: Annotated[bool, typer.Option("--load/--no-load", help="Load it now, or at its first refresh.")] = True,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Do nothing when it exists.")] = False,
    or_replace: Annotated[bool, typer.Option("--or-replace", help="Give an existing one this query.")] = False,
) -> None:
    """Create a stream table from a query and load it.

    \b
    Examples:
      headrace create shop.revenue "SELECT region, sum(amount) AS total FROM shop.orders GROUP BY region"
      headrace create shop.big_orders -f big_orders.sql --schedule '1 minute'
      headrace create shop.revenue -f revenue.sql --or-replace
    """
    asked = invocation(context)
    text = query_text(query, file)
    if text is None or not text.strip():
        raise typer.BadParameter("The query is missing: give it as an argument or with --file.")
    with asked.open() as hr, following(asked, hr.events):
        result = hr.create_stream_table(
            name,
            text,
            schedule=schedule,
            refresh_mode=(mode or Mode.AUTO).value,
            initialize=initialize,
            if_not_exists=if_not_exists,
            or_replace=or_replace,
        )
    if result is None:
        confirm(asked, {"created": name}, f"{name} is defined; nothing was loaded.")
    else:
        show(asked, result.as_dict(), lambda: render.refreshes((result,)))


def alter(
    context: typer.Context,
    name: Name,
    query: Annotated[str | None, typer.Option("--query", help="A new query.")] = None,
    file: QueryFile = None,
    schedule: Schedule = None,
    no_schedule: Annotated[bool, typer.Option("--no-schedule", help="Refresh on demand only.")] = False,
    mode: ModeOption = None,
) -> None:
    """Change a stream table's schedule, refresh mode or query; what is not named stays.

    \b
    Examples:
      headrace alter shop.revenue --schedule '5 minutes'
      headrace alter shop.revenue --mode FULL --no-schedule
      headrace alter shop.revenue -f revenue_v2.sql
    """
    asked = invocation(context)
    if schedule is not None and no_schedule:
        raise typer.BadParameter("--schedule and --no-schedule contradict each other.")
    changes: dict[str, Any] = {
        "query": query_text(query, file),
        "schedule": schedule,
        "clear_schedule": no_schedule,
        "refresh_mode": mode.value if mode else None,
    }
    if not any(changes.values()):
        raise typer.BadParameter("Nothing to change: give --schedule, --no-schedule, --mode, --query or --file.")
    with asked.open() as hr, following(asked, hr.events):
        hr.alter_stream_table(name, **changes)
    confirm(asked, {"altered": name}, f"{name} is altered.")


def drop(
    context: typer.Context,
    name: Name,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="No error when there is none.")] = False,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop the stream tables that read it, too.")] = False,
) -> None:
    """Drop a stream table; refused while others read it, unless they go too.

    \b
    Examples:
      headrace drop shop.revenue
      headrace drop shop.orders_clean --cascade
    """
    asked = invocation(context)
    with asked.open() as hr, following(asked, hr.events):
        dropped = hr.drop_stream_table(name, if_exists=if_exists, cascade=cascade)
    confirm(asked, {"dropped": list(dropped)}, f"Dropped: {', '.join(dropped)}." if dropped else "There was none.")


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (create, alter, drop):
        app.command(rich_help_panel="Defining")(verb)
