"""Finds the tables that a Spark statement writes, alters or drops, from its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from headrace.errors import UserError
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.statement_cursor import string_value
from headrace.sql.reader.syntax.tokens import Kind, tokenize

_BLOCK_STARTS = frozenset({";", ":", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})
_READING = frozenset({"ANCESTORS_OF", "CREATE_CHANGELOG_VIEW", "SNAPSHOT"})
"""Procedures of Iceberg's that only read the table they are given."""
_CONTAINERS = frozenset({"NAMESPACE", "SCHEMA", "DATABASE"})


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """A table that a statement changes.

    Args:
        verb: What is done to it: `INSERT`, `UPDATE`, `DELETE`, `MERGE`, `TRUNCATE`, `DROP`, `ALTER`, `REPLACE`, `CALL`,
            or `DROP NAMESPACE` for all tables of a namespace.
        name: Its name as written, split and unquoted.
        start: Offset of the verb in the text.
    """

    verb: str
    name: tuple[str, ...]
    start: int


def write_targets(sql: str) -> tuple[WriteTarget, ...]:
    """Return the tables that a statement changes, or all statements of a BEGIN … END block.

    What only explains a statement changes nothing. Texts that are run by EXECUTE IMMEDIATE are read like the statement
    itself, where they are literals.

    Args:
        sql: One statement, of any kind; what cannot be read has no targets, as Spark refuses it.
    """
    found: list[WriteTarget] = []
    with suppress(UserError):  # brackets that do not match: Spark says so
        found += _Finder(sql).targets()
    return tuple(found)


class _Finder(Cursor):
    """Walks over a statement and stops at verbs."""

    def targets(self) -> Iterator[WriteTarget]:
        """Yield the targets in order."""
        if self.word == "EXPLAIN":
            return
        depth = 0
        while not self.done:
            depth += (self.word in ("(", "[")) - (self.word in (")", "]"))
            before = self.peek(-1).word
            begins = self.at == 0 or before in _BLOCK_STARTS
            found = list(self._statement()) if begins else []
            if not found and depth == 0 and self.word in ("INSERT", "UPDATE", "DELETE", "MERGE") and before == ")":
                found = list(self._statement())  # after a WITH clause
            if not found and depth == 0 and self.sees("INSERT") and self.peek(1).word in ("INTO", "OVERWRITE"):
                found = list(self._statement())  # FROM source INSERT INTO …
            yield from found
            if not found:
                self.at += 1

    def _statement(self) -> Iterator[WriteTarget]:
        """Yield the targets of a statement that begins here, and step over their names; else stay."""
        start, verb = self.offset(), self.word
        readers = {"INSERT": self._insert, "CALL": self._call, "EXECUTE": self._execute}
        if verb in readers:
            yield from readers[verb](start)
        elif (said := self._said(verb)) and (name := self._name()):
            yield WriteTarget(said, name, start)

    def _said(self, verb: str) -> str | None:
        """Step over the words before a name, and return what is done to it."""
        begin = self.at
        if verb == "UPDATE" and self.take("UPDATE"):
            return "UPDATE"
        if self.take("DELETE", "FROM"):
            return "DELETE"
        if self.take("MERGE"):
            self.take("WITH", "SCHEMA", "EVOLUTION")
            if self.take("INTO"):
                return "MERGE"
        elif self.take("TRUNCATE", "TABLE"):
            return "TRUNCATE"
        elif self.take("LOAD", "DATA"):
            self.skip_until(lambda at: at.sees("INTO", "TABLE"))
            if self.take("INTO", "TABLE"):
                return "INSERT"
        elif self.take("MSCK", "REPAIR", "TABLE") or self.take("COMMENT", "ON", "TABLE"):
            return "ALTER"
        elif self.word in ("DROP", "ALTER"):
            what = self.peek(1).word
            self.at += 2
            self.take("IF", "EXISTS")
            if what == "TABLE":
                return verb
            if what in _CONTAINERS and verb == "DROP":
                return "DROP NAMESPACE"
        elif self.word in ("CREATE", "REPLACE"):
            replaces = self.take("CREATE", "OR", "REPLACE") or self.take("REPLACE")
            if replaces and self.take("TABLE"):
                return "REPLACE"
        self.at = begin
        return None

    def _insert(self, start: int) -> Iterator[WriteTarget]:
        begin = self.at
        self.at += 1
        self.take("WITH", "SCHEMA", "EVOLUTION")
        if self.take("INTO") or self.take("OVERWRITE"):
            if self.word == "TABLE" and self.peek(1).is_name:
                self.at += 1
            if self.word not in ("DIRECTORY", "LOCAL") and (name := self._name()):
                yield WriteTarget("INSERT", name, start)
                return
        self.at = begin

    def _call(self, start: int) -> Iterator[WriteTarget]:
        """Yield the tables that a procedure of a catalog is given: all texts that may be names."""
        begin = self.at
        self.at += 1
        procedure = self._name()
        if len(procedure) < 2 or self.word != "(":
            self.at = begin
            return
        first, last = self.skip_group()
        if procedure[-1].upper() in _READING:
            return
        for token in self.tokens[first:last]:
            if token.kind is Kind.STRING and (name := _as_name(string_value(token.text))):
                yield WriteTarget("CALL", _in_catalog(name, procedure), start)

    def _execute(self, start: int) -> Iterator[WriteTarget]:
        begin = self.at
        if self.take("EXECUTE", "IMMEDIATE") and self.peek().kind is Kind.STRING:
            inner = write_targets(string_value(self.peek().text))
            self.at += 1
            yield from (WriteTarget(target.verb, target.name, start) for target in inner)
            return
        self.at = begin

    def _name(self) -> tuple[str, ...]:
        """Step over a name, also `IDENTIFIER('a.b')`, and return its parts; () where there is none."""
        if self.sees("IDENTIFIER", "(") and self.peek(2).kind is Kind.STRING:
            name = _as_name(string_value(self.peek(2).text))
            self.at += 1
            self.skip_group()
            return name
        if not self.peek().is_name:
            return ()
        parts = [self.name()]
        while self.word == "." and self.peek(1).is_name:
            self.at += 1
            parts.append(self.name())
        return tuple(parts)


def _as_name(text: str) -> tuple[str, ...]:
    tokens = tokenize(text) if text.isprintable() and len(text) < 1_000 and "'" not in text and '"' not in text else ()
    names, dots = tokens[::2], tokens[1::2]
    is_name = len(tokens) % 2 == 1 and all(t.is_name for t in names) and all(t.text == "." for t in dots)
    return tuple(t.name for t in names) if is_name else ()


def _in_catalog(name: tuple[str, ...], procedure: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name in the catalog of a procedure, unless it says which it is in."""
    catalog = procedure[0] if len(procedure) == 3 else None
    return (catalog, *name) if catalog is not None and len(name) == 2 else name
