"""Slow tests take turns: no test is left out of all of them, and a commit's number is known wherever there is git."""

from __future__ import annotations

import shutil
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from kit.turns import TURNS, is_played

SCRIPT = Path(__file__).parents[2] / "scripts" / "commit-number"


def git(folder: Path, *args: str) -> None:
    names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), *names, *args], check=True, capture_output=True)


def with_commits(folder: Path, number: int) -> Path:
    """A repository with the script and so many commits."""
    scripts = folder / "scripts"
    scripts.mkdir(parents=True)
    shutil.copy(SCRIPT, scripts)
    git(folder, "init")
    for at in range(number):
        git(folder, "commit", "--allow-empty", "-m", str(at))
    return folder


def commit_number(folder: Path) -> str:
    script = folder / "scripts" / SCRIPT.name
    return subprocess.run([script], check=True, capture_output=True, text=True, cwd="/").stdout.strip()


def test_commits_in_a_row_play_every_test_once() -> None:
    names = [f"tests/pipeline/test_life.py::test_statements[{n}]" for n in range(300)]
    played = [[name for name in names if is_played(name, str(number))] for number in range(100, 100 + TURNS)]
    assert sorted(chain.from_iterable(played)) == sorted(names)
    assert all(len(names) / TURNS / 2 < len(some) for some in played)
    assert played[0] == [name for name in names if is_played(name, str(100 + TURNS))]


@pytest.mark.parametrize("turn", ["", "all"])
def test_all_are_played_where_nobody_takes_turns(turn: str) -> None:
    assert all(is_played(f"test[{n}]", turn) for n in range(10))


def test_commits_are_counted(tmp_path: Path) -> None:
    original = with_commits(tmp_path / "original", 3)
    assert commit_number(original) == "3"
    git(tmp_path, "clone", "--depth", "1", f"file://{original}", "shallow")
    shutil.copytree(original / "scripts", tmp_path / "shallow" / "scripts")
    assert int(commit_number(tmp_path / "shallow")) > 3  # its hash: how many went before is not known


def test_an_archive_plays_all(tmp_path: Path) -> None:
    outer = with_commits(tmp_path / "outer", 1)
    shutil.copytree(outer / "scripts", outer / "unpacked" / "scripts")
    assert commit_number(outer / "unpacked") == "all"
