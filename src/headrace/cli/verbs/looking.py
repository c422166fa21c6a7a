"""status, history, graph, explain."""

from __future__ import annotations

import datetime as dt
import sys
from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.console import show
from headrace.cli.invocation import invocation
from headrace.cli.progress import spinning
from headrace.cli.render import tables as render
from headrace.cli.verbs.refreshing import Names
from headrace.cli.verbs.tables import ModeOption


class GraphFormat(StrEnum):
    """Forms of a drawing."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


def status(context: typer.Context, names: Names = None) -> None:
    """Show where stream tables stand: loaded or stopped, how and when last refreshed, which sources moved since.

    Reads the catalog only and starts no Spark.

    \b
    Examples:
      headrace status
      headrace status shop.revenue --json
    """
    asked = invocation(context)
    with asked.open() as hr:
        infos = hr.status(names or None)
    show(asked, [info.as_dict() for info in infos], lambda: render.standing(infos, dt.datetime.now(dt.UTC)))


def history(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One stream table; else all.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many refreshes.")] = 20,
) -> None:
    """Show past refreshes, newest first: mode, rows, time, and the error of those that failed.

    \b
    Examples:
      headrace history
      headrace history shop.revenue -n 100
    """
    asked = invocation(context)
    with asked.open() as hr:
        rows = hr.history(name, limit=limit)
    show(asked, [row.as_dict() for row in rows], lambda: render.history(rows))


def graph(
    context: typer.Context,
    form: Annotated[
        GraphFormat, typer.Option("--format", case_sensitive=False, help="Form of the drawing.")
    ] = GraphFormat.TEXT,
) -> None:
    """Draw which stream table reads what.

    \b
    Examples:
      headrace graph
      headrace graph --format dot | dot -Tsvg > pipeline.svg
    """
    from headrace.graph import as_dict, as_dot, as_mermaid, as_text

    asked = invocation(context)
    with asked.open() as hr:
        dag = hr.graph()
    if asked.json or form is GraphFormat.JSON:
        import json

        sys.stdout.write(json.dumps(as_dict(dag), indent=2, ensure_ascii=False) + "\n")
        return
    drawn = {GraphFormat.MERMAID: as_mermaid, GraphFormat.DOT: as_dot}.get(form, as_text)(dag)
    sys.stdout.write(drawn.rstrip("\n") + "\n" if drawn else "There are no stream tables yet.\n")


def explain(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="NAME_OR_QUERY", help="A stream table, or a query in quotes.")],
    mode: ModeOption = None,
) -> None:
    """Show how a stream table is refreshed: mode and reason, the query's algebra, its change, the stages, the SQL.

    \b
    Examples:
      headrace explain shop.revenue
      headrace explain shop.revenue --mode DIFFERENTIAL
      headrace explain "SELECT region, count(*) AS n FROM shop.orders GROUP BY region"
    """
    from headrace.cli.render.explanation import explanation

    asked = invocation(context)
    with asked.open() as hr, spinning(asked, hr.events, "Explaining"):
        found = hr.explain(target, refresh_mode=mode.value if mode else None)
    show(asked, found.as_dict(), lambda: explanation(found))


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (status, history, graph, explain):
        app.command(rich_help_panel="Looking")(verb)
