"""key: declare, drop, list."""

from __future__ import annotations

import click

from headrace.cli.console import confirm, show
from headrace.cli.invocation import Invocation, pass_invocation
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
@pass_invocation
def declare(asked: Invocation, source: str, columns: tuple[str, ...], no_check: bool) -> None:
    """Declare a key; NULL counts as a value.

    Stream tables that read the source are recomputed once.
    """
    with asked.open() as hr, spinning(asked, hr.events, "Checking"):
        info = hr.declare_key(source, columns, check=not no_check)
    after = f" Recomputed at their next refresh: {', '.join(info.to_recompute)}." if info.to_recompute else ""
    confirm(asked, info.as_dict(), f"Declared key ({', '.join(info.columns)}) of {info.source}.{after}")


@key.command("drop")
@SOURCE
@COLUMNS
@pass_invocation
def drop(asked: Invocation, source: str, columns: tuple[str, ...]) -> None:
    """Declare a key no longer; what rests on it is recomputed."""
    with asked.open() as hr:
        hr.drop_key(source, columns)
    confirm(asked, {"source": source, "columns": list(columns)}, f"No key ({', '.join(columns)}) of {source} any more.")


@key.command("list")
@pass_invocation
def list_(asked: Invocation) -> None:
    """Show declared keys, and the stream tables that read these sources."""
    with asked.open() as hr:
        found = hr.keys()
    show(asked, [info.as_dict() for info in found], lambda: rendered(found))


VERBS = (key,)
