"""status, show-create, history, graph, lineage, explain, validate, functions."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from headrace.cli.console import show, write
from headrace.cli.failures import report
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.progress import spinning
from headrace.cli.render import tables as render
from headrace.cli.verbs import options
from headrace.cli.verbs.serving import tell_server


@click.command()
@options.names
@pass_invocation
def status(asked: Invocation, names: tuple[str, ...]) -> None:
    """Show the state of stream tables: last refresh, and sources that moved since.

    Reads the catalog only and starts no Spark.

    \b
    Examples:
      headrace status
      headrace status shop.revenue --json
    """
    with asked.open() as hr:
        infos, copied = hr.status(names or None), hr.copied()
    show(
        asked,
        lambda: [info.as_dict() for info in infos],
        lambda: render.standing(infos, dt.datetime.now(dt.UTC)),
    )
    if copied is not None and not asked.quiet:
        report(copied, asked)
    tell_server(asked)


@click.command("show-create")
@options.names
@pass_invocation
def show_create(asked: Invocation, names: tuple[str, ...]) -> None:
    """Print the statements that make stream tables again, exactly.

    Query with comments, schedule, refresh mode, properties. Without names: of all, in an order in which they can be
    run. Reads the catalog only.

    \b
    Examples:
      headrace show-create shop.revenue
      headrace show-create > pipeline.sql && headrace -p copy sql -f pipeline.sql
    """
    from headrace.cli.render.format import Verbatim

    with asked.open() as hr:
        statements = hr.show_create(names or None)
    show(asked, {"sql": statements}, lambda: (Verbatim(statements),))


@click.command()
@click.argument("name", required=False)
@options.limit(20, "How many refreshes.")
@pass_invocation
def history(asked: Invocation, name: str | None, limit: int) -> None:
    """Show past refreshes, newest first: mode, rows, time, and the error of those that failed.

    \b
    Examples:
      headrace history
      headrace history shop.revenue -n 100
    """
    with asked.open() as hr:
        rows = hr.history(name, limit=limit)
    show(asked, [row.as_dict() for row in rows], lambda: render.history(rows))


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "mermaid", "dot", "json"), case_sensitive=False),
    default="text",
    show_default=True,
    help="Form of the drawing.",
)
@click.option("--levels", is_flag=True, help="Show the levels and the critical path instead of a drawing.")
@pass_invocation
def graph(asked: Invocation, form: str, levels: bool) -> None:
    """Draw which stream table reads what.

    \b
    Examples:
      headrace graph
      headrace graph --format dot | dot -Tsvg > pipeline.svg
      headrace graph --levels
    """
    from headrace.cli.render.format import Verbatim
    from headrace.graph import as_dict, as_dot, as_levels, as_mermaid, as_text

    with asked.open() as hr:
        dag = hr.graph()
        took = {info.name: info.last_seconds for info in hr.status()} if levels else {}
    seconds = {n: s for n in dag.names if (s := took.get(str(n))) is not None}
    if asked.json or form == "json":
        import json

        found = as_dict(dag, seconds=seconds if levels else None)
        write([Verbatim(json.dumps(found, indent=2, ensure_ascii=False))])
        return
    drawn = as_levels(dag, seconds) if levels else {"mermaid": as_mermaid, "dot": as_dot}.get(form, as_text)(dag)
    write([Verbatim(drawn.rstrip("\n") or "There are no stream tables yet.")])


@click.command()
@click.argument("name", metavar="TABLE[.COLUMN]", shell_complete=options.stream_tables)
@click.option("--base", is_flag=True, help="Follow stream tables to the tables that they come from.")
@pass_invocation
def lineage(asked: Invocation, name: str, base: bool) -> None:
    """Show which columns each column of a stream table comes from, and how.

    Reads the catalog only and starts no Spark.

    \b
    Examples:
      headrace lineage shop.revenue
      headrace lineage shop.revenue.total --base
      headrace lineage shop.revenue --json
    """
    from headrace.cli.render.lineage import lineage as render_lineage

    with asked.open() as hr:
        found = hr.lineage(name, base=base)
    show(asked, found.as_dict(), lambda: render_lineage(found))


@click.command()
@click.argument("target", metavar="NAME_OR_QUERY")
@click.option("--mode", "-m", type=options.MODE, help="Only this mode, as if it were the table's own.")
@click.option("--passes", is_flag=True, help="Show the optimiser's passes: which fired, what each changed and saves.")
@click.option("--analyze", is_flag=True, help="Refresh the stream table now, and show what that did.")
@click.option("--whole", is_flag=True, help="Show long sections to their end; with --analyze, every step.")
@pass_invocation
def explain(asked: Invocation, target: str, mode: str | None, passes: bool, analyze: bool, whole: bool) -> None:
    """Show how a stream table is refreshed: mode, reason, algebra, change, stages, SQL.

    \b
    Examples:
      headrace explain shop.revenue
      headrace explain shop.revenue --mode DIFFERENTIAL
      headrace explain shop.revenue --passes
      headrace explain shop.revenue --analyze --whole
      headrace explain "SELECT region, count(*) AS n FROM shop.orders GROUP BY region"
    """
    from headrace.cli.render.explanation import explanation

    with asked.open() as hr, spinning(asked, hr.events, "Refreshing" if analyze else "Explaining"):
        found = hr.explain(target, refresh_mode=mode, passes=passes, analyze=analyze)
    show(asked, found.as_dict(), lambda: explanation(found, whole=whole))


@click.command()
@click.argument("query", required=False)
@options.query_file
@pass_invocation
def validate(asked: Invocation, query: str | None, file: Path | None) -> None:
    """Show for each construct of a query how it would be maintained, or why it is not.

    Creates nothing. The query is the argument, a file, or stdin (-).

    \b
    Examples:
      headrace validate "SELECT region, count(*) AS n FROM shop.orders GROUP BY region"
      headrace validate -f revenue.sql
      headrace validate - --json < revenue.sql
    """
    from headrace.cli.render.validation import validation

    text = options.query_text(query, file)
    if text is None or not text.strip():
        raise click.UsageError("The query is missing: give it as an argument or with --file.")
    with asked.open() as hr, spinning(asked, hr.events, "Validating"):
        found = hr.validate(text)
    show(asked, found.as_dict(), lambda: validation(found))


@click.command()
@pass_invocation
def functions(asked: Invocation) -> None:
    """List the project's Python functions: what they return, and which stream tables call them.

    They are declared in functions.py in the project folder. Loads that file; starts no Spark.

    \b
    Examples:
      headrace functions
      headrace functions --json
    """
    from headrace.cli.render.functions import functions as rendered

    with asked.open() as hr:
        found = hr.functions()
    show(asked, [info.as_dict() for info in found], lambda: rendered(found))


VERBS = (status, show_create, history, graph, lineage, explain, validate, functions)
