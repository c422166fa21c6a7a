"""Completes names, columns, verbs, options and switches."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress

import click
from click.shell_completion import ShellComplete
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from headrace.cli.prompt.known_names import KnownNames
from headrace.cli.prompt.pieces import Kind, pieces
from headrace.cli.prompt.statement_words import OPENING
from headrace.cli.prompt.switches import SWITCHES
from headrace.cli.surroundings import Caller, called_by
from headrace.errors import HeadraceError
from headrace.sql.reader.syntax.tokens import words

FURTHER = words("""
SELECT FROM SET VALUES WITH
GROUP BY HAVING ORDER LIMIT JOIN LEFT RIGHT INNER OUTER FULL CROSS ON USING AS DISTINCT UNION ALL EXCEPT INTERSECT INTO
STREAM TABLE TABLES SCHEDULE MODE AUTO DIFFERENTIAL NAMESPACE CASCADE COUNT SUM AVG MIN MAX FILTER CASE WHEN THEN ELSE
END AND OR NOT NULL IS IN BETWEEN LIKE CAST EXISTS WHERE OVER PARTITION QUALIFY LATERAL VIEW SOURCE SINK KEY REPLACE
""")
"""Words inside of statements that are worth completing."""

BEFORE_TABLES = words("FROM JOIN INTO TABLE UPDATE DESCRIBE DESC ON")
"""Words after which a table's name comes first."""

_NAME = r"(?:`(?:[^`]|``)*`|[^\W\d][\w-]*)"
_BEGUN = re.compile(rf"(?:{_NAME}\.)*(?:`[^`]*|[\w-]*)$")
_MENTIONED = re.compile(rf"((?:{_NAME}\.)*{_NAME})(?:\s+(?:AS\s+)?({_NAME}))?", re.IGNORECASE)


