"""sink: stream tables written into databases."""

from __future__ import annotations

import click

from headrace.cli.console import confirm, show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import sinks as render
from headrace.sinks.registry import KINDS

NAME = click.argument("name")
SCHEDULE = click.option(
    "--schedule", metavar="TEXT", help="'1 minute', cron, ON CHANGE or MANUAL.  [default: what is published, at once]"
)
ON_CONFLICT = click.option(
    "--on-conflict",
    type=click.Choice(["refuse", "overwrite"]),
    help="Rows that others changed: stop, or have them give way.  [default: refuse]",
)
PLACEMENT = click.option(
    "--placement",
    type=click.Choice(["auto", "local", "reference", "distributed"]),
    help="Where a Citus cluster has the rows.  [default: auto, by how many there are]",
)
DISTRIBUTED_BY = click.option(
    "--distributed-by", metavar="COLUMN", help="Distribution column.  [default: the key's first, or a hash]"
)
COLOCATED_WITH = click.option("--colocated-with", metavar="TABLE", help="Distributed table to lie beside.")


@click.group()
def sink() -> None:
    """Sinks: stream tables written into tables of PostgreSQL, each version exactly once.

    \b
    Examples:
      headrace sink add revenue shop.revenue postgresql://writer@db/web public.revenue --key region
      headrace sink list
      headrace sink verify revenue

    The password comes from PGPASSWORD or ~/.pgpass; it is never kept. `headrace refresh` and `run` write what is
    published.
    """


@sink.command()
@NAME
@click.argument("stream")
@click.argument("url")
@click.argument("table")
@click.option("--key", "-k", "key", multiple=True, metavar="COLUMN", help="Identifies a row; may be repeated.")
@SCHEDULE
@ON_CONFLICT
@PLACEMENT
@DISTRIBUTED_BY
@COLOCATED_WITH
@click.option("--if-not-exists", is_flag=True, help="Do nothing when it exists.")
@click.option(
    "--kind",
    type=click.Choice([kind.name for kind in KINDS]),
    default=KINDS[0].name,
    show_default=True,
    help="What kind of database.",
)
@pass_invocation
def add(
    asked: Invocation,
    name: str,
    stream: str,
    url: str,
    table: str,
    key: tuple[str, ...],
    schedule: str | None,
    on_conflict: str | None,
    placement: str | None,
    distributed_by: str | None,
    colocated_with: str | None,
    if_not_exists: bool,
    kind: str,
) -> None:
    """Write stream table STREAM into TABLE of a PostgreSQL database, and keep it up to date."""
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sinks.create(
            name,
            stream,
            url,
            table,
            key=key,
            schedule=schedule,
            on_conflict=on_conflict,
            placement=placement,
            distributed_by=distributed_by,
            colocated_with=colocated_with,
            if_not_exists=if_not_exists,
            kind=kind,
        )
    if result is None:
        why = "it exists already, its stream table was never loaded, or others of its group are held"
        confirm(asked, {"written": None}, f"Nothing was written: {why}.")
    else:
        show(asked, result.as_dict(), lambda: render.written((result,)))


@sink.command(name="list")
@pass_invocation
def list_(asked: Invocation) -> None:
    """List the sinks and where they stand, without connecting to servers."""
    with asked.open() as hr:
        found = hr.sinks.list()
    show(asked, [info.as_dict() for info in found], lambda: render.listed(found))


@sink.command()
@NAME
@pass_invocation
def status(asked: Invocation, name: str) -> None:
    """Show where a sink stands, how far behind, and the last error with its remedy."""
    with asked.open() as hr:
        found = hr.sinks.status(name)
    show(asked, found.as_dict(), lambda: render.status(found))


@sink.command()
@NAME
@SCHEDULE
@click.option("--clear-schedule", is_flag=True, help="Write what is published at once.")
@ON_CONFLICT
@PLACEMENT
@DISTRIBUTED_BY
@COLOCATED_WITH
@pass_invocation
def alter(
    asked: Invocation,
    name: str,
    schedule: str | None,
    clear_schedule: bool,
    on_conflict: str | None,
    placement: str | None,
    distributed_by: str | None,
    colocated_with: str | None,
) -> None:
    """Change when and how a sink is written, and where its rows are to be.

    A table that Headrace made is moved to another placement by the next `headrace sink resync`.
    """
    with asked.open() as hr:
        hr.sinks.alter(
            name,
            schedule=schedule,
            clear_schedule=clear_schedule,
            on_conflict=on_conflict,
            placement=placement,
            distributed_by=distributed_by,
            colocated_with=colocated_with,
        )
    confirm(asked, {"altered": name}, f"{name} is altered.")


@sink.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@pass_invocation
def apply(asked: Invocation, dry_run: bool) -> None:
    """Create and alter sinks as declared in headrace.toml under [sinks.NAME]."""
    with asked.open() as hr, following(asked, hr.events):
        done = hr.sinks.apply(dry_run=dry_run)
    show(asked, [step.as_dict() for step in done], lambda: render.steps(done))


@sink.command()
@click.argument("name", required=False)
@pass_invocation
def write(asked: Invocation, name: str | None) -> None:
    """Write what was published, of one sink or all, whatever their schedules say."""
    with asked.open() as hr, following(asked, hr.events):
        results = hr.sinks.write(name)
    show(asked, [r.as_dict() for r in results], lambda: render.written(results))


@sink.command()
@NAME
@pass_invocation
def resync(asked: Invocation, name: str) -> None:
    """Make the target equal to the stream table, whatever it holds, by what differs.

    Starts a stopped sink again. A table that Headrace made gets the stream table's columns, and the placement that the
    sink is to have.
    """
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sinks.resync(name)
    show(asked, result.as_dict(), lambda: render.written((result,)))


@sink.command()
@NAME
@pass_invocation
def verify(asked: Invocation, name: str) -> None:
    """Compare the target with the stream table at the sink's position.

    The exit status is 1 if they differ.
    """
    with asked.open() as hr:
        found = hr.sinks.verify(name)
    show(asked, found.as_dict(), lambda: render.verified(found))
    if not found.ok:
        raise click.exceptions.Exit(FAILED)


@sink.command()
@NAME
@pass_invocation
def pause(asked: Invocation, name: str) -> None:
    """Write nothing until it is resumed; what it has missed is kept meanwhile."""
    with asked.open() as hr:
        hr.sinks.pause(name)
    confirm(asked, {"paused": name}, f"{name} is paused; what is published meanwhile is kept for it.")


@sink.command()
@NAME
@pass_invocation
def resume(asked: Invocation, name: str) -> None:
    """End a pause, a stop, or a wait for the next try."""
    with asked.open() as hr:
        hr.sinks.resume(name)
    confirm(asked, {"resumed": name}, f"{name} is resumed.")


@sink.command()
@NAME
@click.option("--if-exists", is_flag=True, help="No error when there is none.")
@click.option("--force", is_flag=True, help="Also when the server cannot be reached: its position stays there.")
@pass_invocation
def drop(asked: Invocation, name: str, if_exists: bool, force: bool) -> None:
    """Drop a sink; the rows stay where they were written."""
    with asked.open() as hr:
        dropped = hr.sinks.drop(name, if_exists=if_exists, force=force)
    confirm(asked, {"dropped": dropped}, f"{name} is dropped; its rows stay." if dropped else "There was none.")


VERBS = (sink,)
