"""Statements that make stream tables again, from what the catalog has of them.

Whatever is part of a definition besides the statement's own clauses stands around it: the namespace, where the query
has names without one, and settings of the session that are not the project's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headrace.algebra.schema import no_rows_sql
from headrace.catalog import Status, StreamTable
from headrace.definitions.details import from_json, namespace_of, semantics_of
from headrace.graph.dag import Dag
from headrace.names import LAKE, TableName, qualify, quote
from headrace.semantics import Semantics
from headrace.sql.reader.syntax.statement_cursor import string_literal
from headrace.sql.reader.syntax.tokens import tokenize
from headrace.sql.references import references

_PLAIN = re.compile(r"(?!if$)[a-z_]\w*", re.ASCII | re.IGNORECASE)
"""Parts of names that need no quotes, wherever they stand in the statement."""


def creation_statements(
    tables: Sequence[StreamTable], graph: Dag[TableName], catalogs: frozenset[str], usual: Semantics
) -> Iterator[str]:
    """Yield the statements that make stream tables again, each with what has to stand around it.

    A query can read only what exists, so a cycle is closed by replacing: some members are made without rows first.

    Args:
        tables: The stream tables, producers first; of a cycle all members.
        graph: Who reads whom.
        catalogs: Catalogs that the session knows: a namespace may be called like one of them.
        usual: The settings that sessions of the project begin with.
    """
    of = {table.name: table for table in tables}
    left = list(of)
    while left:
        cycle = graph.component(left[0]) or ()
        for verb, name in _opened(cycle, graph) if cycle else (("CREATE", left[0]),):
            own = of[name]
            yield _empty(own, catalogs) if verb is None else creation_statement(own, catalogs, usual, verb=verb)
        left = [name for name in left[1:] if name not in cycle]


def _opened(cycle: Sequence[TableName], graph: Dag[TableName]) -> Iterator[tuple[str | None, TableName]]:
    """Yield how the members of a cycle are made one after the other; None for without rows."""
    there, left, empty = set[TableName](), list(cycle), list[TableName]()
    while left:
        ready = [name for name in left if there.issuperset(s for s in graph.producers(name) if s in cycle)]
        name = ready[0] if ready else left[0]
        left.remove(name)
        there.add(name)
        empty += [] if ready else [name]
        yield "CREATE" if ready else None, name
    for name in empty:
        yield "CREATE OR REPLACE", name


def _empty(table: StreamTable, catalogs: frozenset[str]) -> str:
    """Return the statement for a table without rows that has the columns of another one."""
    rows = no_rows_sql(from_json(table.details).output)
    return f"CREATE STREAM TABLE {_name(table.name, catalogs)}\n  AS\n{rows};"


def creation_statement(table: StreamTable, catalogs: frozenset[str], usual: Semantics, *, verb: str = "CREATE") -> str:
    """Return the statement that makes a stream table again, with what has to stand around it.

    Args:
        table: The stream table.
        catalogs: Catalogs that the session knows: a namespace may be called like one of them.
        usual: The settings that sessions of the project begin with.
        verb: How it begins.
    """
    own, normal = semantics_of(table.details).options(), usual.options()
    settings = {key: value for key, value in own.items() if value != normal[key]}
    namespace = _namespace_needed(table)
    before = [*(f"SET {key} = {value};" for key, value in settings.items())]
    before += [f"USE {_dotted((LAKE, *namespace))};"] if namespace else []
    after = [f"RESET {key};" for key in settings]  # whatever follows is not to be defined by them
    after += [f"USE {LAKE};"] if namespace else []
    return "\n".join((*before, *_statement(table, catalogs, verb), *after))


def _namespace_needed(table: StreamTable) -> tuple[str, ...]:
    """Return the namespace of names without one in the query; () where there are none."""
    namespace = namespace_of(table.details)
    case_sensitive = semantics_of(table.details).case_sensitive
    read = references(table.details["query"], case_sensitive=case_sensitive) if namespace else ()
    if any(len(reference.parts) == 1 for reference in read):
        return namespace
    return ()


def _statement(table: StreamTable, catalogs: frozenset[str], verb: str) -> Iterator[str]:
    yield f"{verb} STREAM TABLE {_name(table.name, catalogs)}"
    if table.schedule is not None:
        yield f"  SCHEDULE {string_literal(table.schedule)}"
    yield f"  REFRESH MODE {table.refresh_mode.value}"
    if table.options:
        yield f"  WITH ({', '.join(f'{key} = {string_literal(text)}' for key, text in table.options.items())})"
    if table.status is Status.NEW:
        yield "  INITIALIZE FALSE"
    yield "  AS"
    yield table.details["query"] + _end(table.details["query"])


def _end(query: str) -> str:
    """Return the semicolon, below a comment that ends the query.

    A backslash carries a comment on to the next line.
    """
    if query[tokenize(query)[-1].end :].strip() == "":
        return ";"
    return "\n\n;" if query.endswith("\\") else "\n;"


def _name(name: TableName, catalogs: frozenset[str]) -> str:
    short = name.parts[1:]
    return _dotted(short if qualify(short, (), catalogs) == name else name.parts)


def _dotted(parts: tuple[str, ...]) -> str:
    return ".".join(part if _PLAIN.fullmatch(part) else quote(part) for part in parts)
