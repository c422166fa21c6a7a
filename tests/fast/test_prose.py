"""Docstrings and names say plainly what something is or does, in the words of docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from kit import syntax_trees

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headrace"
INTEGRATIONS = ROOT / "integrations"

LONGEST = 90
"""Characters of the first line of a docstring."""

QUESTIONS = {"what", "which", "whether", "how", "who", "whom", "whose", "where", "when", "why", "if", "that", "so"}
"""Words with which no docstring begins, so that it names what it is about: `The way …`, not `How …`."""

NOUNS = {"the", "a", "an", "this", "these", "those", "it", "its", "one", "some", "all", "both", "each", "every"}
PRONOUNS = {"everything", "something", "somebody", "nobody", "whatever", "whoever"}
PREPOSITIONS = {"above", "as", "at", "by", "for", "from", "in", "of", "to", "with"}
OPENERS = QUESTIONS | NOUNS | PRONOUNS | PREPOSITIONS
"""Words with which no docstring of a function begins: a verb does."""

METAPHORS = re.compile(
    r"(?i)\b(?:tarr(?:y|ies)|learnt|(?:is|are|was) told|told of|speaks of|asks itself|in nobody's way|lets? go of)\b"
)
"""Phrases that a docstring's first line has plainer words for."""

PRIVATE = {"scene", "scenes", "wish", "wishes", "cares", "courier", "circling", "unreached", "letting", "waking"} | {
    "learnt",
    "volume",
    "locators",
    "near",
    "collected",
}
"""Words that once stood in names for a scheduler's state, a table's spec, and the like."""

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Variable = ast.Assign | ast.AnnAssign


def documented(source: str) -> Iterator[tuple[Documented | Variable, str]]:
    """Yield modules, classes, functions and variables with the first lines of their docstrings."""
    for node in syntax_trees.nodes(source):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield node, text.split("\n")[0]
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from documented_variables(node)


def documented_variables(node: ast.Module | ast.ClassDef) -> Iterator[tuple[Variable, str]]:
    """Yield variables that a text follows, with its first line."""
    for variable, after in pairwise(node.body):
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))) if isinstance(variable, Variable):
                yield variable, text.strip().split("\n")[0]


def complaint(node: Documented | Variable, line: str) -> str | None:
    """Return what is wrong with a docstring's first line, or None."""
    first = re.split(r"[^\w'-]", line)[0].lower()
    if isinstance(node, Variable):
        return "begins as a question does" if first in QUESTIONS else None
    if len(line) > LONGEST:
        return f"{len(line)} characters, at most {LONGEST}"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if first in OPENERS:
            return "begins without a verb"
    elif first in QUESTIONS:
        return "begins as a question does"
    return "has plainer words" if METAPHORS.search(line) else None


def complaints(name: str, source: str) -> list[str]:
    """Return what is wrong with the docstrings of a file, line by line."""
    return [
        f"{name}:{getattr(node, 'lineno', 1)} {found}: {line}"
        for node, line in documented(source)
        if (found := complaint(node, line)) is not None
    ]


def defined(source: str) -> Iterator[tuple[int, str]]:
    """Yield the names of functions, parameters, classes and variables that a file defines."""
    for node in syntax_trees.nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def words(name: str) -> set[str]:
    """Split an identifier into its words in lower case."""
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


FILES = sorted((*SOURCE.rglob("*.py"), *INTEGRATIONS.glob("*/src/**/*.py")))


def test_docstrings_say_what_something_does() -> None:
    found = [each for file in FILES for each in complaints(str(file.relative_to(ROOT)), file.read_text())]
    assert not found, "\n".join(found)


def test_names_are_of_the_glossary() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for file in FILES
        for line, name in defined(file.read_text())
        if words(name) & PRIVATE
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return the heads.", None),
        ("What the heads are.", "begins without a verb"),
        ("Whether it moved.", "begins without a verb"),
        ("The heads.", "begins without a verb"),
        ("As the catalog has it.", "begins without a verb"),
        ("Return what is told of heads.", "has plainer words"),
        ("Return " + "x" * LONGEST, f"{LONGEST + 7} characters, at most {LONGEST}"),
    ],
)
def test_the_checks_find_such_lines(text: str, expected: str | None) -> None:
    ((node, line),) = documented(f'def f():\n    """{text}"""')
    assert complaint(node, line) == expected


@pytest.mark.parametrize("source", ['"""{}"""', 'class C:\n    """{}"""', 'X = 1\n"""{}"""', 'X: int = 1\n"""{}"""'])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The heads.", None),
        ("What the heads are.", "begins as a question does"),
        ("So many heads are read.", "begins as a question does"),
        ("Who reads whom.", "begins as a question does"),
    ],
)
def test_no_docstring_begins_as_a_question_does(source: str, text: str, expected: str | None) -> None:
    ((node, line),) = documented(source.format(text))
    assert complaint(node, line) == expected
