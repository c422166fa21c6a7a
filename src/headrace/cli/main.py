"""The `headrace` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headrace.cli import failures
from headrace.cli.invocation import Invocation, invocation
from headrace.cli.verbs import looking, project, refreshing, sql, tables
from headrace.errors import HeadraceError

SWITCHES = {"--json": "--json", "--quiet": "--quiet", "-q": "--quiet"}
PROJECT = ("-p", "--project")


class Verbs(TyperGroup):
    """The verbs' group: global options are taken in any place, errors become messages and exit statuses."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move global options to the front, where the group reads them."""
        return super().parse_args(ctx, hoist(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except HeadraceError as error:
            failures.report(error, invocation(ctx))
            raise typer.Exit(failures.FAILED) from error
        except KeyboardInterrupt as error:
            failures.report_interrupt(invocation(ctx))
            raise typer.Exit(failures.INTERRUPTED) from error
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError, EOFError):
            raise
        except Exception as error:  # the last line of defence: users get a sentence, we get the trace
            failures.report_defect(error, invocation(ctx))
            raise typer.Exit(failures.FAILED) from error


def hoist(args: list[str]) -> list[str]:
    """Put `--project`, `--json` and `--quiet` first, wherever they were written before a `--`."""
    front: list[str] = []
    rest: list[str] = []
    queue = list(args)
    while queue:
        arg = queue.pop(0)
        if arg == "--":
            rest += [arg, *queue]
            break
        if arg in SWITCHES:
            front.append(SWITCHES[arg])
        elif arg in PROJECT:
            front += [arg, *queue[:1]]
            del queue[:1]
        elif arg.startswith("--project="):
            front.append(arg)
        else:
            rest.append(arg)
    return front + rest


app = typer.Typer(
    name="headrace",
    cls=Verbs,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"headrace {version('headrace')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--project",
            "-p",
            envvar="HEADRACE_PROJECT",
            metavar="FOLDER",
            help="The project folder; else the nearest folder above this one that has a headrace.toml.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON document on stdout, errors as JSON on stderr.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no confirmations.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Keep SQL-defined tables fresh on Apache Spark, at a cost that grows with the change and not with the data.

    \b
    A first minute:
      headrace init shop && cd shop
      headrace sql "CREATE TABLE lake.shop.orders (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg"
      headrace create shop.revenue "SELECT region, sum(amount) AS total FROM shop.orders GROUP BY region"
      headrace sql "INSERT INTO lake.shop.orders VALUES (1, 'EU', 30.00)"
      headrace refresh && headrace verify

    These options may stand before or after the verb. Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
    """
    context.obj = Invocation(folder, json, quiet)


for group in (tables, refreshing, looking, sql, project):
    group.register(app)


def main() -> None:
    """Run the command; the entry point of the package."""
    app()
