"""fuse, gate, watermark."""

from __future__ import annotations

import click

from headrace.cli.console import confirm, show
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import safeguards as render
from headrace.cli.render import tables


@click.command()
@click.argument("name", required=False)
@click.argument(
    "resolution", required=False, type=click.Choice(("apply", "skip", "reinitialize"), case_sensitive=False)
)
@pass_invocation
def fuse(asked: Invocation, name: str | None, resolution: str | None) -> None:
    """Show blown fuses with the evidence, or resolve that of a stream table.

    Fuses of tables published together are resolved together.

    apply refreshes it to what its sources are now; reinitialize recomputes it; skip leaves the change out for ever, so
    that the table differs from its query until it is recomputed.

    \b
    Examples:
      headrace fuse
      headrace fuse shop.revenue apply
    """
    if name is None or resolution is None:
        with asked.open() as hr:
            blown = hr.fuses(name)
        show(asked, [f.as_dict() for f in blown], lambda: render.fuses(blown))
        return
    with asked.open() as hr, following(asked, hr.events):
        results = hr.resolve_fuse(name, resolution)
    show(asked, [result.as_dict() for result in results], lambda: tables.refreshes(results))


@click.group()
def gate() -> None:
    """Hold sources back while they are loaded.

    Nothing that reads them goes past their present version until the gate is opened.

    \b
    Examples:
      headrace gate close shop.orders
      headrace gate open shop.orders
      headrace gate list
    """


SOURCES = click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")


@gate.command("close")
@SOURCES
@pass_invocation
def close(asked: Invocation, sources: tuple[str, ...]) -> None:
    """Hold sources back at what they are now; of a database, all mirrors together."""
    with asked.open() as hr:
        held = hr.close_gate(sources)
    confirm(asked, list(held), f"Held back: {', '.join(held)}.")


@gate.command("open")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@pass_invocation
def open_(asked: Invocation, sources: tuple[str, ...]) -> None:
    """Release sources, or all that are held back."""
    with asked.open() as hr:
        opened = hr.open_gate(sources or None)
    confirm(asked, list(opened), f"Open: {', '.join(opened)}." if opened else "No gate is closed.")


@gate.command("list")
@pass_invocation
def listed(asked: Invocation) -> None:
    """Show closed gates and what they hold back."""
    with asked.open() as hr:
        found = hr.gates()
    show(asked, [g.as_dict() for g in found], lambda: render.gates(found))


@click.group()
def watermark() -> None:
    """Refresh readers of several sources only while these are complete to about one moment.

    \b
    Examples:
      headrace watermark create loads shop.orders shop.items --tolerance "5 minutes"
      headrace watermark advance shop.orders 2026-03-01T06:00:00Z
      headrace watermark list
    """


@watermark.command("create")
@click.argument("name")
@SOURCES
@click.option("--tolerance", required=True, metavar="DURATION", help="By how much they may be apart: '5 minutes'.")
@pass_invocation
def create(asked: Invocation, name: str, sources: tuple[str, ...], tolerance: str) -> None:
    """Make a group of sources that must agree."""
    with asked.open() as hr:
        hr.create_watermark_group(name, sources, tolerance)
    confirm(asked, {"created": name}, f"Created {name}; what reads its sources waits until each has a watermark.")


@watermark.command("advance")
@click.argument("source")
@click.argument("moment")
@pass_invocation
def advance(asked: Invocation, source: str, moment: str) -> None:
    """Say that a source is complete up to a moment: ISO format with a time zone."""
    with asked.open() as hr:
        hr.advance_watermark(source, moment)
    confirm(asked, {"advanced": source, "to": moment}, f"{source} is complete up to {moment}.")


@watermark.command("drop")
@click.argument("name")
@click.option("--if-exists", is_flag=True, help="No error when there is none.")
@pass_invocation
def drop(asked: Invocation, name: str, if_exists: bool) -> None:
    """Have nothing wait for a group any more."""
    with asked.open() as hr:
        hr.drop_watermark_group(name, if_exists=if_exists)
    confirm(asked, {"dropped": name}, f"Dropped {name}.")


@watermark.command("list")
@pass_invocation
def groups(asked: Invocation) -> None:
    """Show the groups, where their sources are, and what waits for them."""
    with asked.open() as hr:
        found = hr.watermarks()
    show(asked, [g.as_dict() for g in found], lambda: render.watermarks(found))


VERBS = (fuse, gate, watermark)
