"""The first ten minutes in a terminal: the wheel in an environment of its own, an empty folder, and what is shown.

Screens are compared with those in `screens/`, but for durations, moments and widths; `HEADRACE_SCREENS=write`
writes them anew, to be read before they are committed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.tmux import Shell, commands, shell
from kit.tutorial import blocks_of, steady

ROOT = Path(__file__).parents[2]
SCREENS = Path(__file__).parent / "screens"
ENDLESS = "SELECT count(*) FROM range(0, 1000000000000, 1, 2) WHERE rand() < 2;"
WIDE, NARROW = 100, 60


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment whose `headrace` is the one that pip has installed from the wheel.

    What the wheel depends on is that of this environment: it has the locked versions, and PySpark alone is 430 MB.
    """
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    install = ["-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([python, *install, str(next(folder.glob("*.whl")))], check=True)
    site = next((folder / "venv" / "lib").glob("python*/site-packages"))
    (site / "zz-locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("HEADRACE_", "PYTHON", "COLUMNS", "LINES", "TMUX"))
    }
    return {**kept, "PATH": f"{python.parent}{os.pathsep}{kept['PATH']}", "PAGER": "cat", "NO_COLOR": "1"}


@pytest.fixture(scope="module")
def there(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("reader") / "empty"
    folder.mkdir()
    with shell(os.environ["HEADRACE_TMUX"], folder, environment, WIDE) as opened:
        yield opened
        opened.run("headrace serve --stop")


def compare(name: str, screens: list[tuple[str, str]]) -> None:
    """Compare screens with those that are kept under a name."""
    file = SCREENS / f"{name}.txt"
    seen = "\n\n".join(f"== {title}\n{shown}" for title, shown in screens) + "\n"
    if os.environ.get("HEADRACE_SCREENS") == "write":
        file.write_text(seen, encoding="utf-8")
    assert lasting(seen) == lasting(file.read_text(encoding="utf-8"))


def lasting(text: str) -> list[str]:
    """Return the lines of screens without durations, moments and what is drawn by lot."""
    # whether Ctrl-C comes while a table is maintained is decided by the machine
    text = re.sub(r"Stopping; waiting up to .*?\bonce\.\n", "", text, flags=re.DOTALL)
    text = re.sub(r"_[0-9a-f]{10}_|\b\d{15,}\b", "#", text)
    return [re.sub(r"#( #)+", "#", line) for line in steady(text)]


def test_the_readme_in_a_terminal(there: Shell) -> None:
    screens = []
    for block in blocks_of(ROOT / "README.md"):
        if block.language != "sh" or block.note.startswith("not run"):
            continue
        for command in commands(block.text):
            shown = there.run(command, until_ctrl_c=block.note == "until Ctrl-C")
            if not command.startswith("headrace init"):  # it says in which folder
                screens.append((command.partition("\n")[0], shown))
            for bad in ("Traceback", "incubator", "WARN", "Exception"):
                assert bad not in shown, shown
    compare("readme", screens)


def test_the_prompt(there: Shell) -> None:
    there.widen(WIDE)
    there.clear()
    there.type("headrace sql")
    there.press("Enter")
    there.wait_for("^headrace> *$")

    def answered(text: str, until: str) -> None:
        there.type(text)
        there.press("Enter")
        there.wait_for(until + r"(.|\n)*^headrace> *$")

    answered("\\timing", "Timing is on")
    there.type("SELECT * FROM shop.rev")
    there.press("Tab")
    there.wait_for("FROM shop.revenue")
    answered(" ORDER BY region;", "Time: ")
    answered("\\x", "Expanded display is on")
    answered("SELECT * FROM shop.revenue ORDER BY region LIMIT 1;", "1 row(.|\n)*Time: ")
    there.type(ENDLESS)
    there.press("Enter")
    there.wait_for("Working")
    there.press("C-c")
    there.wait_for(r"Interrupted\.(.|\n)*^headrace> *$")
    answered("SELECT 40 + 2 AS answer;", "answer +42")
    shown = there.screen()
    assert "Traceback" not in shown
    there.type("exit")
    there.press("Enter")
    there.wait_for(r"there \$$")
    compare("prompt", [("headrace sql", shown)])


def test_sixty_columns_and_a_pipe(there: Shell) -> None:
    there.widen(NARROW)
    for verb in ("status", "history", "graph", "lineage shop.revenue", "refresh", "verify"):
        there.run(f"headrace {verb}")
        assert not there.wrapped(), verb
    there.run("headrace status > status.txt 2> told.txt")
    piped = there.run("wc -L < status.txt; cat status.txt told.txt | grep -c -e $'\\e' -e $'\\r'").split()
    assert int(piped[-2]) > NARROW, "what is piped is not wrapped"
    assert piped[-1] == "0", "no progress and no colours in a pipe"
