"""fuse."""

from __future__ import annotations

import click

from headrace.cli.console import show
from headrace.cli.invocation import invocation
from headrace.cli.progress import following
from headrace.cli.render import safeguards as render
from headrace.cli.render import tables


@click.command()
@click.argument("name", required=False)
@click.argument(
    "resolution", required=False, type=click.Choice(("apply", "skip", "reinitialize"), case_sensitive=False)
)
@click.pass_context
def fuse(context: click.Context, name: str | None, resolution: str | None) -> None:
    """Show blown fuses with the evidence, or resolve that of a stream table (and of those published with it).

    apply refreshes it to what its sources are now; reinitialize recomputes it; skip leaves the change out for ever, so
    that the table differs from its query until it is recomputed.

    \b
    Examples:
      headrace fuse
      headrace fuse shop.revenue apply
    """
    asked = invocation(context)
    if name is None or resolution is None:
        with asked.open() as hr:
            blown = [f for f in hr.fuses() if name is None or f.name == name]
        show(asked, [f.as_dict() for f in blown], lambda: render.fuses(blown))
        return
    with asked.open() as hr, following(asked, hr.events):
        results = hr.resolve_fuse(name, resolution)
    show(asked, [result.as_dict() for result in results], lambda: tables.refreshes(results))


VERBS = (fuse,)
