"""The `headrace` command.

Click rather than Typer: Typer brings Pydantic, and the two take a third of the half second that looking at the catalog
may cost.
"""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from headrace import __version__
from headrace.cli import failures
from headrace.cli.invocation import Invocation, invocation
from headrace.cli.verbs import (
    deploying,
    keys,
    looking,
    project,
    refreshing,
    running,
    safeguards,
    serving,
    sinks,
    sources,
    sql,
    tables,
)
from headrace.errors import HeadraceError
from headrace.extras import extra_for, package_missing

SECTIONS: tuple[tuple[str, tuple[click.Command, ...]], ...] = (
    ("Defining", (*tables.VERBS, *deploying.VERBS, *sources.VERBS, *sinks.VERBS, *keys.VERBS)),
    ("Keeping fresh", (*refreshing.VERBS, *running.VERBS, *serving.VERBS, *safeguards.VERBS)),
    ("Looking", (*looking.VERBS, *sql.VERBS)),
    ("Project", project.VERBS),
)
"""Every verb, in the order the help shows them."""

SWITCHES = {"--json": "--json", "--quiet": "--quiet", "-q": "--quiet", "--no-serve": "--no-serve"}
PROJECT = ("-p", "--project")
GLOBAL_OPTIONS = ("--json", "--quiet", "--project")


class Verbs(click.Group):
    """The group of all verbs.

    Global options are accepted in any place; errors become messages and exit statuses.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move global options to the front, where the group reads them."""
        hoisted = hoist(args)
        try:
            return super().parse_args(ctx, hoisted)
        except click.UsageError as error:
            if "--json" not in hoisted:
                raise
            failures.report_usage(error)
            raise click.exceptions.Exit(error.exit_code) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except HeadraceError as error:
            failures.report(error, invocation(ctx), by_command=ctx.invoked_subcommand != "sql")
            raise click.exceptions.Exit(failures.FAILED) from error
        except KeyboardInterrupt as error:
            failures.report_interrupt(invocation(ctx))
            raise click.exceptions.Exit(failures.INTERRUPTED) from error
        except click.ClickException as error:
            told = _as_global(error)
            if not ctx.params.get("json"):
                raise told from error
            failures.report_usage(told)
            raise click.exceptions.Exit(error.exit_code) from error
        except ModuleNotFoundError as error:
            if (extra := extra_for(error.name)) is None:
                failures.report_defect(error, invocation(ctx))
            else:
                failures.report(package_missing("This", extra, error.name or ""), invocation(ctx))
            raise click.exceptions.Exit(failures.FAILED) from error
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # the last line of defence: users get a sentence, we get the trace
            failures.report_defect(error, invocation(ctx))
            raise click.exceptions.Exit(failures.FAILED) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by section."""
        for title, verbs in SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(verb.name or "", verb.get_short_help_str(limit=200)) for verb in verbs])


def _as_global(error: click.ClickException) -> click.ClickException:
    """Return an error with what may be meant, where an unknown option resembles a global one."""
    if not isinstance(error, click.NoSuchOption) or error.possibilities:
        return error
    from difflib import get_close_matches

    meant = get_close_matches(error.option_name, GLOBAL_OPTIONS, cutoff=0.75)
    return click.NoSuchOption(error.option_name, possibilities=meant, ctx=error.ctx)


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


@click.group(
    cls=Verbs,
    name="headrace",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--project",
    "-p",
    "folder",
    type=click.Path(path_type=Path),
    envvar="HEADRACE_PROJECT",
    metavar="FOLDER",
    help="The project folder (or $HEADRACE_PROJECT); else the nearest one, from here upwards, with a headrace.toml.",
)
@click.option("--json", is_flag=True, help="Print the result as one JSON document on stdout, errors as JSON on stderr.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no confirmations.")
@click.option(
    "--no-serve", is_flag=True, help="Neither use nor start a server (headrace serve); $HEADRACE_NO_SERVE does so, too."
)
@click.version_option(__version__, message="headrace %(version)s")
@click.pass_context
def app(context: click.Context, folder: Path | None, json: bool, quiet: bool, no_serve: bool) -> None:
    """Keep SQL-defined tables fresh on Apache Spark, at the cost of the change, not the data.

    \b
    A first minute:
      headrace init shop && cd shop
      headrace sql "CREATE NAMESPACE shop; CREATE TABLE shop.orders
                      (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg"
      headrace create shop.revenue \\
                   "SELECT region, sum(amount) AS total FROM shop.orders GROUP BY region"
      headrace sql "INSERT INTO shop.orders VALUES (1, 'EU', 30.00)"
      headrace refresh && headrace verify

    The options below may stand before or after the verb. Exit status: 0 done, 1 failed, 2 wrong usage,
    130 interrupted. `headrace VERB --help` shows examples.
    """
    named = context.get_parameter_source("folder") is ParameterSource.COMMANDLINE
    context.obj = Invocation(folder, json, quiet, no_serve)
    context.obj.check_caller(named=named)


for _, _verbs in SECTIONS:
    for _verb in _verbs:
        app.add_command(_verb)


def main() -> None:
    """Run the command; the entry point of the package."""
    app(prog_name="headrace")