class PromptCompleter(Completer):
    """Completes what is typed at the prompt.

    Args:
        names: Names of tables and columns.
        verbs: The group of all verbs, which knows their options.
        caller: Returns what surrounds a verb, which looks for names in its project.
    """

    def __init__(self, names: KnownNames, verbs: click.Group, caller: Callable[[], Caller]) -> None:
        self._names = names
        self._verbs = verbs
        self._caller = caller
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what the word before the cursor may become."""
        kind, text = self._begun(document.text_before_cursor)
        if kind is Kind.SWITCH:
            yield from self._switch(text, complete_event)
        elif kind in (Kind.VERB, Kind.HELP):
            yield from self._verb(text, document.text_after_cursor, complete_event)
        elif kind is None:
            return
        elif re.fullmatch(r"[\w-]*", text):
            yield from self._first(text)
        else:
            yield from self._sql(text, text + document.text_after_cursor)

    def _begun(self, text: str) -> tuple[Kind | None, str]:
        """Return the piece before the cursor, and its kind: None within a string or a comment."""
        try:
            found = list(pieces(text, self._verbs.commands))
        except HeadraceError:
            return None, text
        if not found or text.rstrip().endswith(";"):
            return Kind.SQL, ""
        last, blank = found[-1], text[len(text.rstrip()) :]
        first_word = not blank and len(last.text.split()) == 1
        kind = Kind.SQL if first_word and last.kind is not Kind.SWITCH else last.kind
        return kind, last.text + blank

    def _first(self, begun: str) -> Iterator[Completion]:
        """Yield verbs and the first words of statements."""
        openings = (_in_case_of(begun, word) for word in sorted(OPENING))
        for word in (*sorted(self._verbs.commands), "help", "exit", *openings):
            if word.lower().startswith(begun.lower()):
                yield Completion(word, -len(begun))

    def _switch(self, text: str, event: CompleteEvent) -> Iterator[Completion]:
        name, blank, rest = text[1:].partition(" ")
        if not blank:
            for each in (*SWITCHES, "?", "q"):
                if each.startswith(name):
                    yield Completion(f"\\{each}", -len(text))
        elif name == "o":
            yield from self._paths.get_completions(Document(rest.lstrip()), event)
        else:
            last = rest.split(" ")[-1]
            offered = ("pager", "limit") if name == "pset" and " " not in rest else ("on", "off")
            yield from (Completion(each, -len(last)) for each in offered if each.startswith(last))

    def _verb(self, text: str, after: str, event: CompleteEvent) -> Iterator[Completion]:
        """Yield what the verb's own declaration offers; where it offers nothing, names of tables."""
        try:
            args = shlex.split(text)
        except ValueError:  # inside a quotation: a query
            begun = re.split(r"[\"']", text)[-1]
            yield from self._sql(begun, begun + after)
            return
        last = "" if not text or text[-1].isspace() else args.pop()
        args = args[1:] if args[:1] in (["headrace"], ["help"]) else args
        offered = []
        with suppress(Exception), called_by(self._caller()):
            offered = ShellComplete(self._verbs, {}, "headrace", "_HEADRACE_COMPLETE").get_completions(args, last)
        for item in offered:
            if item.type in ("file", "dir"):
                yield from self._paths.get_completions(Document(last), event)
            else:
                yield Completion(str(item.value), -len(last), display_meta=item.help or "")
        if not offered and args and not last.startswith("-"):
            yield from _named(last, self._names.tables())

    def _sql(self, text: str, whole: str) -> Iterator[Completion]:
        match = _BEGUN.search(text)
        begun = match.group() if match is not None else ""
        before = text[: len(text) - len(begun)].rstrip().rpartition(" ")[2].rpartition("\n")[2].upper()
        tables = self._names.tables()
        if before.strip("(") in BEFORE_TABLES and before != "ON":
            yield from _named(begun, tables)
            return
        yield from self._columns(begun, whole, tables)
        yield from _named(begun, tables)
        if begun and "." not in begun:
            for word in sorted(FURTHER):
                if word.startswith(begun.upper()):
                    yield Completion(_in_case_of(begun, word), -len(begun))

    def _columns(self, begun: str, whole: str, tables: Collection[str]) -> Iterator[Completion]:
        """Yield columns of the tables that the statement names, or of the one before the dot."""
        qualifier, dot, last = begun.rpartition(".")
        aliases = self._aliases(whole, tables)
        of = [aliases.get(qualifier.lower(), qualifier)] if dot else list(dict.fromkeys(aliases.values()))
        seen: set[str] = set()
        for table in of:
            for column in self._names.columns(table):
                written = column if re.fullmatch(r"\w+", column) else "`" + column.replace("`", "``") + "`"
                if written not in seen and column.lower().startswith(last.lower().lstrip("`")):
                    seen.add(written)
                    yield Completion(written, -len(last), display_meta=table)

    def _aliases(self, whole: str, tables: Collection[str]) -> dict[str, str]:
        """Return the tables that a statement names, by what they are called in it."""
        known = {table.lower(): table for table in tables}
        found: dict[str, str] = {}
        for match in re.finditer(rf"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|,)\s+{_MENTIONED.pattern}", whole, re.IGNORECASE):
            written, alias = match.group(1), match.group(2)
            table = known.get(written.lower(), written)
            found[written.lower()] = found[written.rpartition(".")[2].lower()] = table
            if alias and alias.upper() not in FURTHER | OPENING:
                found[alias.lower()] = table
        return found


def _named(begun: str, tables: Iterable[str]) -> Iterator[Completion]:
    """Yield names that begin so, and those whose last part does: `rev` becomes `shop.revenue`."""
    for table in tables:
        if table.lower().startswith(begun.lower()) or table.rpartition(".")[2].lower().startswith(begun.lower()):
            yield Completion(table, -len(begun))


def _in_case_of(begun: str, word: str) -> str:
    """Return a word in small letters where what was typed has some."""
    return word.lower() if begun != begun.upper() else word
