"""init, doctor, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.console import confirm, show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import invocation
from headrace.cli.render import tables as render


def init(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The project folder; made if missing.")
    ] = None,
    catalog_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Catalog database; a SQLite file in the folder when left out.")
    ] = None,
    warehouse: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Where tables are written; a folder in the project when left out."),
    ] = None,
) -> None:
    """Make a project: headrace.toml, a catalog and a warehouse folder.

    \b
    Examples:
      headrace init shop
      headrace init shop --catalog-url postgresql://etl@db.internal/headrace --warehouse s3a://lake/shop
    """
    from headrace.project import init_project

    asked = invocation(context)
    settings = init_project(folder or asked.project or Path(), catalog_url=catalog_url, warehouse=warehouse)
    document = {"project": str(settings.root), "warehouse": settings.warehouse}
    confirm(asked, document, f"Made the project {settings.root}. Its settings are in headrace.toml.")


def doctor(
    context: typer.Context,
    spark: Annotated[bool, typer.Option("--spark", help="Also start a Spark session and run a query.")] = False,
) -> None:
    """Check Python, Java, jars, catalog, warehouse and clocks, and say how to repair each; exit status 1 if one fails.

    \b
    Examples:
      headrace doctor
      headrace doctor --spark
    """
    from headrace.doctor import Outcome, examine

    asked = invocation(context)
    found = examine(asked.root(), spark=spark)
    show(asked, [check.as_dict() for check in found], lambda: render.checks(found))
    if any(check.outcome is Outcome.FAIL for check in found):
        raise typer.Exit(FAILED)


def demo(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the demo's project goes.")] = Path(
        "demo-project"
    ),
    scale: Annotated[float, typer.Option(min=0.001, max=10, help="TPC-H scale factor.")] = 0.1,
    rounds: Annotated[int, typer.Option(min=1, max=50, help="Rounds of changes.")] = 5,
) -> None:
    """Build a TPC-H lakehouse with seven stream tables, change it for some rounds, and refresh, time and verify all.

    \b
    Examples:
      headrace demo
      headrace demo /tmp/tpch --scale 0.01 --rounds 2
    """
    from headrace.cli.verbs.demonstration import demonstrate

    if not demonstrate(invocation(context), folder, scale, rounds):
        raise typer.Exit(FAILED)


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (init, doctor, demo):
        app.command(rich_help_panel="Project")(verb)
