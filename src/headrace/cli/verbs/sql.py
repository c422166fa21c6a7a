"""sql: a statement, a file, stdin, or a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.console import show, write
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import following
from headrace.cli.render import answers
from headrace.cli.surroundings import caller, stdin
from headrace.cli.verbs.options import read_stdin, read_text

if TYPE_CHECKING:
    from headrace.api.facade import Headrace


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
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), default=100, show_default=True, help="Rows shown of each result."
)
@pass_invocation
def sql(asked: Invocation, statement: str | None, files: tuple[Path, ...], limit: int) -> None:
    """Run SQL: Headrace's statements and all of Spark's.

    Without arguments: stdin, or a prompt.

    CREATE, ALTER, DROP, REFRESH, EXPLAIN and SHOW STREAM TABLE(S), CREATE, DROP and SHOW SOURCE(S) are Headrace's;
    the rest goes to Spark. A script stops at the first statement that fails; what ran before it stays.

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


def run_script(hr: Headrace, script: str, asked: Invocation, limit: int) -> list[dict[str, Any]]:
    """Run a script; print each result as it comes, or with `--json` return them all."""
    documents: list[dict[str, Any]] = []
    statements = hr.statements(script)
    while True:
        with following(asked, hr.events):
            found = next(statements, None)
            if found is None:
                return documents
            value = _value(found[1], limit)
        if asked.json:
            documents.append({"statement": found[0].sql, "result": answers.document(value)})
        else:
            write(answers.answer(value))


def _prompt(asked: Invocation, limit: int) -> None:
    if caller() is not None:
        from headrace.serve.commands import RunElsewhere

        raise RunElsewhere
    from headrace.cli.prompt import Prompt

    with asked.open() as hr:
        names = [info.name for info in hr.status()]
        Prompt(asked, names, lambda text: run_script(hr, text, asked, limit)).loop()


VERBS = (sql,)


def _value(found: Any, limit: int) -> Any:
    """Return a statement's result.

    Rows are fetched, and only now does Spark run the query and say what is wrong with it.
    """
    if not answers.is_frame(found):
        return found
    from headrace.spark.errors import translated

    with translated():
        return answers.fetch(found, limit)
