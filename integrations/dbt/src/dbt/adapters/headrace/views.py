"""Tells whether a view is what its model says, so that it need not be replaced."""

from __future__ import annotations

from dbt.adapters.headrace.definitions import words
from dbt.adapters.headrace.projects import Project

from headrace.errors import HeadraceError


def is_unchanged(project: Project, name: str, query: str, digest: str) -> bool:
    """Return whether a view has this text, and its query returns the columns that it has.

    Replaced, it would be another view to Headrace: stream tables that read through it are computed anew then.

    Args:
        project: The project.
        name: The view, as Spark SQL writes it.
        query: The model's compiled SQL.
        digest: What the view says of its model, where dbt has made it.
    """
    try:
        statement = project.run(f"SHOW CREATE TABLE {name}").rows()[0][0]
        text = words(query)
        if f"'{digest}'" not in statement or words(statement)[-len(text) :] != text:
            return False
        return _columns(project, f"DESCRIBE TABLE {name}") == _columns(project, f"DESCRIBE QUERY {query}")
    except HeadraceError:  # it reads what is gone, or cannot be read itself: replacing it says which
        return False


def _columns(project: Project, statement: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in project.run(statement).rows()]
