"""The papers for those who work on the code name only what exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from kit import syntax_trees

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headrace"
PAPERS = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/glossary.md",
    *(f"docs/decisions/{p.name}" for p in sorted((ROOT / "docs" / "decisions").glob("*.md"))),
)

FOREIGN = frozenset({"HEADRACE_TEST_POSTGRES", "HEADRACE_EXAMPLES", "HEADRACE_SOAK_MINUTES", "OTHER_POSTGRES"})
"""Variables of the environment and of the Makefile."""

SCREENS = 2
WORDS_A_SCREEN = 450


@cache
def defined() -> frozenset[str]:
    """Every name that the code, its tests or its benches define: classes, functions, methods, attributes, constants."""
    names = set[str]()
    for path in (*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")):
        for node in syntax_trees.nodes(path.read_text(encoding="utf-8")):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and path.is_relative_to(SOURCE):
                names.add(node.value)  # error codes, reasons, methods of applying a change
    return frozenset(names)


def spelled(text: str) -> list[str]:
    """What stands between back-quotes, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def is_symbol(word: str) -> bool:
    """`CamelCase`, `ALL_CAPS`, `_private` or `call()`; other words may be SQL, options or prose."""
    name = word.removesuffix("()")
    camel = re.fullmatch(r"_?[A-Z][a-z]+(?:[A-Z][a-z]*)+", name)
    capital = re.fullmatch(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|_[A-Z][A-Z0-9_]*", name)
    return bool(camel or capital or (word.endswith("()") and name.isidentifier())) and name not in FOREIGN


def is_path(word: str) -> bool:
    """A file or folder: `a/b.py`, `room/`."""
    return bool(re.fullmatch(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md|toml|spec|lock)", word))


def exists(path: str) -> bool:
    """Whether a path is there: from the root of the project, from the package, or below any room."""
    if (ROOT / path).exists() or (SOURCE / path).exists():
        return True
    return any(f"/{p.relative_to(SOURCE).as_posix()}".endswith(f"/{path}") for p in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_path_that_a_paper_names_exists(paper: str) -> None:
    words = spelled((ROOT / paper).read_text(encoding="utf-8"))
    generated = {"headrace.toml", "functions.py"}  # files of users' projects
    assert not [w for w in words if is_path(w) and w not in generated and not exists(w)]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_symbol_that_a_paper_names_exists(paper: str) -> None:
    words = spelled((ROOT / paper).read_text(encoding="utf-8"))
    assert not [w for w in words if is_symbol(w) and w.removesuffix("()") not in defined()]


def test_links_between_papers_lead_somewhere() -> None:
    for paper in PAPERS:
        page = ROOT / paper
        links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        assert not [link for link in links if "://" not in link and not (page.parent / link).exists()], paper


def test_the_architecture_fits_two_screens() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split()) <= SCREENS * WORDS_A_SCREEN


@pytest.mark.parametrize("word", ["refresh/nobody.py", "_NOT_THERE", "_NOTTHERE", "nobody_has_this()", "NotThereAtAll"])
def test_what_does_not_exist_is_seen(word: str) -> None:
    assert is_path(word) != is_symbol(word)
    assert not exists(word)
    assert word.removesuffix("()") not in defined()
