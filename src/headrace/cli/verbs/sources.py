"""source: database sources and their mirrors."""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

from headrace.cli.console import confirm, show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import sources as render
from headrace.cli.render.source_health import health
from headrace.sources.registry import KINDS

URL = click.argument("url", required=False)
SHARDS = click.option(
    "--shard",
    "shards",
    multiple=True,
    metavar="[NAME=]URL",
    help="A server that has a shard of the tables, in place of URL; to be repeated.",
)
NAME = click.argument("name")
TABLES = click.option(
    "--table",
    "-t",
    "tables",
    multiple=True,
    required=True,
    metavar="TABLE",
    help="schema.table [COLUMNS (a, b)] [WHERE (a > 0)] [AS mirror]; may be repeated.",
)
TEXT_COLUMNS = click.option(
    "--text-column",
    "text_columns",
    multiple=True,
    metavar="COLUMN",
    help="schema.table.column to be kept as text, whatever its type; may be repeated.",
)
CAPTURE = click.option(
    "--capture",
    type=click.Choice(["wal", "trigger", "auto"]),
    help="From the write-ahead log, by triggers on the tables, or by triggers until the log can be used.  "
    "[default: wal]",
)
KIND = click.option(
    "--kind",
    type=click.Choice([kind.name for kind in KINDS]),
    default=KINDS[0].name,
    show_default=True,
    help="What kind of database.",
)


_NAMED = re.compile(r"([^\W\d]\w*)=(?=\w+:)")
"""`eu=postgresql://…`; a URL has no such beginning."""


def _address(url: str | None, shards: tuple[str, ...]) -> str | list[Mapping[str, str]]:
    """Return the one server, or those that have shards."""
    if (url is None) is not bool(shards):
        raise click.UsageError("Give a URL, or --shard for each of several servers.")
    return _shards(shards) if url is None else url


def _shards(shards: tuple[str, ...]) -> list[Mapping[str, str]]:
    """Read `[NAME=]URL` of each shard."""
    named = [(found[1], text[found.end() :]) if (found := _NAMED.match(text)) else ("", text) for text in shards]
    return [{"name": name, "url": of} if name else {"url": of} for name, of in named]


@click.group()
def source() -> None:
    """Database sources: tables of PostgreSQL, mirrored in the lake by change capture.

    \b
    Examples:
      headrace source check postgresql://reader@db/shop -t public.orders
      headrace source add shop postgresql://reader@db/shop -t public.orders -t public.customers
      headrace source add shop --shard eu=postgresql://eu-db/shop --shard us=postgresql://us-db/shop -t public.orders
      headrace source status shop

    The password comes from PGPASSWORD or ~/.pgpass; it is never kept. `headrace refresh` lands what was committed.
    """


@source.command()
@NAME
@URL
@TABLES
@TEXT_COLUMNS
@CAPTURE
@click.option("--failover", is_flag=True, help="Replicas keep the slot in step: go on where one is promoted (17+).")
@SHARDS
@click.option("--shard-column", metavar="COLUMN", help="Of shards: says of which a row is.  [default: __shard]")
@click.option(
    "--availability",
    type=click.Choice(["partial", "strict"]),
    help="Of shards: a server that is down holds back itself, or all of them.  [default: partial]",
)
@click.option(
    "--same-key",
    type=click.Choice(["error", "allowed"]),
    help="Of shards: a key is on one server only, or the shard is part of the key.  [default: error]",
)
@click.option("--if-not-exists", is_flag=True, help="Do nothing when it exists.")
@KIND
@pass_invocation
def add(
    asked: Invocation,
    name: str,
    url: str | None,
    tables: tuple[str, ...],
    text_columns: tuple[str, ...],
    capture: str | None,
    failover: bool,
    shards: tuple[str, ...],
    shard_column: str | None,
    availability: str | None,
    same_key: str | None,
    if_not_exists: bool,
    kind: str,
) -> None:
    """Capture tables of a PostgreSQL database and mirror them as NAME.table."""
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sources.create(
            name,
            _address(url, shards),
            tables,
            text_columns=text_columns,
            capture=capture,
            failover=failover,
            shard_column=shard_column,
            availability=availability,
            same_key=same_key,
            if_not_exists=if_not_exists,
            kind=kind,
        )
    if result is None:
        confirm(asked, {"created": None}, f"{name} exists already.")
    else:
        show(asked, result.as_dict(), lambda: render.landings((result,)))


@source.command()
@NAME
@TABLES
@TEXT_COLUMNS
@pass_invocation
def add_tables(asked: Invocation, name: str, tables: tuple[str, ...], text_columns: tuple[str, ...]) -> None:
    """Capture further tables of a source; the other ones go on.

    \b
    Example:
      headrace source add-tables shop -t public.invoices
    """
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sources.add_tables(name, tables, text_columns=text_columns)
    show(asked, result.as_dict(), lambda: render.landings((result,)))


@source.command()
@NAME
@click.option(
    "--table", "-t", "tables", multiple=True, required=True, metavar="TABLE", help="The mirror, or its schema.table."
)
@pass_invocation
def drop_tables(asked: Invocation, name: str, tables: tuple[str, ...]) -> None:
    """Take tables out of a source and drop their mirrors; refused while stream tables read them."""
    with asked.open() as hr, following(asked, hr.events):
        dropped = hr.sources.drop_tables(name, tables)
    confirm(asked, {"dropped": list(dropped)}, f"Dropped: {', '.join(dropped)}.")


