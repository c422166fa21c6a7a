"""The wheel as users get it: unpacked outside of the tree, with nothing of the repository beside it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from headrace.extras import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the wheel has."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_it_has_everything_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src" / "headrace"
    here = {p.relative_to(source) for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert {p.relative_to(wheel / "headrace") for p in (wheel / "headrace").rglob("*") if p.is_file()} == here
    assert Path("py.typed") in here
    metadata = next(wheel.glob("*.dist-info/METADATA")).read_text(encoding="utf-8")
    assert {f"Provides-Extra: {extra}" for extra in EXTRAS} <= set(metadata.splitlines())
    assert next(wheel.glob("*.dist-info/licenses/LICENSE")).is_file()


def test_it_runs_as_a_module_outside_of_the_tree(wheel: Path, tmp_path: Path) -> None:
    def run(*args: str) -> str:
        code = f"import runpy, sys; sys.path.insert(0, {str(wheel)!r}); runpy.run_module('headrace', None, '__main__')"
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, *args], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version").startswith("headrace ")
    assert "Keep SQL-defined tables fresh" in run("--help")
    assert "Made the project" in run("init", "shop")
    assert run("status", "-p", "shop", "--json") == "[]\n"


def test_what_an_index_shows_has_no_links_into_the_repository() -> None:
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert not re.findall(r"\]\((?!https?://)[^)]*\)", text)
    assert set(re.findall(r"headrace\[(\w+)\]", text)) == set(EXTRAS) == set(PROJECT["optional-dependencies"])


def test_no_message_names_a_file_that_users_do_not_have() -> None:
    named = re.compile(r"\b(?:docs|scripts|tests|bench|requirements)/\w|\b(?!headrace)[\w-]+\.md\b(?!#|\))|`make ")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for path in (ROOT / "src" / "headrace").rglob("*.py")
        for node in _texts(ast.parse(path.read_text(encoding="utf-8")))
        if "error_codes" not in path.parts and named.search(node.value)
    ]
    assert not found, "\n".join(found)


def test_locks_name_no_host() -> None:
    for lock in (ROOT / "requirements").glob("*.lock"):
        assert "://" not in lock.read_text(encoding="utf-8")


def _texts(tree: ast.Module) -> list[ast.Constant]:
    """Return the strings of a module that are not its docstrings."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    docs = {id(each.value) for body in bodies for each in body if isinstance(each, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node for node in texts if id(node) not in docs]
