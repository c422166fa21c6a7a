"""sql: a statement, a file, stdin, or a prompt."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.console import show
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.script import run_script
from headrace.cli.surroundings import caller, served, stdin
from headrace.cli.verbs import options
from headrace.cli.verbs.options import read_stdin, read_text


@click.command()
@click.argument("statement", required=False)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run a file of statements; may be repeated.",
)
@options.limit(100, "Rows shown of each result.")
@pass_invocation
def sql(asked: Invocation, statement: str | None, files: tuple[Path, ...], limit: int) -> None:
    """Run SQL: Headrace's statements and all of Spark's.

    Without arguments: stdin, or a prompt, which also knows all verbs; help; in it lists the rest.

    Statements about stream tables, deployments, sources, sinks, gates, keys, watermarks and refresh groups are
    Headrace's; the rest goes to Spark. A script stops at the first statement that fails; what ran before it stays.

    \b
    Examples:
      headrace sql "SELECT * FROM shop.revenue ORDER BY total DESC"
      headrace sql -f pipeline.sql
      echo "REFRESH ALL STREAM TABLES" | headrace sql
      headrace sql
    """
    if statement is not None and files:
        raise click.UsageError("Give statements as an argument or with --file, not both.")
    if statement is not None or files:
        scripts = [statement] if statement is not None else [read_text(file) for file in files]
    elif stdin().isatty():
        _prompt(asked, limit)
        return
    else:
        scripts = [read_stdin()]
    if not any(script.strip() for script in scripts):
        raise click.UsageError("There is no statement to run.")
    with asked.open() as hr:
        documents = [document for script in scripts for document in run_script(hr, script, asked, limit)]
    if asked.json:
        show(asked, documents, tuple)


def _prompt(asked: Invocation, limit: int) -> None:
    if served():
        from headrace.serve.commands import RunElsewhere

        raise RunElsewhere
    if caller() is not None:
        raise click.UsageError("This is the prompt already: type the statement.")
    from headrace.cli.prompt.loop import Prompt

    verbs = click.get_current_context().find_root().command
    assert isinstance(verbs, click.Group)
    with asked.open() as hr:
        Prompt(asked, hr, verbs, limit).loop()


VERBS = (sql,)
