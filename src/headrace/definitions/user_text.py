"""The user's own text, run against pinned tables.

A FULL refresh and `verify` run what the user wrote, not what we made of it: only the table names are replaced, by
expressions that read one snapshot each, and views by their texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.errors import Place, place_at
from headrace.names import LAKE, TableName, qualify, quote
from headrace.sql.reader.reader import circular_view
from headrace.sql.references import Reference, origin, references, substitute
from headrace.sql.unqualify import aliases_of, unqualify

Bind = Callable[[TableName], str]
"""Gives the table expression that reads a relation."""

NOWHERE_ELSE: Mapping[TableName, TableName] = {}


def resolver(
    namespace: tuple[str, ...],
    catalogs: frozenset[str],
    redirects: Mapping[TableName, TableName] = NOWHERE_ELSE,
    default: str = LAKE,
) -> Callable[[tuple[str, ...]], TableName]:
    """Return a function that qualifies names of a query.

    Args:
        namespace: Namespace of unqualified names.
        catalogs: Catalogs the session knows.
        redirects: Relations in whose place others are read.
        default: The catalog of names that have none.
    """

    def resolve(parts: tuple[str, ...]) -> TableName:
        name = qualify(parts, namespace, catalogs, default)
        return redirects.get(name, name)

    return resolve


def bind_text(
    query: str,
    *,
    namespace: tuple[str, ...],
    catalogs: frozenset[str],
    views: Mapping[TableName, str],
    bind: Bind,
    default: str = LAKE,
    case_sensitive: bool = False,
) -> str:
    """Replace every table name in a query.

    Args:
        query: The query as written.
        namespace: Namespace of unqualified names.
        catalogs: Catalogs the session knows.
        views: Texts of the catalog views the query may go through.
        bind: Table expression for every relation that is no view.
        default: The catalog of names that have none.
        case_sensitive: Whether names of common table expressions differ by case.
    """
    text, replace = _binding(
        query,
        namespace=namespace,
        catalogs=catalogs,
        views=views,
        bind=bind,
        default=default,
        case_sensitive=case_sensitive,
    )
    return substitute(text, replace, case_sensitive=case_sensitive)


def own_place(
    query: str,
    place: Place,
    *,
    namespace: tuple[str, ...],
    catalogs: frozenset[str],
    views: Mapping[TableName, str],
    bind: Bind,
    case_sensitive: bool = False,
) -> Place:
    """Return where in the query as written a place of its `bind_text` is.

    Args:
        query: The query as written.
        place: A place in the bound text.
        namespace: As for `bind_text`, and so are all others.
        catalogs: Likewise.
        views: Likewise.
        bind: Likewise.
        case_sensitive: Likewise.

    Returns:
        The same place where names of columns had to be rewritten, too.
    """
    text, replace = _binding(
        query, namespace=namespace, catalogs=catalogs, views=views, bind=bind, case_sensitive=case_sensitive
    )
    if text != query:
        return place
    before = substitute(text, replace, case_sensitive=case_sensitive).split("\n")[: place.line - 1]
    offset = sum(len(line) + 1 for line in before) + place.column - 1
    return place_at(query, origin(query, replace, offset, case_sensitive=case_sensitive))


def _binding(
    query: str,
    *,
    namespace: tuple[str, ...],
    catalogs: frozenset[str],
    views: Mapping[TableName, str],
    bind: Bind,
    default: str = LAKE,
    case_sensitive: bool,
) -> tuple[str, Callable[[Reference], str]]:
    """Return the text whose table names are replaced, and their replacements."""
    resolve = resolver(namespace, catalogs, default=default)

    def expression_of(name: TableName) -> str:
        if name not in views:
            return bind(name)
        inner = bind_text(
            views[name],
            namespace=name.namespace,
            catalogs=catalogs,
            views=views,
            bind=bind,
            case_sensitive=case_sensitive,
        )
        return f"(\n{inner}\n)"

    def replace(reference: Reference) -> str:
        name = resolve(reference.parts)
        expression = expressions[name]
        return expression if reference.has_alias or name not in aliases else f"{expression} AS {quote(aliases[name])}"

    read = references(query, case_sensitive=case_sensitive)
    expressions = {name: expression_of(name) for name in {resolve(r.parts) for r in read}}
    bare = dict.fromkeys(resolve(r.parts) for r in read if not r.has_alias)
    aliases: dict[TableName, str] = {}
    # what is read under another name, from `staging` or as a deployment's, is known by that only without an alias
    if subqueries := [name for name in bare if not expressions[name].startswith(name.sql)]:
        names = [(r.start, r.end) for r in read]
        aliases = aliases_of(query, bare, subqueries, names)
        query = unqualify(query, aliases, names)
    return query, replace


def refuse_unclear_names(
    query: str, namespace: tuple[str, ...], catalogs: frozenset[str], *, case_sensitive: bool = False
) -> None:
    """Refuse a query that cannot be run once something is put in the place of a table.

    Args:
        query: The query.
        namespace: The namespace of names that have none.
        catalogs: Spark's catalogs, by which names are resolved.
        case_sensitive: Whether names of common table expressions differ by case.

    Raises:
        UserError: `COLUMN_AMBIGUOUS`, as for `aliases_of`.
    """
    resolve = resolver(namespace, catalogs)
    read = references(query, case_sensitive=case_sensitive)
    bare = tuple(dict.fromkeys(resolve(r.parts) for r in read if not r.has_alias))
    aliases_of(query, bare, bare, [(r.start, r.end) for r in read])


def relations_read(
    query: str,
    *,
    namespace: tuple[str, ...],
    catalogs: frozenset[str],
    view_text: Callable[[TableName], str | None],
    case_sensitive: bool = False,
) -> tuple[tuple[TableName, ...], dict[TableName, str]]:
    """Return the relations that a query reads, and the views between.

    Args:
        query: The query.
        namespace: The namespace of names that have none.
        catalogs: Spark's catalogs, by which names are resolved.
        view_text: Returns the text of a view; None for a table.
        case_sensitive: Whether names of common table expressions differ by case.

    Returns:
        The relations in order of appearance, and the texts of the views by name, each after those that it reads.

    Raises:
        UserError: `CYCLE` for a view that reads itself.
    """
    relations: dict[TableName, None] = {}
    views: dict[TableName, str] = {}

    def visit(text: str, inside: tuple[str, ...], through: tuple[TableName, ...]) -> None:
        resolve = resolver(inside, catalogs)
        for reference in references(text, case_sensitive=case_sensitive):
            name = resolve(reference.parts)
            if name in through:
                raise circular_view(name)
            if name in views or name in relations:
                continue
            if (found := view_text(name)) is not None:
                visit(found, name.namespace, (*through, name))
                views[name] = found
            else:
                relations[name] = None

    visit(query, namespace, ())
    return tuple(relations), views
