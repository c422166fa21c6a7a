"""Runs scripts of SQL and prints their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace.cli.console import write
from headrace.cli.invocation import Invocation
from headrace.cli.progress import following
from headrace.cli.render import answers

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.api.facade import Headrace

Render = Callable[[Any], "Iterable[RenderableType]"]


def run_script(
    hr: Headrace, script: str, asked: Invocation, limit: int, render: Render = answers.answer
) -> list[dict[str, Any]]:
    """Run a script; print each result as it comes, or with `--json` return them all.

    Args:
        hr: The open project.
        script: Statements.
        asked: Says whether JSON is wanted.
        limit: Rows fetched of each result.
        render: Makes a result for people.
    """
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
        elif answers.is_nothing(value):
            write(answers.nothing(found[0]))
        else:
            write(render(value))


def _value(found: Any, limit: int) -> Any:
    """Return a statement's result.

    Rows are fetched, and only now does Spark run the query and say what is wrong with it.
    """
    if not answers.is_frame(found):
        return found
    from headrace.spark.errors import translated

    with translated():
        return answers.fetch(found, limit)
