"""The rooms: few modules on one floor, each package says what it is for, and a name means one thing inside a layer."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "headrace"
PACKAGES = sorted(p.parent for p in SOURCE.rglob("__init__.py"))

FLOOR = 16
"""Modules on one floor, `__init__` aside: more are looked for in vain."""

LONG_LISTS = frozenset({"catalog/migrations/versions", "cli/render"})
"""Folders that are lists by nature: a file per revision of the catalog, a file per kind of result."""


def room(package: Path) -> str:
    return package.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("package", PACKAGES, ids=room)
def test_a_floor_has_few_modules(package: Path) -> None:
    modules = [p for p in package.glob("*.py") if p.name != "__init__.py"]
    assert len(modules) <= FLOOR or room(package) in LONG_LISTS


@pytest.mark.parametrize("package", PACKAGES, ids=room)
def test_a_package_says_what_it_is_for_and_what_goes_in_and_out(package: Path) -> None:
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    first, _, rest = doc.partition("\n")
    assert 10 < len(first) <= 120, "the first line says what the room is for"
    assert rest.strip(), "then come the words for what goes in and what comes out"


@pytest.mark.parametrize("package", [p for p in PACKAGES if p.parent == SOURCE], ids=room)
def test_a_name_is_used_once_inside_a_room(package: Path) -> None:
    names = Counter(p.stem for p in package.rglob("*.py") if p.name != "__init__.py")
    shared = {name for name, count in names.items() if count > 1}
    assert not shared or package.name == "cli", "a verb and its renderer share a name; nobody else does"
