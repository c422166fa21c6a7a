"""key: declare, drop, list."""

from __future__ import annotations

import click

from headrace.cli.console import confirm, show
from headrace.cli.invocation import invocation
from headrace.cli.progress import spinning
from headrace.cli.render.keys import keys as rendered

SOURCE = click.argument("source")
COLUMNS = click.argument("columns", nargs=-1, required=True, metavar="COLUMN...")


@click.group()
def key() -> None:
    """Say in which columns of a source no two rows agree, so that refreshes need not look.

    \b
    Examples:
      headrace key declare shop.orders id
      headrace key declare shop.lines order_id line
      headrace key list
      headrace key drop shop.orders id
    """


@key.command("declare")
@SOURCE
@COLUMNS
@click.option("--no-check", is_flag=True, help="Do not look whether it holds now.")
@click.pass_context
def declare(context: click.Context, source: str, columns: tuple[str, ...], no_check: bool) -> None:
    """Declare a key; NULL counts as a value. Stream tables that read the source are recomputed once."""
    asked = invocation(context)
    with asked.open() as hr, spinning(asked, hr.events, "Checking"):
        info = hr.declare_key(source, columns, check=not no_check)
    after = f" Recomputed at their next refresh: {', '.join(info.to_recompute)}." if info.to_recompute else ""
    confirm(asked, info.as_dict(), f"Declared key ({', '.join(info.columns)}) of {info.source}.{after}")


@key.command("drop")
@SOURCE
@COLUMNS
@click.pass_context
def drop(context: click.Context, source: str, columns: tuple[str, ...]) -> None:
    """Declare a key no longer; what rests on it is recomputed."""
    asked = invocation(context)
    with asked.open() as hr:
        hr.drop_key(source, columns)
    confirm(asked, {"source": source, "columns": list(columns)}, f"No key ({', '.join(columns)}) of {source} any more.")


@key.command("list")
@click.pass_context
def list_(context: click.Context) -> None:
    """Show declared keys, and the stream tables that read these sources."""
    asked = invocation(context)
    with asked.open() as hr:
        found = hr.keys()
    show(asked, [info.as_dict() for info in found], lambda: rendered(found))


VERBS = (key,)