@source.command()
@NAME
@click.argument("shard", metavar="[SHARD=]URL")
@CAPTURE
@pass_invocation
def add_shard(asked: Invocation, name: str, shard: str, capture: str | None) -> None:
    """Add a server to a source with shards; its rows join the mirrors.

    \b
    Example:
      headrace source add-shard shop asia=postgresql://asia-db/shop
    """
    [named] = _shards((shard,))
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sources.add_shard(name, named["url"], shard=named.get("name"), capture=capture)
    show(asked, result.as_dict(), lambda: render.landings((result,)))


@source.command()
@NAME
@click.argument("shard")
@pass_invocation
def drop_shard(asked: Invocation, name: str, shard: str) -> None:
    """Take a server out of a source with shards; its rows leave the mirrors."""
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sources.drop_shard(name, shard)
    show(asked, result.as_dict(), lambda: render.landings((result,)))


@source.command()
@NAME
@click.argument("shard")
@click.argument("url")
@pass_invocation
def move_shard(asked: Invocation, name: str, shard: str, url: str) -> None:
    """Go on with a shard on another server; stream tables receive the difference only."""
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sources.move_shard(name, shard, url)
    show(asked, result.as_dict(), lambda: render.landings((result,)))


@source.command()
@click.option("--prune", is_flag=True, help="Drop tables that are not declared; refused while stream tables read them.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@pass_invocation
def apply(asked: Invocation, prune: bool, dry_run: bool) -> None:
    """Create sources and add tables as declared in headrace.toml under [sources.NAME]."""
    with asked.open() as hr, following(asked, hr.events):
        done = hr.sources.apply(prune=prune, dry_run=dry_run)
    show(asked, [step.as_dict() for step in done], lambda: render.steps(done))


@source.command(name="list")
@pass_invocation
def list_(asked: Invocation) -> None:
    """List the sources and their status, without connecting to servers."""
    with asked.open() as hr:
        found = hr.sources.list()
    show(asked, [info.as_dict() for info in found], lambda: render.listed(found))


@source.command()
@NAME
@pass_invocation
def status(asked: Invocation, name: str) -> None:
    """Show how far behind a source is, its slot, and the last error with its remedy."""
    with asked.open() as hr:
        found = hr.sources.status(name)
    show(asked, found.as_dict(), lambda: health(found))


@source.command()
@URL
@TABLES
@CAPTURE
@SHARDS
@KIND
@pass_invocation
def check(
    asked: Invocation, url: str | None, tables: tuple[str, ...], capture: str | None, shards: tuple[str, ...], kind: str
) -> None:
    """Check whether tables can be captured; show the SQL to run on the server if not.

    Changes nothing. The exit status is 1 if they cannot.
    """
    with asked.open() as hr:
        found = hr.sources.check(_address(url, shards), tables, capture=capture, kind=kind)
    show(asked, [c.as_dict() for c in found], lambda: render.checks(found))
    if not all(c.ok for c in found):
        raise click.exceptions.Exit(FAILED)


@source.command()
@click.argument("name", required=False)
@pass_invocation
def land(asked: Invocation, name: str | None) -> None:
    """Land what was committed, of one source or all, without refreshing stream tables."""
    with asked.open() as hr, following(asked, hr.events):
        results = hr.sources.land(name)
    show(asked, [r.as_dict() for r in results], lambda: render.landings(results))


@source.command()
@NAME
@pass_invocation
def pause(asked: Invocation, name: str) -> None:
    """Land nothing until it is resumed; the server keeps its write-ahead log meanwhile."""
    with asked.open() as hr:
        hr.sources.pause(name)
    confirm(asked, {"paused": name}, f"{name} is paused; its server keeps write-ahead log until it is resumed.")


@source.command()
@NAME
@pass_invocation
def resume(asked: Invocation, name: str) -> None:
    """End a pause."""
    with asked.open() as hr:
        hr.sources.resume(name)
    confirm(asked, {"resumed": name}, f"{name} is resumed.")


@source.command()
@NAME
@click.option("--table", "-t", "tables", multiple=True, metavar="TABLE", help="Only this one: mirror or schema.table.")
@click.option("--shard", "shards", multiple=True, metavar="SHARD", help="Only the rows of this one; may be repeated.")
@pass_invocation
def resnapshot(asked: Invocation, name: str, tables: tuple[str, ...], shards: tuple[str, ...]) -> None:
    """Copy the tables anew; stream tables receive the difference only.

    \b
    Examples:
      headrace source resnapshot shop                    # all of them; starts a stopped source again
      headrace source resnapshot shop -t public.orders   # one, while the others go on
    """
    with asked.open() as hr, following(asked, hr.events):
        result = hr.sources.resnapshot(name, tables, shards=shards)
    show(asked, result.as_dict(), lambda: render.landings((result,)))


@source.command()
@NAME
@click.option("--if-exists", is_flag=True, help="No error when there is none.")
@click.option("--force", is_flag=True, help="Also when the server cannot be reached: what was installed stays.")
@pass_invocation
def drop(asked: Invocation, name: str, if_exists: bool, force: bool) -> None:
    """Drop a source, its mirrors, and what was installed on its server.

    Refused while stream tables read the mirrors.
    """
    with asked.open() as hr, following(asked, hr.events):
        dropped = hr.sources.drop(name, if_exists=if_exists, force=force)
    confirm(asked, {"dropped": list(dropped)}, f"Dropped: {', '.join(dropped)}." if dropped else "There was none.")


VERBS = (source,)
